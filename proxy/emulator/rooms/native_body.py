"""What a native request may hold, judged as the vendor judges it: the first mistake is a 400 in the vendor's form."""

from typing import Any, Final

from proxy.emulator.answers import Refused, json_answer
from proxy.emulator.catalog import Model, Trait
from proxy.emulator.lookup import native_model
from proxy.emulator.shapes import Field, Shape, problems, read_object
from proxy.emulator.world import Call, World

VERSION: Final = "2023-06-01"
TEMPERATURE_MAX: Final = 1
THINKING_BUDGET_MIN: Final = 1024

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


def judged(world: World, call: Call, fields: tuple[Field, ...]) -> tuple[dict[str, Any], Model]:
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


def check_ranges(body: dict[str, Any], model: Model) -> None:
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


def vendor_error(text: str, kind: str = "invalid_request_error", status: int = 400) -> Refused:
    """An error in the vendor's own form: the gateway passes it through."""
    return Refused(json_answer({"type": "error", "error": {"type": kind, "message": text}}, status=status))
