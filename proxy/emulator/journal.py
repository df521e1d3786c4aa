"""What the emulator saw and how each request ended; tests wait here instead of sleeping."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from proxy.emulator.money import credit_text

BODY_KEPT_BYTES: Final = 65_536
"""Longer request bodies are remembered by length and digest only."""

REQUESTS_KEPT: Final = 50_000
"""Older requests are forgotten, so that an emulator under load for days stays small; numbers go on counting."""


@dataclass(slots=True, eq=False)
class Seen:
    """One request.

    target:         as it stood on the request line.
    body:           the request body, None above `BODY_KEPT_BYTES`.
    judged_s:       when its limits were looked at, by the emulator's clock; None where it did not come so far.
    charged:        units of 1e-8 credit taken from the member.
    answered_bytes: body bytes handed to the socket.
    caller_gone:    the caller closed before the answer ended.
    finished:       the answer was delivered to its end, or cut on purpose by a fault.
    """

    number: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes | None = b""
    body_bytes: int = 0
    body_sha256: str = hashlib.sha256(b"").hexdigest()
    key: str | None = None
    member: str | None = None
    status: int | None = None
    judged_s: float | None = None
    charged: int = 0
    faults: list[str] = field(default_factory=list)
    answered_bytes: int = 0
    caller_gone: bool = False
    finished: bool = False

    def got(self, body: bytes) -> None:
        self.body = body if len(body) <= BODY_KEPT_BYTES else None
        self.body_bytes = len(body)
        self.body_sha256 = hashlib.sha256(body).hexdigest()

    def header(self, name: str) -> str | None:
        """The first value of a request header."""
        wanted = name.lower()
        return next((value for given, value in self.headers if given.lower() == wanted), None)

    @property
    def over(self) -> bool:
        """Nothing more will happen to this request."""
        return self.finished or self.caller_gone

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "method": self.method,
            "target": self.target,
            "headers": self.headers,
            "body_bytes": self.body_bytes,
            "body_sha256": self.body_sha256,
            "key": self.key,
            "member": self.member,
            "status": self.status,
            "judged_s": self.judged_s,
            "charged_credits": credit_text(self.charged),
            "faults": self.faults,
            "answered_bytes": self.answered_bytes,
            "caller_gone": self.caller_gone,
            "finished": self.finished,
        }


class Journal(Sequence[Seen]):
    """The newest requests in order of arrival, and the bell that rings whenever one of them changes."""

    def __init__(self) -> None:
        self._seen: deque[Seen] = deque(maxlen=REQUESTS_KEPT)
        self._number = 0
        self._waiting = 0
        self._bell = asyncio.Event()

    def open(self, method: str, target: str, headers: list[tuple[str, str]]) -> Seen:
        self._number += 1
        seen = Seen(self._number, method, target, headers)
        self._seen.append(seen)
        self.ring()
        return seen

    def ring(self) -> None:
        """Something changed: everyone who waits looks again."""
        if self._waiting:
            self._bell.set()
            self._bell = asyncio.Event()

    async def wait_for(self, holds: Callable[[Sequence[Seen]], bool], within_s: float = 60.0) -> None:
        """Return as soon as `holds(journal)`; raises TimeoutError after `within_s` real seconds."""
        self._waiting += 1
        try:
            async with asyncio.timeout(within_s):
                while not holds(self):
                    await self._bell.wait()
        finally:
            self._waiting -= 1

    def clear(self) -> None:
        self._seen.clear()
        self.ring()

    def __getitem__(self, index: Any) -> Any:
        return list(self._seen)[index] if isinstance(index, slice) else self._seen[index]

    def __iter__(self) -> Iterator[Seen]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def __repr__(self) -> str:
        rows = (f"{seen.number} {seen.method} {seen.target} -> {seen.status}" for seen in self._seen)
        return f"<Journal {'; '.join(rows)}>"
