"""Chat completions: the parameters and rules of the documentation, answers as JSON and as a stream."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from proxy.emulator.answers import Answer, Family, bad_parameter, event, event_answer, json_answer
from proxy.emulator.assumptions import CREATED
from proxy.emulator.catalog import Model, Trait
from proxy.emulator.lookup import chat_model
from proxy.emulator.mind import ANY_TOOL, Finish, Question, Reply, canonical, is_starved, reasoning_tokens, reply_to
from proxy.emulator.shapes import Field, Shape, read_shaped
from proxy.emulator.words import hex_id, input_tokens, last_user_text
from proxy.emulator.world import Call, World

STOP_MAX: Final = 4
TEMPERATURE_MAX: Final = 2
THINKING_BUDGET_MAX: Final = 8192
CHOICES_MAX: Final = 8
ROLES: Final = ("system", "developer", "user", "assistant", "tool")
"""The documented roles, and `tool`, which the format cannot do without."""

# fmt: off
PART: Final = (
    Field("type",                  Shape.STRING, required=True),
    Field("text",                  Shape.STRING),
)
MESSAGE: Final = (
    Field("role",                  Shape.STRING, required=True, choices=ROLES),
    Field("content",               Shape.TEXT_OR_PARTS, inside=PART),
)
FUNCTION: Final = (
    Field("name",                  Shape.STRING, required=True),
    Field("parameters",            Shape.OBJECT),
)
FORMAT: Final = (
    Field("name",                  Shape.STRING),
    Field("strict",                Shape.BOOLEAN),
    Field("schema",                Shape.OBJECT),
)
FIELDS: Final = (
    Field("model",                 Shape.STRING, required=True),
    Field("messages",              Shape.ARRAY,  required=True, inside=MESSAGE),
    Field("stream",                Shape.BOOLEAN),
    Field("stream_options",        Shape.OBJECT, inside=(Field("include_usage", Shape.BOOLEAN),)),
    Field("temperature",           Shape.NUMBER),
    Field("top_p",                 Shape.NUMBER),
    Field("top_k",                 Shape.INTEGER),
    Field("max_tokens",            Shape.INTEGER),
    Field("max_completion_tokens", Shape.INTEGER),
    Field("n",                     Shape.INTEGER),
    Field("stop",                  Shape.TEXT_OR_PARTS, each=Shape.STRING),
    Field("tools",                 Shape.ARRAY, inside=(Field("type", Shape.STRING, required=True),
                                                        Field("function", Shape.OBJECT, True, FUNCTION))),
    Field("tool_choice",           Shape.TEXT_OR_OBJECT, inside=(Field("function", Shape.OBJECT, inside=FUNCTION),)),
    Field("response_format",       Shape.OBJECT, inside=(Field("type", Shape.STRING, required=True),
                                                         Field("json_schema", Shape.OBJECT, inside=FORMAT))),
    Field("reasoning_effort",      Shape.STRING),
    Field("thinking_budget",       Shape.INTEGER),
    Field("thinking_level",        Shape.STRING),
)
# fmt: on

FINISH: Final = {Finish.STOP: "stop", Finish.SEQUENCE: "stop", Finish.LENGTH: "length", Finish.TOOLS: "tool_calls"}
LEVELS: Final = {
    Trait.THINKING_LEVEL: ("minimal", "low", "medium", "high"),
    Trait.THINKING_LEVEL_SHORT: ("low", "high"),
}


def complete(world: World, call: Call) -> Answer:
    body = read_shaped(call.body, FIELDS)
    model = chat_model(body["model"])
    _check_ranges(body)
    _check_model_rules(body, model)
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


def _check_ranges(body: dict[str, Any]) -> None:
    """Values outside the documented ranges."""
    temperature = body.get("temperature")
    if temperature is not None and not 0 <= temperature <= TEMPERATURE_MAX:
        raise bad_parameter(f"temperature must be between 0 and {TEMPERATURE_MAX}")
    stop = body.get("stop")
    if isinstance(stop, list) and len(stop) > STOP_MAX:
        raise bad_parameter(f"stop takes at most {STOP_MAX} sequences")
    effort = body.get("reasoning_effort")
    if effort not in (None, "low", "medium", "high"):
        raise bad_parameter("reasoning_effort must be low, medium or high")
    if not body["messages"]:
        raise bad_parameter("messages must not be empty")
    for name in ("max_tokens", "max_completion_tokens"):
        if (body.get(name) or 1) < 1:
            raise bad_parameter(f"{name} must be at least 1")
    if not 1 <= (1 if body.get("n") is None else body["n"]) <= CHOICES_MAX:
        raise bad_parameter(f"n must be between 1 and {CHOICES_MAX}")
    for message in body["messages"]:
        if message["role"] in ("system", "developer", "user") and message.get("content") is None:
            raise bad_parameter(f"a {message['role']} message needs content")
    for tool in body.get("tools") or []:
        if tool["type"] != "function":
            raise bad_parameter("tools are function definitions")
    _check_format(body.get("response_format"))


def _check_format(asked: dict[str, Any] | None) -> None:
    """Structured output needs `strict` and closed objects, all the way down."""
    if asked is None or asked.get("type") in ("text", "json_object"):
        return
    given = asked.get("json_schema")
    if asked.get("type") != "json_schema" or not isinstance(given, dict):
        raise bad_parameter("response_format needs type json_schema and a json_schema object")
    if not isinstance(given.get("name"), str) or given.get("strict") is not True:
        raise bad_parameter("json_schema needs a name and strict = true")
    if not is_closed(given.get("schema")):
        raise bad_parameter("json_schema.schema must be a valid schema with additionalProperties = false")


def is_closed(schema: Any, *, root: bool = True) -> bool:
    """Whether every object in the schema refuses additional properties."""
    if isinstance(schema, list):
        return all(is_closed(inner, root=False) for inner in schema)
    if not isinstance(schema, dict):
        return not root
    is_object = root or schema.get("type") == "object"
    if is_object and (
        schema.get("additionalProperties") is not False or not isinstance(schema.get("properties"), dict)
    ):
        return False
    named = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    return is_closed([*named, *(schema.get(name) for name in ("items", "anyOf") if name in schema)], root=False)


def _check_model_rules(body: dict[str, Any], model: Model) -> None:
    """What only some models take."""
    has = model.traits.__contains__
    if has(Trait.TEMPERATURE_ONE) and body.get("temperature") not in (None, 1):
        raise bad_parameter(f"Model '{model.name}' accepts only temperature = 1")
    if body.get("top_k") is not None and not has(Trait.NATIVE):
        raise bad_parameter(f"Model '{model.name}' does not take top_k")
    budget, level = body.get("thinking_budget"), body.get("thinking_level")
    if budget is not None and level is not None:
        raise bad_parameter("thinking_budget and thinking_level are mutually exclusive")
    if budget is not None and not has(Trait.THINKING_BUDGET):
        raise bad_parameter(f"Model '{model.name}' does not take thinking_budget")
    if budget is not None and not (budget == -1 or 0 <= budget <= THINKING_BUDGET_MAX):
        raise bad_parameter(f"thinking_budget must be between 0 and {THINKING_BUDGET_MAX}, or -1")
    levels = next((words for trait, words in LEVELS.items() if has(trait)), ())
    if level is not None and level not in levels:
        raise bad_parameter(f"Model '{model.name}' does not take thinking_level {level}")


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
