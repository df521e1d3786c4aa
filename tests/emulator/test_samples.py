import pytest

from proxy.emulator.samples import sample
from proxy.emulator.words import Dice

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}}}},
}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "string"}, lambda value: isinstance(value, str)),
        ({"type": "string", "minLength": 20}, lambda value: len(value) >= 20),
        ({"type": "string", "maxLength": 2}, lambda value: len(value) <= 2),
        ({"type": "integer"}, lambda value: type(value) is int),
        ({"type": "integer", "minimum": 40}, lambda value: value >= 40),
        ({"type": "integer", "exclusiveMinimum": 6, "maximum": 7}, lambda value: value == 7),
        ({"type": "number", "maximum": -5}, lambda value: value <= -5),
        ({"type": "boolean"}, lambda value: isinstance(value, bool)),
        ({"type": "null"}, lambda value: value is None),
        ({"type": ["integer", "null"]}, lambda value: type(value) is int),
        ({"enum": ["a", "b"]}, lambda value: value in ("a", "b")),
        ({"const": 5}, lambda value: value == 5),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, lambda value: isinstance(value, bool)),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 3}, lambda value: len(value) == 3),
        ({"properties": {"a": {"type": "boolean"}}}, lambda value: value.keys() == {"a"}),
        ({}, lambda value: isinstance(value, str)),
        (TREE, lambda value: "left" in value),
        (None, lambda value: value is None),
    ],
)
def test_a_value_fits_its_schema(schema, fits):
    for key in range(30):
        value = sample(schema, Dice(key))
        assert fits(value), value
        assert value == sample(schema, Dice(key))
