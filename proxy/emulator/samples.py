"""Values for a JSON schema: what the emulated models fill into tool arguments and structured outputs."""

from typing import Any, Final

from proxy.emulator.words import Dice

DEPTH_MAX: Final = 12
"""A schema that refers to itself ends here with null."""


def sample(schema: Any, dice: Dice, root: Any = None, depth: int = 0) -> Any:
    """One value that fits `schema`, the same for the same dice."""
    root = schema if root is None else root
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return sample(_lookup(root, reference), dice, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if enum := schema.get("enum"):
        return enum[dice.below(len(enum))]
    for choice in ("anyOf", "oneOf", "allOf"):
        if options := schema.get(choice):
            return sample(options[0], dice, root, depth + 1)
    return _of_type(schema, dice, root, depth)


def _of_type(schema: dict[str, Any], dice: Dice, root: Any, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            fields = schema.get("properties") or {}
            return {name: sample(inner, dice, root, depth + 1) for name, inner in fields.items()}
        case "array":
            count = max(schema.get("minItems", 1), 1)
            return [sample(schema.get("items", {"type": "string"}), dice, root, depth + 1) for _ in range(count)]
        case "integer" | "number":
            low, high = _bounds(schema)
            return low + dice.below(max(1, int(high - low) + 1))
        case "boolean":
            return dice.below(2) == 1
        case "null":
            return None
        case _:
            return dice.word().ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]


def _bounds(schema: dict[str, Any]) -> tuple[Any, Any]:
    """The least and the greatest number to choose: 0 to 9 where the schema leaves it open."""
    low = schema.get("minimum", schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else None)
    high = schema.get("maximum", schema["exclusiveMaximum"] - 1 if "exclusiveMaximum" in schema else None)
    if low is None:
        low = 0 if high is None else min(0, high)
    return low, max(9, low) if high is None else high


def _lookup(root: Any, reference: str) -> Any:
    """Follow `#/a/b` inside the root schema."""
    found = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            found = found.get(part) if isinstance(found, dict) else None
    return found
