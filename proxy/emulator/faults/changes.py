"""Faults that change what a room answered: errors inside streams, odd framing, odd encodings."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import orjson

from proxy.emulator.answers import Answer, Family, event
from proxy.emulator.faults.asking import Asked
from proxy.emulator.faults.frames import edited

MEGABYTE: Final = 1_000_000

Change = Callable[[Answer, Asked], Answer]


def error_midway(answer: Answer, asked: Asked) -> Answer:
    """After `after` events an error in the family's form, or in `form=` error, event, flat, detail, failed."""
    text = asked.params.get("message", "upstream provider error")
    error = {"message": text, "type": "server_error", "code": "server_error"}
    failed = {"type": "response.failed", "response": {"status": "failed", "error": error}}
    forms = {
        "error": event({"error": error}),
        "detail": event({"detail": text}),
        "event": event({"type": "error", "error": {"type": "api_error", "message": text}}, "error"),
        "flat": event({"type": "error", "code": "server_error", "message": text, "sequence_number": 99}, "error"),
        "failed": event(failed, "response.failed"),
    }
    own = {Family.NATIVE: "event", Family.RESPONSES: "flat"}.get(answer.family, "error")
    kept = answer.frames[: asked.count("after", 2)]
    return replace(answer, frames=(*kept, forms[asked.params.get("form", own)]))


def no_end(answer: Answer, _asked: Asked) -> Answer:
    return replace(answer, frames=answer.frames[:-1])


def between(extra: bytes) -> Change:
    """`extra` after every event of a stream."""

    def change(answer: Answer, _asked: Asked) -> Answer:
        if not answer.streamed:
            return answer
        return replace(answer, frames=tuple(piece for frame in answer.frames for piece in (frame, extra)))

    return change


def crlf(answer: Answer, _asked: Asked) -> Answer:
    return replace(answer, frames=tuple(frame.replace(b"\n", b"\r\n") for frame in answer.frames))


def split(answer: Answer, asked: Asked) -> Answer:
    """The same bytes in pieces of `size`, each its own chunk."""
    body, size = answer.body, asked.count("size", 1)
    pieces = tuple(body[start : start + size] for start in range(0, len(body), size))
    return replace(answer, frames=pieces)


def join(answer: Answer, _asked: Asked) -> Answer:
    return replace(answer, frames=(answer.body,))


def big(answer: Answer, asked: Asked) -> Answer:
    """One line of `mb` megabytes more, in a field nobody knows."""
    padding = "x" * int(asked.number("mb", 1) * MEGABYTE)
    first, *rest = answer.frames
    padded = edited(replace(answer, frames=(first,)), lambda value: value.update(padding=padding))
    return replace(answer, frames=(*padded.frames, *rest))


def bare_list(answer: Answer, _asked: Asked) -> Answer:
    value = orjson.loads(answer.body)
    bare = value["data"] if isinstance(value, dict) and "data" in value else value
    return replace(answer, frames=(orjson.dumps(bare),))


def zipped(megabytes: float) -> Change:
    """The body in an encoding nobody asked for; `mb` blanks behind it make it a bomb."""

    def change(answer: Answer, asked: Asked) -> Answer:
        body = answer.body + b" " * int(asked.number("mb", megabytes) * MEGABYTE)
        headers = (*answer.headers, ("Content-Encoding", "gzip"))
        return replace(answer, frames=(gzip.compress(body, mtime=0),), headers=headers)

    return change
