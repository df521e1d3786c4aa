"""Arguments that a tool wants repeated in header lines (`x-mcp-header`), and whether a header repeats them. Pure.

What is in between may route a call by these lines, so a line must not say anything else than the arguments do.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

MARK: Final = "x-mcp-header"
PREFIX: Final = "mcp-param-"
"""Begins the names of the lines, in lower case; what the tool's schema says is the rest."""

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_VISIBLE: Final = re.compile(r"[\t\x20-\x7e]*")
_WRAPPED: Final = re.compile(r"=\?base64\?(.*)\?=")
_NUMBER: Final = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?")

# fmt: off
_ONE:   Final = frozenset({"items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "if",
                           "then", "else", "not", "unevaluatedProperties", "contentSchema"})
_SOME:  Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})
# fmt: on
"""Keywords of JSON Schema whose value is a schema, a list of them, or a mapping to them; `properties` besides."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """path: names that lead from the arguments to one of them.      line: its header line, in lower case."""

    path: tuple[str, ...]
    line: str


class WrongMark(ValueError):
    """A mark that the revision does not allow; its tool is none for clients of the revision."""


def mirrors(schema: Any) -> tuple[Mirror, ...]:
    """The arguments that a tool's `inputSchema` marks. Raises WrongMark."""
    found: dict[str, Mirror] = {}
    for path, place in _places(schema):
        if MARK not in place:
            continue
        name = place[MARK]
        if not path:
            raise WrongMark(f"{MARK} stands elsewhere than at a property that nothing but properties leads to")
        where = ".".join(path)
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise WrongMark(f"{MARK} of {where} is no name of a header line")
        if not isinstance(place.get("type"), str) or place["type"] not in _TYPES:
            raise WrongMark(f"{where} has {MARK} and is no string, integer or boolean")
        line = PREFIX + name.lower()
        if line in found:
            raise WrongMark(f"{MARK} of {where} is that of {'.'.join(found[line].path)}, too")
        found[line] = Mirror(path, line)
    return tuple(found.values())


def _places(root: Any) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Every schema within a schema, with the names that lead to it; None where other keywords than `properties` do."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        yield path, schema
        for word, value in schema.items():
            if word == "properties" and isinstance(value, dict):
                waiting += [(None if path is None else (*path, name), below) for name, below in value.items()]
            elif word in _ONE:
                waiting.append((None, value))
            elif word in _SOME and isinstance(value, list):
                waiting += [(None, below) for below in value]
            elif word in _NAMED and isinstance(value, dict):
                waiting += [(None, below) for below in value.values()]


def mismatch(marked: Sequence[Mirror], arguments: Any, lines: Iterable[tuple[str, str]]) -> str | None:
    """What a call's header says otherwise than its arguments, as a sentence; None where they agree."""
    sent: dict[str, list[str]] = {}
    for name, value in lines:
        sent.setdefault(name.lower(), []).append(value)
    for mirror in marked:
        came, wanted = sent.get(mirror.line, []), _said(arguments, mirror.path)
        if len(came) > 1:
            return f"The header {mirror.line} came more than once."
        if wanted is None and came:
            return f"The header {mirror.line} came, and the argument {'.'.join(mirror.path)} did not."
        if wanted is not None and not came:
            return f"The argument {'.'.join(mirror.path)} came, and the header {mirror.line} did not."
        if wanted is not None and not _agrees(unwrapped(came[0]), wanted):
            return f"The header {mirror.line} does not say what the argument {'.'.join(mirror.path)} says."
    return None


def _said(arguments: Any, path: Sequence[str]) -> str | Decimal | None:
    """An argument as it is compared; None for one that is absent, null, or cannot stand in a header."""
    value = arguments
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return Decimal(repr(value))
    return value if isinstance(value, str) else None


def _agrees(came: str | None, wanted: str | Decimal) -> bool:
    """Numbers are compared as numbers: 42.0 is 42."""
    if isinstance(wanted, str) or came is None:
        return came == wanted
    return _NUMBER.fullmatch(came) is not None and Decimal(came) == wanted


def repeated(marked: Sequence[Mirror], arguments: Any) -> dict[str, str]:
    """The header lines that repeat a call's arguments."""
    found = ((mirror.line, _said(arguments, mirror.path)) for mirror in marked)
    return {line: wrapped(said if isinstance(said, str) else f"{said:f}") for line, said in found if said is not None}


def wrapped(text: str) -> str:
    """A text as a header's value, wrapped where it could not stand in one or would be taken for a wrapping."""
    if _VISIBLE.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def unwrapped(value: str | None) -> str | None:
    """A header's value, out of the wrapping for what a header cannot carry.

    None for what no client may send: bytes that are not ASCII outside of a wrapping, and a wrapping that holds no text.
    """
    if value is None or not _VISIBLE.fullmatch(value):
        return None
    wrapped = _WRAPPED.fullmatch(value)
    if wrapped is None:
        return value
    try:
        inside = base64.b64decode(wrapped[1], validate=True)
        # One text has one wrapping; bits that count for nothing would make a second one.
        return inside.decode() if base64.b64encode(inside).decode() == wrapped[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None
