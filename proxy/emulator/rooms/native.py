"""The vendor-native messages: judged as the vendor judges, answered in its blocks and events, and token counting."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from proxy.emulator.answers import Answer, Family, event, event_answer, json_answer
from proxy.emulator.assumptions import CACHE_TTL_S
from proxy.emulator.catalog import Model
from proxy.emulator.mind import ANY_TOOL, Finish, Question, Reply, canonical, reasoning_tokens, reply_to
from proxy.emulator.rooms.native_body import COUNT_FIELDS, FIELDS, check_ranges, judged, vendor_error
from proxy.emulator.words import hex_id, input_tokens, last_user_text
from proxy.emulator.world import Call, World

SIMPLE_CHARS: Final = 80
"""A question shorter than this is simple: effort medium answers it without thinking."""

STOP_REASON: Final = {
    Finish.STOP: "end_turn",
    Finish.SEQUENCE: "stop_sequence",
    Finish.LENGTH: "max_tokens",
    Finish.TOOLS: "tool_use",
}


def message(world: World, call: Call) -> Answer:
    body, model = judged(world, call, FIELDS)
    check_ranges(body, model)
    question = _question(body)
    world.reserve(call)
    reply = reply_to(question, world.options.seed)
    usage = _usage(world, call, body, reply)
    charge = _charge(usage, model)
    ident = hex_id("msg_", world.options.seed, call.body, call.turn)
    blocks = [] if question.starved else _blocks(reply)
    if body.get("stream") is True:
        return event_answer(stream(ident, model.name, blocks, reply, usage), Family.NATIVE, charge=charge)
    value = {
        "id": ident,
        "type": "message",
        "role": "assistant",
        "model": model.name,
        "content": blocks,
        "stop_reason": STOP_REASON[reply.finish],
        "stop_sequence": reply.sequence,
        "usage": usage,
    }
    return json_answer(value, family=Family.NATIVE, charge=charge)


def count_tokens(world: World, call: Call) -> Answer:
    body, _ = judged(world, call, COUNT_FIELDS)
    return json_answer({"input_tokens": _input(body)})


def stream(
    ident: str, model: str, blocks: list[dict[str, Any]], reply: Reply, usage: dict[str, Any]
) -> Iterator[bytes]:
    """All events of a message, each named as its type; a ping follows the first block's start."""

    def named(kind: str, **rest: Any) -> bytes:
        return event({"type": kind, **rest}, kind)

    start: dict[str, Any] = {"id": ident, "type": "message", "role": "assistant", "model": model, "content": [],
                             "stop_reason": None, "stop_sequence": None,
                             "usage": {**usage, "output_tokens": 1}}  # fmt: skip
    yield named("message_start", message=start)
    for index, block in enumerate(blocks):
        opened, deltas = _opened(block, reply)
        yield named("content_block_start", index=index, content_block=opened)
        if index == 0:
            yield named("ping")
        for delta in deltas:
            yield named("content_block_delta", index=index, delta=delta)
        yield named("content_block_stop", index=index)
    ended = {"stop_reason": STOP_REASON[reply.finish], "stop_sequence": reply.sequence}
    yield named("message_delta", delta=ended, usage={"output_tokens": usage["output_tokens"]})
    yield named("message_stop")


def _question(body: dict[str, Any]) -> Question:
    tools = {tool["name"]: tool.get("input_schema") for tool in body.get("tools") or []}
    text = last_user_text(body["messages"])
    reasoning = _reasoning(body, text)
    choice = body.get("tool_choice") or {}
    forced = {"any": ANY_TOOL, "tool": choice.get("name")}.get(choice.get("type") or "auto")
    if forced not in (None, ANY_TOOL) and forced not in tools:
        raise vendor_error("tool_choice.name: is not among the tools")
    return Question(
        canonical(body),
        text,
        tools,
        forced=forced,
        may_call=choice.get("type") != "none",
        budget=body["max_tokens"],
        stop=tuple(body.get("stop_sequences") or []),
        reasoning=reasoning,
        starved=bool(reasoning) and body["max_tokens"] <= reasoning,
    )


def _reasoning(body: dict[str, Any], text: str) -> int:
    """Thinking tokens: manual uses up to its budget, adaptive follows the effort, absent thinks nothing."""
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "enabled":
        return min(int(thinking["budget_tokens"]), 1024)
    if thinking.get("type") != "adaptive":
        return 0
    effort = (body.get("output_config") or {}).get("effort") or "high"
    simple = len(text) < SIMPLE_CHARS
    if effort == "low" or (effort == "medium" and simple):
        return 0
    return reasoning_tokens(effort)


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.thoughts:
        text = "".join(reply.thoughts)
        blocks.append({"type": "thinking", "thinking": text, "signature": hex_id("sig_", text)})
    if reply.call:
        name, arguments = reply.call
        ident = hex_id("toolu_", name, arguments)
        blocks.append({"type": "tool_use", "id": ident, "name": name, "input": orjson.loads(arguments)})
    else:
        blocks.append({"type": "text", "text": reply.text})
    return blocks


def _opened(block: dict[str, Any], reply: Reply) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as its stream begins it, and the deltas that fill it."""
    match block["type"]:
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in reply.thoughts]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
        case "tool_use":
            _, arguments = reply.call or ("", "{}")
            parts = [arguments[start : start + 16] for start in range(0, len(arguments), 16)]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ["", *parts]]
            return {**block, "input": {}}, deltas
        case _:
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in reply.pieces]


def _input(body: dict[str, Any]) -> int:
    parts = [body.get("system") or "", body.get("tools") or [], body["messages"]]
    return input_tokens(parts) + 4 * len(body["messages"])


def _usage(world: World, call: Call, body: dict[str, Any], reply: Reply) -> dict[str, int]:
    """Input, cache write and cache read exclude each other; their sum is all that was sent."""
    total = _input(body)
    marked = _marked_prefix(body)
    written = read = 0
    if marked is not None:
        prefix, size = marked
        now_s = world.clock.now_s()
        place = (call.member, hex_id("", body["model"], prefix))
        fresh = now_s < world.prefixes.get(place, -1.0)
        written, read = (0, size) if fresh else (size, 0)
        world.prefixes[place] = now_s + CACHE_TTL_S
    return {
        "input_tokens": max(0, total - written - read),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": reply.output,
    }


def _marked_prefix(body: dict[str, Any]) -> tuple[bytes, int] | None:
    """Everything up to the last `cache_control` mark, in the vendor's order tools, system, messages; and its tokens."""
    system = body.get("system") or []
    parts: list[Any] = [*(body.get("tools") or []), *(system if isinstance(system, list) else [system])]
    for said in body["messages"]:
        content = said["content"]
        parts.extend(content if isinstance(content, list) else [content])
    marks = [place for place, part in enumerate(parts) if isinstance(part, dict) and part.get("cache_control")]
    if not marks:
        return None
    prefix = parts[: marks[-1] + 1]
    return orjson.dumps(prefix, option=orjson.OPT_SORT_KEYS), input_tokens(prefix)


def _charge(usage: dict[str, int], model: Model) -> int:
    """Cache writes cost a quarter more than input, reads a tenth of it; the sum is rounded up to a whole unit."""
    hundredths = (
        usage["input_tokens"] * 100 + usage["cache_creation_input_tokens"] * 125 + usage["cache_read_input_tokens"] * 10
    ) * model.input_price
    return -(-hundredths // 100) + usage["output_tokens"] * model.output_price
