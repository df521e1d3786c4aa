"""What a Responses-style request may hold: its fields as a table, and the ranges."""

from typing import Any, Final

from proxy.emulator.answers import bad_parameter
from proxy.emulator.catalog import Model, Trait
from proxy.emulator.rooms.chat_body import is_closed
from proxy.emulator.shapes import Field, Shape

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


def check_ranges(body: dict[str, Any], model: Model) -> None:
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
