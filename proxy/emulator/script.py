"""An answer as the list of steps its delivery takes; faults edit this list, `delivery.py` performs it."""

from collections.abc import Iterator
from dataclasses import dataclass

from proxy.emulator.answers import Answer


@dataclass(frozen=True, slots=True)
class Head:
    """Status line and headers; `length` None sends the body in chunks."""

    status: int
    headers: tuple[tuple[str, str], ...]
    length: int | None


@dataclass(frozen=True, slots=True)
class Send:
    """A piece of the body."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes past HTTP, straight to the socket; a script with these has no `Head`."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Real seconds of silence."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Gate:
    """Silence until the test opens the gate of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Hang:
    """Silence for ever."""


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset."""


@dataclass(frozen=True, slots=True)
class Close:
    """The connection is closed, without the end HTTP would need."""


@dataclass(frozen=True, slots=True)
class End:
    """The body is complete."""


Step = Head | Send | Raw | Pause | Gate | Hang | Reset | Close | End
Script = tuple[Step, ...]


def script_of(answer: Answer, chunk_delay_s: float = 0.0) -> Script:
    """The plain delivery of an answer."""
    length = None if answer.streamed else len(answer.body)
    return tuple(_steps(answer, length, chunk_delay_s))


def _steps(answer: Answer, length: int | None, chunk_delay_s: float) -> Iterator[Step]:
    yield Head(answer.status, (("Content-Type", answer.content_type), *answer.headers), length)
    for number, frame in enumerate(answer.frames):
        if number and answer.streamed and chunk_delay_s:
            yield Pause(chunk_delay_s)
        yield Send(frame)
    yield End()
