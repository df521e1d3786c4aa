"""Reading and rewriting the events of an answer, for the faults that change what is said."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import orjson

from proxy.emulator.answers import JSON, Answer, Family
from proxy.emulator.faults.asking import Asked

Edit = Callable[[Any], None]

TEXT_EVENTS: Final = {
    Family.NATIVE: ("content_block_",),
    Family.RESPONSES: ("response.output_", "response.content_part", "response.reasoning_", "response.function_call_"),
}
"""Beginnings of the event types that carry what the model says."""


def edited(answer: Answer, edit: Edit) -> Answer:
    """The answer with `edit` applied to its JSON, or to the JSON of each of its events."""
    if not answer.streamed:
        if answer.content_type != JSON:
            return answer
        value = orjson.loads(answer.body)
        edit(value)
        return replace(answer, frames=(orjson.dumps(value),))
    return replace(answer, frames=tuple(_edited_frame(frame, edit) for frame in answer.frames))


def payload(frame: bytes) -> Any:
    """The JSON of an event, None when it has none."""
    _, found, data = frame.partition(b"data: ")
    try:
        return orjson.loads(data) if found else None
    except orjson.JSONDecodeError:
        return None


def without_usage(answer: Answer, _asked: Asked) -> Answer:
    """Usage nowhere: fields are removed, a chat chunk that held nothing else goes too."""
    frames = tuple(frame for frame in answer.frames if not (answer.streamed and _only_usage(frame)))
    return edited(replace(answer, frames=frames), _drop_usage)


def with_usage_twice(answer: Answer, _asked: Asked) -> Answer:
    """The event that carries usage comes twice; a JSON answer stays as it is."""
    if not answer.streamed:
        return answer
    doubled: list[bytes] = []
    for frame in answer.frames:
        value = payload(frame)
        carries = isinstance(value, dict) and (_only_usage(frame) or value.get("type") == "message_delta")
        doubled.extend([frame, frame] if carries else [frame])
    return replace(answer, frames=tuple(doubled))


def emptied(answer: Answer, _asked: Asked) -> Answer:
    """A 200 that says nothing: no text, no tool call, usage as it was."""
    starts = TEXT_EVENTS.get(answer.family, ())
    frames = [frame for frame in answer.frames if not (answer.streamed and _speaks(payload(frame), starts))]
    return edited(replace(answer, frames=tuple(frames)), _drop_text)


def _edited_frame(frame: bytes, edit: Edit) -> bytes:
    value = payload(frame)
    if value is None:
        return frame
    edit(value)
    return frame[: frame.index(b"data: ") + 6] + orjson.dumps(value) + b"\n\n"


def _only_usage(frame: bytes) -> bool:
    value = payload(frame)
    return isinstance(value, dict) and value.get("choices") == [] and "usage" in value


def _inner(value: Any) -> Iterable[dict[str, Any]]:
    """The objects of an answer or event that may hold usage and text."""
    places = [value, value.get("message"), value.get("response")] if isinstance(value, dict) else []
    return (place for place in places if isinstance(place, dict))


def _drop_usage(value: Any) -> None:
    for place in _inner(value):
        place.pop("usage", None)


def _speaks(value: Any, starts: tuple[str, ...]) -> bool:
    if not isinstance(value, dict):
        return False
    if starts:
        return str(value.get("type", "")).startswith(starts)
    return any((choice.get("delta") or {}).keys() & {"content", "tool_calls"} for choice in value.get("choices") or [])


def _drop_text(value: Any) -> None:
    for place in _inner(value):
        for name in ("content", "output"):
            if isinstance(place.get(name), list):
                place[name] = []
    for choice in value.get("choices") or [] if isinstance(value, dict) else []:
        if "message" in choice:
            choice["message"] = {"role": "assistant", "content": ""}
