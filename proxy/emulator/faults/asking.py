"""How a fault is asked for: by a marker in the body, by a header, or armed for a run.

The marker is `[[fault:NAME key=value ...]]` in any text of the body; the header is `x-emulator-fault: NAME key=value;
NAME ...`. Both survive a proxy that leaves bodies alone and passes the header on; arming needs neither.
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from proxy.emulator.world import Call

MARKER: Final = re.compile(rb"\[\[fault:([\w-]+)((?: +[\w-]+=[^\s\]]*)*) *]]")

RETRY: Final = {
    "past": "Wed, 21 Oct 2015 07:28:00 GMT",
    "date": "Wed, 21 Oct 2099 07:28:00 GMT",
    "decade": "315360000",
    "text": "soon",
    "none": None,
}
"""Words for `retry=`; anything else is sent as it stands."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded answer, sent piece by piece. `past_http` sends the pieces as the whole of what is on the wire."""

    pieces: tuple[bytes, ...]
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/event-stream"),)
    past_http: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A fault as it was asked for, with what it may look at."""

    name: str
    params: Mapping[str, str] = field(default_factory=dict)
    call: Call | None = None
    recordings: Mapping[str, Recording] = field(default_factory=dict)

    def number(self, name: str, default: float) -> float:
        return float(self.params.get(name, default))

    def count(self, name: str, default: int) -> int:
        return int(self.params.get(name, default))

    @property
    def suite(self) -> str | None:
        return self.call.parts.get("suite") if self.call else None

    @property
    def model(self) -> str:
        """The model the request names, for sentences."""
        try:
            return str(orjson.loads(self.call.body if self.call else b"").get("model", "X"))
        except (orjson.JSONDecodeError, AttributeError):
            return "X"

    def retry(self, default: str | None) -> tuple[tuple[str, str], ...]:
        """The `Retry-After` header that `retry=` asks for."""
        word = self.params.get("retry")
        value = default if word is None else RETRY.get(word, word)
        return () if value is None else (("Retry-After", value),)


@dataclass(slots=True)
class Armed:
    """A fault for a run: it meets requests whose target begins with `prefix`, `times` times (None: always)."""

    name: str
    params: Mapping[str, str]
    times: int | None = None
    prefix: str = ""
    method: str | None = None

    def meets(self, method: str, target: str) -> bool:
        return self.times != 0 and target.startswith(self.prefix) and self.method in (None, method)

    def spend(self) -> None:
        if self.times is not None:
            self.times -= 1


def read_fault(text: str, known: Container[str]) -> tuple[str, dict[str, str]]:
    """`NAME key=value ...` as name and parameters. Raises ValueError for a name that is not known."""
    name, *words = text.split()
    if name not in known:
        raise ValueError(f"there is no fault {name!r}")
    pairs = (word.partition("=") for word in words)
    return name, {key: value for key, _, value in pairs}


def read_armed(text: str, known: Container[str]) -> Armed:
    """A fault for a run from one line: the parameters `times`, `prefix` and `method` say when it acts."""
    name, params = read_fault(text, known)
    times, prefix, method = params.pop("times", None), params.pop("prefix", ""), params.pop("method", None)
    return Armed(name, params, None if times is None else int(times), prefix, method)


def read_marks(body: bytes, header: str | None, known: Container[str]) -> list[tuple[str, dict[str, str]]]:
    """The faults a request asks for itself. Raises ValueError for a name that is not known."""
    asked = [read_fault(part, known) for part in (header or "").split(";") if part.strip()]
    found = (read_fault((name + b" " + params).decode(), known) for name, params in MARKER.findall(body))
    return [*asked, *found]
