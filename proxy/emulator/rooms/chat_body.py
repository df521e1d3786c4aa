"""What a chat completion request may hold: its fields as a table, the ranges, and what only some models take."""

from typing import Any, Final

from proxy.emulator.answers import bad_parameter
from proxy.emulator.catalog import Model, Trait
from proxy.emulator.shapes import Field, Shape

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

LEVELS: Final = {
    Trait.THINKING_LEVEL: ("minimal", "low", "medium", "high"),
    Trait.THINKING_LEVEL_SHORT: ("low", "high"),
}


def check_ranges(body: dict[str, Any]) -> None:
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


def check_model_rules(body: dict[str, Any], model: Model) -> None:
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
