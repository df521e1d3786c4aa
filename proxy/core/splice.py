"""One value of a JSON body changed, all other bytes as they came.

For judged bodies only: what is no JSON object ends in an exception or in nonsense.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson


class Member(NamedTuple):
    """Where one top-level member stands: bytes [name_start, name_end) with quotes, and [start, end) of its value."""

    name_start: int
    name_end: int
    start: int
    end: int


Edit = tuple[int, int, bytes]
"""Bytes [start, end) are replaced."""

_GAP: Final = re.compile(rb"[\s,:]*+")
_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_VALUE: Final = re.compile(_TEXT + rb"|[^\s,:\"{}\[\]]++", re.DOTALL)
_NESTING: Final = re.compile(_TEXT + rb"|([{\[]++)|([}\]])", re.DOTALL)


def members(body: bytes) -> dict[str, Member]:
    """The top-level members of a judged object. Costs as much as judging: only rules that rewrite call it."""
    found: dict[str, Member] = {}
    at = _gap(body, body.index(b"{") + 1)
    while body[at] == 0x22:
        name_start, name_end = at, _value_end(body, at)
        start = _gap(body, name_end)
        end = _value_end(body, start)
        found[orjson.loads(body[name_start:name_end])] = Member(name_start, name_end, start, end)
        at = _gap(body, end)
    return found


def _gap(body: bytes, at: int) -> int:
    found = _GAP.match(body, at)
    return found.end() if found else at


def _value_end(body: bytes, at: int) -> int:
    if found := _VALUE.match(body, at):
        return found.end()
    depth = 0
    for step in _NESTING.finditer(body, at):
        if step[1]:
            depth += len(step[1])
        elif step[2]:
            depth -= 1
            if depth == 0:
                return step.end()
    raise ValueError("the body was not judged: a value does not end")


def splice(body: bytes, edits: Iterable[Edit]) -> bytes:
    """The body with these edits, which must not overlap; every other byte stays as it came."""
    pieces, at = [], 0
    for start, end, instead in sorted(edits):
        if start < at:
            raise ValueError("edits overlap")
        pieces += [body[at:start], instead]
        at = end
    return b"".join([*pieces, body[at:]])


def addition(body: bytes, name: str, value: Any) -> Edit:
    """The edit that puts one more member in front of the others."""
    at = body.index(b"{") + 1
    comma = b"" if body[_gap(body, at)] == 0x7D else b","
    return at, at, orjson.dumps(name) + b":" + orjson.dumps(value) + comma


def removal(body: bytes, member: Member) -> Edit:
    """The edit that takes a member out, and the comma that joined it to a neighbour."""
    before, after = body[: member.name_start], body[member.end :]
    kept = before.rstrip()
    if kept.endswith(b","):
        return len(kept) - 1, member.end, b""
    gap = len(after) - len(after.lstrip().removeprefix(b","))
    return member.name_start, member.end + gap, b""


def renamed(body: bytes, names: dict[str, str]) -> bytes:
    """The body with top-level members under other names; one whose new name is taken stays as it is."""
    found = members(body)
    edits = [
        (member.name_start, member.name_end, orjson.dumps(names[name]))
        for name, member in found.items()
        if name in names and names[name] not in found
    ]
    return splice(body, edits) if edits else body
