"""The load: callers on raw protocols in this process, light enough not to be what is measured.

Every caller keeps one connection and asks again as soon as it has its answer. Times are in seconds, latencies in
milliseconds.
"""

import asyncio
import itertools
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, cast

AT: Final = re.compile(rb"at=(\d{20})")
LENGTH: Final = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
WARM_MAX_S: Final = 5.0
"""Longest time to wait for that."""

LAST_CHUNK: Final = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Target:
    """Where callers call. headers: lines that one candidate needs besides the key."""

    port: int
    key: str = ""
    headers: tuple[str, ...] = ()

    def post(self, body: bytes, path: str = "/v1/chat/completions") -> bytes:
        """A whole request, ready to be written."""
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            "Accept: application/json",
            "User-Agent: bench/1",
            f"Content-Length: {len(body)}",
            f"Authorization: Bearer {self.key}",
            *self.headers,
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


Ask = bytes | Callable[[], bytes]
"""A whole request, or what makes the next one."""


def question(*, stream: str = "", model: str = "bench", characters: int = 0, exact: bool = False) -> bytes:
    """A body as an SDK sends it, about 250 bytes.

    stream: shape of the stream, see gateway.py; empty: no stream.      exact: deterministic, as a cache wants it.
    """
    messages = [{"role": "system", "content": "You answer in one sentence, and you say so when you do not know."}]
    messages += [{"role": "user", "content": "x" * 2000}] * (characters // 2000)
    messages += [{"role": "user", "content": stream or "How many stones does the mill have, and who dressed them?"}]
    asked = {"model": model, "messages": messages, "max_tokens": 200}
    asked |= {"stream": True} if stream else {}
    asked |= {"temperature": 0} if exact else {}
    return json.dumps(asked, separators=(",", ":")).encode()


def respelt(target: Target, body: bytes) -> Callable[[], bytes]:
    """Makes requests with the same JSON, no two of the next 64,000 spaced alike."""
    pieces = body.split(b",", 3)
    numbers = itertools.product(range(40), repeat=3)

    def next_one() -> bytes:
        spaces = (b" " * count + b"," for count in next(numbers))
        return target.post(pieces[0] + b"".join(b for pair in zip(spaces, pieces[1:], strict=True) for b in pair))

    return next_one


def numbered(target: Target, body: bytes) -> Callable[[], bytes]:
    """Makes requests that ask something else each time, in as many bytes."""
    before, _, behind = target.post(body).partition(b"stones")
    numbers = itertools.count()
    return lambda: b"%b%06d%b" % (before, next(numbers), behind)


@dataclass(slots=True)
class Seen:
    """What callers saw.

    bad:      answers other than 200, and connections that broke.
    since_ns: what was asked before, while warming up, has no latency.
    """

    latency_ms: list[float] = field(default_factory=list)
    first_byte_ms: list[float] = field(default_factory=list)
    delay_ms: list[float] = field(default_factory=list)
    answers: int = 0
    events: int = 0
    bad: int = 0
    sample: bytes = b""
    since_ns: int = 0

    def clear(self) -> None:
        """Forget what was seen while warming up."""
        self.latency_ms.clear()
        self.first_byte_ms.clear()
        self.delay_ms.clear()
        self.answers = self.events = self.bad = 0
        self.since_ns = time.monotonic_ns()


class Caller(asyncio.Protocol):
    """One connection that asks, reads its answer to the end, and asks again until told to stop."""

    def __init__(self, request: Ask, seen: Seen, *, once: bool = False) -> None:
        """once: ask one time only, as for streams that are held open."""
        self._request: Final = request
        self._seen: Final = seen
        self._once: Final = once
        self.stopped = False
        self._closed: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not of asyncio's class.
        self.transport = cast("asyncio.Transport", transport)
        self._ask()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.stopped:
            self._seen.bad += 1
        if not self._closed.done():
            self._closed.set_result(None)

    def _ask(self) -> None:
        self._buffer = b""
        self._missing = -1
        self._streaming = False
        self._first = True
        self._asked_ns = time.monotonic_ns()
        self.transport.write(self._request if isinstance(self._request, bytes) else self._request())

    def data_received(self, data: bytes) -> None:
        if self._streaming:
            self._event(data)
            return
        if self._missing < 0:
            data = self._buffer + data
            head, found, rest = data.partition(b"\r\n\r\n")
            if not found:
                self._buffer = data
                return
            if head[9:12] != b"200":
                self._seen.bad += 1
                self._seen.sample = self._seen.sample or data[:400]
            length = LENGTH.search(head)
            if length is None:
                self._streaming, self._buffer = True, b""
                self._event(rest)
                return
            self._missing = int(length[1])
            data = rest
        self._missing -= len(data)
        if self._missing <= 0:
            self._done()

    def _event(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        seen = self._seen
        stamps = AT.findall(data)
        if stamps and self._first:
            self._first = False
            seen.first_byte_ms.append((now_ns - self._asked_ns) / 1e6)
        seen.events += len(stamps)
        seen.delay_ms.extend([(now_ns - int(stamp)) / 1e6 for stamp in stamps])
        self._buffer = (self._buffer + data)[-len(LAST_CHUNK) :]
        if self._buffer == LAST_CHUNK:
            self._done()

    def _done(self) -> None:
        seen = self._seen
        seen.answers += 1
        if self._asked_ns >= seen.since_ns:
            seen.latency_ms.append((time.monotonic_ns() - self._asked_ns) / 1e6)
        if not (self.stopped or self._once):
            self._ask()

    def stop(self) -> None:
        """Ask no more, and leave."""
        self.stopped = True
        self.transport.abort()


async def callers(target: Target, request: Ask, seen: Seen, count: int, *, once: bool = False) -> list[Caller]:
    """So many callers, connected and asking; a few at a time, as a full backlog would cost a second."""
    loop = asyncio.get_running_loop()
    asking: list[Caller] = []
    while len(asking) < count:
        step = min(50, count - len(asking))
        made = [
            loop.create_connection(lambda: Caller(request, seen, once=once), "127.0.0.1", target.port)
            for _ in range(step)
        ]
        asking += [caller for _, caller in await asyncio.gather(*made)]
    return asking


@dataclass(frozen=True, slots=True)
class Run:
    """What callers saw in the measured time. cpu_s: of the candidate, by the operating system's own count."""

    seen: Seen
    seconds: float
    cpu_s: float


async def _warm(seen: Seen, count: int, warm_s: float) -> None:
    """Wait that long, and until there were as many answers as there are callers: all connections are open then."""
    await asyncio.sleep(warm_s)
    for _ in range(int(WARM_MAX_S / 0.05)):
        if seen.answers >= count:
            return
        await asyncio.sleep(0.05)


async def run(
    target: Target, request: Ask, *, count: int, warm_s: float, seconds: float, cpu: Callable[[], float]
) -> Run:
    """So many callers for so long, after a time to warm up."""
    seen = Seen()
    asking = await callers(target, request, seen, count)
    await _warm(seen, count, warm_s)
    seen.clear()
    began_s, used_s = time.monotonic(), cpu()
    await asyncio.sleep(seconds)
    measured = Run(seen, time.monotonic() - began_s, cpu() - used_s)
    for caller in asking:
        caller.stop()
    await asyncio.sleep(0.05)
    return measured


def percentile(values: list[float], share: float) -> float | None:
    """The value below which this share of all values lies; None of no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
