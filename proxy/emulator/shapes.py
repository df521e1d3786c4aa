"""Shapes of JSON bodies as tables, and the 422 items that say where a body does not fit one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from proxy.emulator.answers import unprocessable

Problem = dict[str, Any]


class Shape(Enum):
    """What a field may hold: the types accepted, the word of the 422 item and its sentence."""

    STRING = (str,), "string_type", "Input should be a valid string"
    INTEGER = (int,), "int_type", "Input should be a valid integer"
    NUMBER = (int, float), "float_type", "Input should be a valid number"
    BOOLEAN = (bool,), "bool_type", "Input should be a valid boolean"
    OBJECT = (dict,), "dict_type", "Input should be a valid dictionary"
    ARRAY = (list,), "list_type", "Input should be a valid list"
    TEXT_OR_PARTS = (str, list), "string_type", "Input should be a valid string or list"
    TEXT_OR_OBJECT = (str, dict), "string_type", "Input should be a valid string or dictionary"

    def fits(self, value: Any) -> bool:
        if isinstance(value, bool):
            return self is Shape.BOOLEAN
        return isinstance(value, self.value[0])


@dataclass(frozen=True, slots=True)
class Field:
    """One row of a body's table.

    inside:  the fields of the object, or of each object in the array.
    each:    what every item of the array, or every value of the object, must be where those are no objects.
    choices: the only words taken.
    """

    name: str
    shape: Shape
    required: bool = False
    inside: tuple["Field", ...] = ()
    each: Shape | None = None
    choices: tuple[str, ...] = ()


def problem(kind: str, loc: tuple[str | int, ...], message: str, value: Any) -> Problem:
    return {"type": kind, "loc": list(loc), "msg": message, "input": value}


def read_object(body: bytes) -> dict[str, Any]:
    """The body as a JSON object; raises the 422 that names what is wrong."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        item = problem("json_invalid", ("body", error.pos), "JSON decode error", {}) | {"ctx": {"error": error.msg}}
        raise unprocessable([item]) from None
    if not isinstance(value, dict):
        sentence = "Input should be a valid dictionary or object to extract fields from"
        raise unprocessable([problem("model_attributes_type", ("body",), sentence, value)])
    return value


def read_shaped(body: bytes, fields: Iterable[Field]) -> dict[str, Any]:
    """The body as an object that fits the table; raises one 422 with everything that does not."""
    value = read_object(body)
    if found := list(problems(value, fields, ("body",))):
        raise unprocessable(found)
    return value


def problems(value: dict[str, Any], fields: Iterable[Field], loc: tuple[str | int, ...]) -> Iterator[Problem]:
    """Everything in an object that does not fit its table."""
    for field in fields:
        here = (*loc, field.name)
        given = value.get(field.name)
        if field.name not in value and field.required:
            yield problem("missing", here, "Field required", value)
        elif given is not None or field.required:
            yield from _misfits(given, field, here)


def _misfits(given: Any, field: Field, here: tuple[str | int, ...]) -> Iterator[Problem]:
    if not field.shape.fits(given):
        yield _of_other_shape(given, field.shape, here)
    elif isinstance(given, str) and field.choices and given not in field.choices:
        *head, last = (f"'{word}'" for word in field.choices)
        expected = f"{', '.join(head)} or {last}" if head else last
        item = problem("literal_error", here, f"Input should be {expected}", given)
        yield item | {"ctx": {"expected": expected}}
    elif isinstance(given, dict) and field.inside:
        yield from problems(given, field.inside, here)
    elif isinstance(given, dict | list) and (field.inside or field.each):
        wanted = field.each or Shape.OBJECT
        for place, item in given.items() if isinstance(given, dict) else enumerate(given):
            if not wanted.fits(item):
                yield _of_other_shape(item, wanted, (*here, place))
            elif field.inside:
                yield from problems(item, field.inside, (*here, place))


def _of_other_shape(given: Any, shape: Shape, here: tuple[str | int, ...]) -> Problem:
    _, kind, sentence = shape.value
    return problem(kind, here, sentence, given)
