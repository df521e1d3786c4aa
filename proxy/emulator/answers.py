"""What a room decides: an answer as a value, with its bytes already cut into the pieces they are written in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import orjson

from proxy.emulator.messages import EDGE_BLOCK, Message

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream; charset=utf-8"


class Family(Enum):
    """How a stream of this answer looks: which event ends it and how an error inside it is written."""

    PLAIN = "plain"
    CHAT = "chat"
    NATIVE = "native"
    RESPONSES = "responses"
    SUITE = "suite"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    frames:   the body, in the pieces it is written in.
    streamed: True sends chunks, False sends a Content-Length.
    charge:   what the member pays, in units of 1e-8 credit.
    calls:    the name a counted tool call is recorded under, such as `mcp:calc`.
    """

    status: int
    frames: tuple[bytes, ...]
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    family: Family = Family.PLAIN
    streamed: bool = False
    charge: int = 0
    calls: str | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)


class Refused(Exception):
    """Carries the answer of a request that a rule turned away."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def json_answer(
    value: Any,
    *,
    status: int = 200,
    headers: tuple[tuple[str, str], ...] = (),
    family: Family = Family.PLAIN,
    charge: int = 0,
) -> Answer:
    return Answer(status, (orjson.dumps(value),), headers=headers, family=family, charge=charge)


def event_answer(frames: Iterable[bytes], family: Family, *, charge: int = 0, calls: str | None = None) -> Answer:
    """A stream of server-sent events."""
    cache = (("Cache-Control", "no-cache"),)
    return Answer(200, tuple(frames), EVENTS, cache, family, streamed=True, charge=charge, calls=calls)


def event(value: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    data = b"data: " + orjson.dumps(value) + b"\n\n"
    return f"event: {name}\n".encode() + data if name else data


def refusal(message: Message, *, headers: tuple[tuple[str, str], ...] = (), **parts: object) -> Answer:
    """A message of the documentation as an answer."""
    text = message.text.format(**parts) if parts else message.text
    if message is EDGE_BLOCK:
        return Answer(message.status, (text.encode(),), "text/plain; charset=UTF-8", headers)
    return json_answer({"detail": text}, status=message.status, headers=headers)


def refused(message: Message, *, headers: tuple[tuple[str, str], ...] = (), **parts: object) -> Refused:
    return Refused(refusal(message, headers=headers, **parts))


def bad_parameter(text: str) -> Refused:
    """400 for a value outside its documented range; the sentence is ours, the documentation shows none."""
    return Refused(json_answer({"detail": text}, status=400))


def unprocessable(problems: Sequence[dict[str, Any]]) -> Refused:
    """422 with the documented array of problems."""
    return Refused(json_answer({"detail": list(problems)}, status=422))
