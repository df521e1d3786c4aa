"""The Responses-style endpoint: items instead of messages, numbered events, background jobs and chains."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from proxy.emulator.answers import Answer, Family, Refused, bad_parameter, event, event_answer, json_answer
from proxy.emulator.assumptions import CREATED
from proxy.emulator.catalog import Model, Trait
from proxy.emulator.lookup import responses_model
from proxy.emulator.mind import ANY_TOOL, Finish, Question, Reply, canonical, is_starved, reasoning_tokens, reply_to
from proxy.emulator.rooms.chat import is_closed
from proxy.emulator.shapes import Field, Shape, read_shaped
from proxy.emulator.words import hex_id, input_tokens, last_user_text
from proxy.emulator.world import Call, World

OUTPUT_TOKENS_DEFAULT: Final = 4096

# fmt: off
# Items are messages, results of calls, reasoning and more: only what all of them share is judged.
ITEM: Final = (
    Field("type",                 Shape.STRING),
    Field("role",                 Shape.STRING),
    Field("content",              Shape.TEXT_OR_PARTS, inside=(Field("type", Shape.STRING),
                                                               Field("text", Shape.STRING))),
)
TOOL: Final = (
    Field("type",                 Shape.STRING, required=True),
    Field("name",                 Shape.STRING),
    Field("parameters",           Shape.OBJECT),
)
FORMAT: Final = (
    Field("type",                 Shape.STRING, required=True),
    Field("strict",               Shape.BOOLEAN),
    Field("schema",               Shape.OBJECT),
)
FIELDS: Final = (
    Field("model",                Shape.STRING, required=True),
    Field("input",                Shape.ARRAY,  required=True, inside=ITEM),
    Field("instructions",         Shape.STRING),
    Field("max_output_tokens",    Shape.INTEGER),
    Field("stream",               Shape.BOOLEAN),
    Field("temperature",          Shape.NUMBER),
    Field("tools",                Shape.ARRAY,  inside=TOOL),
    Field("tool_choice",          Shape.TEXT_OR_OBJECT, inside=(Field("name", Shape.STRING),)),
    Field("reasoning",            Shape.OBJECT, inside=(Field("effort", Shape.STRING), Field("summary", Shape.STRING))),
    Field("text",                 Shape.OBJECT, inside=(Field("format", Shape.OBJECT, inside=FORMAT),)),
    Field("background",           Shape.BOOLEAN),
    Field("previous_response_id", Shape.STRING),
    Field("store",                Shape.BOOLEAN),
    Field("metadata",             Shape.OBJECT),
)
# fmt: on


@dataclass(slots=True)
class Kept:
    """A response the gateway remembers for its member: the finished value, and how far its job has come."""

    value: dict[str, Any]
    tokens: int
    polls_left: int
    cancelled: bool = False

    def shown(self, polls: int) -> dict[str, Any]:
        """The value as a poll sees it: queued first, then in progress, then what it became."""
        if self.cancelled:
            return {**self.value, "status": "cancelled", "output": [], "usage": None}
        if self.polls_left <= 0:
            return self.value
        status = "queued" if self.polls_left == polls else "in_progress"
        return {**self.value, "status": status, "output": [], "usage": None, "incomplete_details": None}


def create(world: World, call: Call) -> Answer:
    body = read_shaped(call.body, FIELDS)
    model = responses_model(body["model"])
    _check_ranges(body, model)
    parent = _parent(world, call, body)
    question = _question(body, model)
    world.reserve(call)
    reply = reply_to(question, world.options.seed)
    ident = hex_id("resp_", world.options.seed, call.body, call.turn)
    inherited = parent.tokens if parent else 0
    asked = input_tokens([body["input"], body.get("instructions") or "", body.get("tools") or []]) + inherited
    usage = _usage(asked + 4, reply)
    output = _output(ident, body, question, reply)
    value = _value(ident, body, question, output, usage)
    charge = usage["input_tokens"] * model.input_price + usage["output_tokens"] * model.output_price
    background = body.get("background") is True
    polls = world.options.jobs_polls if background and body.get("stream") is not True else 0
    kept = Kept(value, usage["total_tokens"], polls)
    if body.get("store") is not False or background:
        world.shelf[call.member, ident] = kept
    if body.get("stream") is True:
        return event_answer(stream(value, reply), Family.RESPONSES, charge=charge)
    return json_answer(kept.shown(polls), family=Family.RESPONSES, charge=charge)


def poll(world: World, call: Call) -> Answer:
    kept = _kept(world, call, call.parts["response_id"])
    kept.polls_left -= 1
    return json_answer(kept.shown(world.options.jobs_polls), family=Family.RESPONSES)


def cancel(world: World, call: Call) -> Answer:
    """Only a background response that has not ended can be cancelled; cancelling twice is as cancelling once."""
    kept = _kept(world, call, call.parts["response_id"])
    if not kept.value["background"]:
        raise bad_parameter("Only background responses can be cancelled")
    if kept.polls_left > 0:
        kept.cancelled = True
    return json_answer(kept.shown(world.options.jobs_polls), family=Family.RESPONSES)


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


def _check_ranges(body: dict[str, Any], model: Model) -> None:
    limit = body.get("max_output_tokens")
    if limit is not None and limit < 1:
        raise bad_parameter("max_output_tokens must be at least 1")
    temperature = body.get("temperature")
    if temperature is not None and Trait.TEMPERATURE_ONE in model.traits and temperature != 1:
        raise bad_parameter(f"Model '{model.name}' accepts only temperature = 1")
    reasoning = body.get("reasoning") or {}
    if reasoning.get("effort") not in (None, "low", "medium", "high"):
        raise bad_parameter("reasoning.effort must be low, medium or high")
    if reasoning.get("summary") not in (None, "auto", "none"):
        raise bad_parameter("reasoning.summary must be auto or none")
    if not body["input"]:
        raise bad_parameter("input must not be empty")
    layout = (body.get("text") or {}).get("format") or {"type": "text"}
    if layout.get("type") == "json_schema" and layout.get("strict") is True and not is_closed(layout.get("schema")):
        raise bad_parameter("text.format.schema must be a valid schema with additionalProperties = false")


def _parent(world: World, call: Call, body: dict[str, Any]) -> Kept | None:
    ident = body.get("previous_response_id")
    return None if ident is None else _kept(world, call, ident)


def _kept(world: World, call: Call, ident: str) -> Kept:
    """A response of this member; one of another member is as unknown as one that never was."""
    kept = world.shelf.get((call.member, ident))
    if not isinstance(kept, Kept):
        raise Refused(json_answer({"detail": f"Response '{ident}' not found"}, status=404))
    return kept


def _question(body: dict[str, Any], model: Model) -> Question:
    tools = {tool["name"]: tool.get("parameters") for tool in body.get("tools") or [] if "name" in tool}
    budget = body.get("max_output_tokens") or OUTPUT_TOKENS_DEFAULT
    chosen = body.get("tool_choice")
    forced = chosen.get("name") if isinstance(chosen, dict) else (ANY_TOOL if chosen == "required" and tools else None)
    if forced not in (None, ANY_TOOL) and forced not in tools:
        raise bad_parameter("tool_choice names a function that is not among the tools")
    reasons = Trait.REASONING in model.traits
    layout = (body.get("text") or {}).get("format") or {}
    return Question(
        canonical(body),
        last_user_text(body["input"]),
        tools,
        forced=forced,
        may_call=chosen != "none",
        schema=layout.get("schema"),
        budget=budget,
        reasoning=reasoning_tokens((body.get("reasoning") or {}).get("effort")) if reasons else 0,
        starved=reasons and is_starved(budget),
    )


def _usage(asked: int, reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.output,
        "output_tokens_details": {"reasoning_tokens": reply.reasoning},
        "total_tokens": asked + reply.output,
    }


def _value(
    ident: str, body: dict[str, Any], question: Question, output: list[dict[str, Any]], usage: dict[str, Any]
) -> dict[str, Any]:
    """The finished response. A spent budget shows in the items: the last one is incomplete, or there is no last one."""
    spoken = [item for item in output if item["type"] != "reasoning"]
    cut = not spoken or spoken[-1]["status"] == "incomplete"
    return {
        "id": ident,
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete" if cut else "completed",
        "background": body.get("background") is True,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": question.budget,
        "metadata": body.get("metadata") or {},
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
        "store": body.get("store") is not False,
        "temperature": 1.0 if body.get("temperature") is None else body["temperature"],
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
    }


def _output(ident: str, body: dict[str, Any], question: Question, reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if question.reasoning:
        wanted = (body.get("reasoning") or {}).get("summary") == "auto" and reply.thoughts
        summary = [{"type": "summary_text", "text": "".join(reply.thoughts)}] if wanted else []
        items.append({"id": hex_id("rs_", ident), "type": "reasoning", "summary": summary})
    if reply.call:
        name, arguments = reply.call
        call_id = hex_id("call_", ident, arguments)
        items.append(
            {"id": hex_id("fc_", ident), "type": "function_call", "status": "completed", "call_id": call_id,
             "name": name, "arguments": arguments}
        )  # fmt: skip
    elif not question.starved:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        status = "incomplete" if reply.finish is Finish.LENGTH else "completed"
        items.append(
            {"id": hex_id("msg_", ident), "type": "message", "status": status, "role": "assistant", "content": [part]}
        )
    return items
