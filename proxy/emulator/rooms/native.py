"""The vendor-native messages: judged as the vendor judges, answered in its blocks and events, and token counting."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from proxy.emulator.answers import Answer, Family, Refused, event, event_answer, json_answer
from proxy.emulator.assumptions import CACHE_TTL_S
from proxy.emulator.catalog import Model, Trait
from proxy.emulator.lookup import native_model
from proxy.emulator.mind import ANY_TOOL, Finish, Question, Reply, canonical, reasoning_tokens, reply_to
from proxy.emulator.shapes import Field, Shape, problems, read_object
from proxy.emulator.words import hex_id, input_tokens, last_user_text
from proxy.emulator.world import Call, World

VERSION: Final = "2023-06-01"
TEMPERATURE_MAX: Final = 1
THINKING_BUDGET_MIN: Final = 1024
SIMPLE_CHARS: Final = 80
"""A question shorter than this is simple: effort medium answers it without thinking."""

# fmt: off
BLOCK: Final = (
    Field("type",          Shape.STRING,        required=True),
    Field("text",          Shape.STRING),
)
MESSAGE: Final = (
    Field("role",          Shape.STRING,        required=True, choices=("user", "assistant")),
    Field("content",       Shape.TEXT_OR_PARTS, required=True, inside=BLOCK),
)
TOOL: Final = (
    Field("name",          Shape.STRING,        required=True),
    Field("input_schema",  Shape.OBJECT),
)
COUNT_FIELDS: Final = (
    Field("model",         Shape.STRING,        required=True),
    Field("messages",      Shape.ARRAY,         required=True, inside=MESSAGE),
    Field("system",        Shape.TEXT_OR_PARTS, inside=BLOCK),
    Field("tools",         Shape.ARRAY,         inside=TOOL),
    Field("tool_choice",   Shape.OBJECT,        inside=(Field("type", Shape.STRING), Field("name", Shape.STRING))),
    Field("thinking",      Shape.OBJECT,        inside=(Field("type", Shape.STRING),
                                                        Field("budget_tokens", Shape.INTEGER))),
    Field("output_config", Shape.OBJECT,        inside=(Field("effort", Shape.STRING),)),
)
FIELDS: Final = (
    *COUNT_FIELDS,
    Field("max_tokens",     Shape.INTEGER, required=True),
    Field("stream",         Shape.BOOLEAN),
    Field("temperature",    Shape.NUMBER),
    Field("stop_sequences", Shape.ARRAY,   each=Shape.STRING),
)
# fmt: on

STOP_REASON: Final = {
    Finish.STOP: "end_turn",
    Finish.SEQUENCE: "stop_sequence",
    Finish.LENGTH: "max_tokens",
    Finish.TOOLS: "tool_use",
}


def message(world: World, call: Call) -> Answer:
    body, model = _judged(world, call, FIELDS)
    _check_ranges(body, model)
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
    body, _ = _judged(world, call, COUNT_FIELDS)
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


def vendor_error(text: str, kind: str = "invalid_request_error", status: int = 400) -> Refused:
    """An error in the vendor's own form: the gateway passes it through."""
    return Refused(json_answer({"type": "error", "error": {"type": kind, "message": text}}, status=status))


def _judged(world: World, call: Call, fields: tuple[Field, ...]) -> tuple[dict[str, Any], Model]:
    """The body after the gateway looked for the model and the vendor for everything else."""
    body = read_object(call.body)
    model = native_model(body["model"]) if isinstance(body.get("model"), str) else None
    header = f"{world.options.segment}-version"
    version = call.headers.get(header)
    if version is None:
        raise vendor_error(f"{header}: header is required")
    if version != VERSION:
        raise vendor_error(f"{header}: {version!r} is not a valid version")
    found = next(iter(problems(body, fields, ())), None)
    if found is not None or model is None:
        where = ".".join(map(str, found["loc"])) if found else "model"
        raise vendor_error(f"{where}: {found['msg'] if found else 'Field required'}")
    if not body["messages"]:
        raise vendor_error("messages: at least one message is required")
    return body, model


def _check_ranges(body: dict[str, Any], model: Model) -> None:
    if body["max_tokens"] < 1:
        raise vendor_error("max_tokens: must be at least 1")
    temperature = body.get("temperature")
    if temperature is not None and not 0 <= temperature <= TEMPERATURE_MAX:
        raise vendor_error(f"temperature: range: 0..{TEMPERATURE_MAX}")
    effort = (body.get("output_config") or {}).get("effort")
    if effort not in (None, "low", "medium", "high", "max"):
        raise vendor_error("output_config.effort: must be low, medium, high or max")
    if effort == "max" and Trait.EFFORT_MAX not in model.traits:
        raise vendor_error(f"output_config.effort: max is not supported by {model.name}")
    thinking = body.get("thinking") or {}
    if (thinking.get("type") or "disabled") not in ("adaptive", "enabled", "disabled"):
        raise vendor_error("thinking.type: must be adaptive, enabled or disabled")
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or not THINKING_BUDGET_MIN <= budget < body["max_tokens"]:
            raise vendor_error(f"thinking.budget_tokens: from {THINKING_BUDGET_MIN} to below max_tokens")


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
