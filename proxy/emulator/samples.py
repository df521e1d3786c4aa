"""Values for a JSON schema: what the emulated models fill into tool arguments and structured outputs."""

from typing import Any, Final

from proxy.emulator.words import Dice

DEPTH_MAX: Final = 12
"""A schema that refers to itself ends here with null."""

SIZE_MAX: Final = 1000
"""Most items and characters that a least length is honoured for."""


def sample(schema: Any, dice: Dice, root: Any = None, depth: int = 0) -> Any:
    """One value that fits `schema`, the same for the same dice. What makes no sense in a schema is passed over."""
    root = schema if root is None else root
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return None
    if reference := _given(schema, "$ref", str):
        return sample(_lookup(root, reference), dice, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if words := _given(schema, "enum", list):
        return words[dice.below(len(words))]
    for name in ("anyOf", "oneOf", "allOf"):
        if choices := _given(schema, name, list):
            return sample(choices[0], dice, root, depth + 1)
    return _of_type(schema, dice, root, depth)


def _of_type(schema: dict[str, Any], dice: Dice, root: Any, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            fields = _given(schema, "properties", dict) or {}
            return {name: sample(inner, dice, root, depth + 1) for name, inner in fields.items()}
        case "array":
            count = min(max(_given(schema, "minItems", int) or 1, 1), SIZE_MAX)
            return [sample(schema.get("items", {"type": "string"}), dice, root, depth + 1) for _ in range(count)]
        case "integer" | "number":
            low, high = _bounds(schema)
            return low + dice.below(max(1, int(high - low) + 1))
        case "boolean":
            return dice.below(2) == 1
        case "null":
            return None
        case _:
            least = min(_given(schema, "minLength", int) or 0, SIZE_MAX)
            return dice.word().ljust(least, "x")[: _given(schema, "maxLength", int)]


def _bounds(schema: dict[str, Any]) -> tuple[Any, Any]:
    """The least and the greatest number to choose: 0 to 9 where the schema leaves it open."""
    low, high = _given(schema, "minimum", int, float), _given(schema, "maximum", int, float)
    if low is None and (above := _given(schema, "exclusiveMinimum", int, float)) is not None:
        low = above + 1
    if high is None and (below := _given(schema, "exclusiveMaximum", int, float)) is not None:
        high = below - 1
    if low is None:
        low = 0 if high is None else min(0, high)
    return low, max(9, low) if high is None else high


def _given(schema: dict[str, Any], name: str, *kinds: type) -> Any:
    """A keyword of the schema, None where it is absent or of a kind it cannot be."""
    value = schema.get(name)
    return value if isinstance(value, kinds) and not isinstance(value, bool) else None


def _lookup(root: Any, reference: str) -> Any:
    """Follow `#/a/b` inside the root schema."""
    found = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            found = found.get(part) if isinstance(found, dict) else None
    return found
