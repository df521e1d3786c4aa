"""The Responses-style endpoint: items instead of messages, numbered events, background jobs and chains."""

from dataclasses import dataclass
from typing import Any, Final

from proxy.emulator.answers import Answer, Family, Refused, bad_parameter, event_answer, json_answer
from proxy.emulator.assumptions import CREATED
from proxy.emulator.catalog import Model, Trait
from proxy.emulator.lookup import responses_model
from proxy.emulator.mind import ANY_TOOL, Finish, Question, Reply, canonical, is_starved, reasoning_tokens, reply_to
from proxy.emulator.rooms.responses_body import FIELDS, check_ranges
from proxy.emulator.rooms.responses_events import stream
from proxy.emulator.shapes import read_shaped
from proxy.emulator.words import hex_id, input_tokens, last_user_text
from proxy.emulator.world import Call, World

OUTPUT_TOKENS_DEFAULT: Final = 4096


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
    check_ranges(body, model)
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
