"""The events of a Responses-style stream: each numbered, each item opened, filled and closed."""

from collections.abc import Iterator
from typing import Any

from proxy.emulator.answers import event
from proxy.emulator.mind import Reply


def stream(value: dict[str, Any], reply: Reply) -> Iterator[bytes]:
    """All events of a response; each carries its number, the last repeats the whole response."""
    number = -1

    def named(kind: str, **rest: Any) -> bytes:
        nonlocal number
        number += 1
        return event({"type": kind, "sequence_number": number, **rest}, kind)

    begun = {**value, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    if value["background"]:
        yield named("response.queued", response={**begun, "status": "queued"})
    yield named("response.created", response=begun)
    yield named("response.in_progress", response=begun)
    for index, item in enumerate(value["output"]):
        opened, events = _item_events(item, reply)
        yield named("response.output_item.added", output_index=index, item=opened)
        for kind, rest in events:
            yield named(kind, item_id=item["id"], output_index=index, **rest)
        yield named("response.output_item.done", output_index=index, item=item)
    yield named(f"response.{value['status']}", response=value)


def _item_events(item: dict[str, Any], reply: Reply) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """An output item as its stream begins it, and the events that fill it."""
    match item["type"]:
        case "reasoning":
            parts = [part for part in item["summary"] for part in _summary_events(part, reply)]
            return {**item, "summary": []}, parts
        case "function_call":
            arguments = item["arguments"]
            deltas = [arguments[start : start + 16] for start in range(0, len(arguments), 16)]
            events = [("response.function_call_arguments.delta", {"delta": delta}) for delta in deltas]
            done = ("response.function_call_arguments.done", {"arguments": arguments, "name": item["name"]})
            return {**item, "arguments": "", "status": "in_progress"}, [*events, done]
        case _:
            part = item["content"][0]
            here: dict[str, Any] = {"content_index": 0}
            events = [("response.content_part.added", {**here, "part": {**part, "text": ""}})]
            events += [
                ("response.output_text.delta", {**here, "delta": piece, "logprobs": []}) for piece in reply.pieces
            ]
            events.append(("response.output_text.done", {**here, "text": part["text"], "logprobs": []}))
            events.append(("response.content_part.done", {**here, "part": part}))
            return {**item, "content": [], "status": "in_progress"}, events


def _summary_events(part: dict[str, Any], reply: Reply) -> Iterator[tuple[str, dict[str, Any]]]:
    here: dict[str, Any] = {"summary_index": 0}
    yield "response.reasoning_summary_part.added", {**here, "part": {**part, "text": ""}}
    for piece in reply.thoughts:
        yield "response.reasoning_summary_text.delta", {**here, "delta": piece}
    yield "response.reasoning_summary_text.done", {**here, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**here, "part": part}
