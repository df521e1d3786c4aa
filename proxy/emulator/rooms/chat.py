"""Chat completions: the parameters and rules of the documentation, answers as JSON and as a stream."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from proxy.emulator.answers import Answer, Family, bad_parameter, event, event_answer, json_answer
from proxy.emulator.assumptions import CREATED
from proxy.emulator.catalog import Model, Trait
from proxy.emulator.lookup import chat_model
from proxy.emulator.mind import ANY_TOOL, Finish, Question, Reply, canonical, is_starved, reasoning_tokens, reply_to
from proxy.emulator.rooms.chat_body import FIELDS, check_model_rules, check_ranges
from proxy.emulator.shapes import read_shaped
from proxy.emulator.words import hex_id, input_tokens, last_user_text
from proxy.emulator.world import Call, World

FINISH: Final = {Finish.STOP: "stop", Finish.SEQUENCE: "stop", Finish.LENGTH: "length", Finish.TOOLS: "tool_calls"}


def complete(world: World, call: Call) -> Answer:
    body = read_shaped(call.body, FIELDS)
    model = chat_model(body["model"])
    check_ranges(body)
    check_model_rules(body, model)
    question = _question(body, model)
    world.reserve(call)
    replies = [reply_to(question, world.options.seed, number) for number in range(body.get("n") or 1)]
    usage = _usage(body, replies)
    charge = usage["prompt_tokens"] * model.input_price + usage["completion_tokens"] * model.output_price
    base = {
        "id": hex_id("chatcmpl-", world.options.seed, call.body, call.turn),
        "created": CREATED,
        "model": model.name,
    }
    if body.get("stream") is True:
        asked = (body.get("stream_options") or {}).get("include_usage") is True
        return event_answer(stream(base, replies, usage if asked else None), Family.CHAT, charge=charge)
    choices = [_choice(number, reply) for number, reply in enumerate(replies)]
    value = {**base, "object": "chat.completion", "choices": choices, "usage": usage}
    return json_answer(value, family=Family.CHAT, charge=charge)


def stream(base: dict[str, Any], replies: list[Reply], usage: dict[str, Any] | None) -> Iterator[bytes]:
    """The chunks: a role, the pieces, a finish reason for each choice, the usage when asked for, and the end mark."""
    rest: dict[str, Any] = {} if usage is None else {"usage": None}

    def chunk(number: int, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": number, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**base, "object": "chat.completion.chunk", "choices": [choice], **rest})

    for number, reply in enumerate(replies):
        yield chunk(number, {"role": "assistant", "content": None if reply.call else "", "refusal": None})
        for piece in reply.pieces:
            yield chunk(number, {"content": piece})
        if reply.call:
            name, arguments = reply.call
            opened = {
                "index": 0,
                "id": _call_id(reply),
                "type": "function",
                "function": {"name": name, "arguments": ""},
            }
            yield chunk(number, {"tool_calls": [opened]})
            for start in range(0, len(arguments), 16):
                part = arguments[start : start + 16]
                yield chunk(number, {"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        yield chunk(number, {}, FINISH[reply.finish])
    if usage is not None:
        yield event({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _question(body: dict[str, Any], model: Model) -> Question:
    tools = {tool["function"]["name"]: tool["function"].get("parameters") for tool in body.get("tools") or []}
    budget = body.get("max_completion_tokens") or body.get("max_tokens")
    reasons = Trait.REASONING in model.traits
    stop = body.get("stop") or []
    chosen = body.get("tool_choice")
    return Question(
        canonical(body),
        last_user_text(body["messages"]),
        tools,
        forced=_forced(chosen, tools),
        may_call=chosen != "none",
        schema=((body.get("response_format") or {}).get("json_schema") or {}).get("schema"),
        budget=budget,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        reasoning=_reasoning(body, model),
        starved=reasons and is_starved(budget),
    )


def _forced(chosen: Any, tools: dict[str, Any]) -> str | None:
    if isinstance(chosen, dict):
        name = (chosen.get("function") or {}).get("name")
        if name not in tools:
            raise bad_parameter("tool_choice names a function that is not among the tools")
        return str(name)
    if chosen not in (None, "auto", "none", "required"):
        raise bad_parameter("tool_choice must be auto, none, required or an object naming a function")
    if chosen == "required" and not tools:
        raise bad_parameter("tool_choice required needs tools")
    return ANY_TOOL if chosen == "required" else None


def _reasoning(body: dict[str, Any], model: Model) -> int:
    """Tokens a reasoning model spends before it speaks; dynamic budgets count as medium."""
    if Trait.REASONING in model.traits:
        effort = body.get("reasoning_effort")
        if effort and body.get("tools") and Trait.NO_EFFORT_WITH_TOOLS in model.traits:
            # The model refused the pair; the gateway dropped the effort and asked again.
            effort = None
        return reasoning_tokens(effort)
    if budget := body.get("thinking_budget"):
        return reasoning_tokens(None) if budget == -1 else min(int(budget), 512)
    if level := body.get("thinking_level"):
        return reasoning_tokens(level)
    return 0


def _usage(body: dict[str, Any], replies: list[Reply]) -> dict[str, Any]:
    asked = [body["messages"], body.get("tools") or [], body.get("response_format") or {}]
    prompt = input_tokens(asked) + 4 * len(body["messages"])
    said = sum(reply.output for reply in replies)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": said,
        "total_tokens": prompt + said,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": sum(reply.reasoning for reply in replies), "audio_tokens": 0},
    }


def _choice(number: int, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.call:
        name, arguments = reply.call
        function = {"name": name, "arguments": arguments}
        message["content"] = None
        message["tool_calls"] = [{"id": _call_id(reply), "type": "function", "function": function}]
    return {"index": number, "message": message, "logprobs": None, "finish_reason": FINISH[reply.finish]}


def _call_id(reply: Reply) -> str:
    return hex_id("call_", orjson.dumps(reply.call))
