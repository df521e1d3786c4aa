"""YAML as plain values that know where they stand: dicts, lists, text, numbers, true, false and null.

YAML is read narrowly: no aliases, tags, merge keys or duplicate keys, one document, numbers in plain decimal digits.
Dates stay text. What is against that becomes a fault, and the rest is read all the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from ruamel.yaml import YAML
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

Steps = tuple[str | int, ...]
"""Keys (as text) and indexes from the top of a file to something in it."""
Position = tuple[int, int]
"""Line and column, from 0."""

DEPTH_MAX: Final = 50
"""Levels of lists and mappings in one another; no file of ours has ten."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong in a file, and where.

    breaks: whether nothing can be made of what stands there.
    covers: whether nothing more is to be said of what stands there.
    """

    steps: Steps
    at: Position
    what: str
    do: str = ""
    breaks: bool = True
    covers: bool = True


class Number(float):
    """A number with a point or an exponent that still knows how it was written, which is what money is read from."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


@dataclass(slots=True)
class Tree:
    """What stands in a text.

    value:  of the whole.   places: where each key and item stands.   faults: what is wrong, in the order of the text.
    again:  what stands under a key for the second time: the steps to it, and itself.
    """

    value: Any = None
    places: dict[Steps, Position] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    again: list[tuple[Steps, "Tree"]] = field(default_factory=list)


def fill(tree: Tree, name: str, text: str) -> None:
    """Read YAML into an empty tree. Raises YAMLError where it is none; what was found before is in the tree by then.

    name: of the file, for faults that point elsewhere in it.
    """
    _Reader(name, text, tree).whole()


class TooDeep(ValueError):
    """at: where it began to be."""

    def __init__(self, at: Position) -> None:
        super().__init__(f"lists and mappings stand in one another more than {DEPTH_MAX} deep")
        self.at = at


# The words that YAML 1.2 (core schema) takes for other things than text.
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_POINT: Final = re.compile(
    r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
# 010, 0x10, 0o17, 0b1, 1_000: readers of YAML disagree on what number each of these is, or whether it is one.
_ODD: Final = re.compile(
    r"[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9][0-9_]*)"
)
_DIGITS_MAX: Final = 400


class _Reader:
    """Makes a tree of the events of a parser."""

    def __init__(self, name: str, text: str, tree: Tree) -> None:
        self._name = name
        self._text = text
        self._events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
        self._tree = tree

    def whole(self) -> None:
        documents = 0
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents == 2:
                    what = "expected a single document in the stream but found another document"
                    self._fault((), event, what, "put it into a file of its own")
            elif isinstance(event, ScalarEvent | AliasEvent | MappingStartEvent | SequenceStartEvent):
                if documents == 1:
                    self._tree.value = self._value((), event)
                else:
                    self._aside(event)

    def _value(self, steps: Steps, event: Any) -> Any:
        if getattr(event, "ctag", None) is not None:
            self._fault(steps, event, "tags are not read", "write the plain value")
        if len(steps) > DEPTH_MAX:
            raise TooDeep(_position(event))
        if isinstance(event, MappingStartEvent):
            return self._mapping(steps, in_braces=bool(event.flow_style))
        if isinstance(event, SequenceStartEvent):
            return self._list(steps)
        if isinstance(event, AliasEvent):
            self._fault(steps, event, "aliases are not read", "write the value out")
            return None
        return self._scalar(steps, event)

    def _list(self, steps: Steps) -> list[Any]:
        found: list[Any] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            here = (*steps, len(found))
            self._tree.places[here] = _position(event)
            found.append(self._value(here, event))
        return found

    def _mapping(self, steps: Steps, *, in_braces: bool) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        before: tuple[Steps, Any] | None = None  # the pair before this one, where its value is one word
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            if not isinstance(event, ScalarEvent):
                self._fault(steps, event, "a key here is no word", "write text, a colon and a value", covers=False)
                self._aside(event)
                self._aside(next(self._events))
                continue
            word = event.value
            said = next(self._events)
            if in_braces and before is not None and self._is_piece(before[1], event, said):
                self._cut(before, word)
                continue
            here = (*steps, word)
            if word == "<<" and _is_plain(event):
                self._fault(here, event, "merge keys are not read", "write the keys out")
                self._aside(said)
            elif here in self._tree.places:
                self._again(here, event, said)
            else:
                self._tree.places[here] = _position(event)
                key = self._value(here, event)
                if key is None or isinstance(key, bool):
                    self._fault(here, event, f"expected text, not {word or 'nothing'}", 'write it in quotes ("…")')
                    key = word
                found[key] = self._value(here, said)
            before = (here, said) if isinstance(said, ScalarEvent) else None
        return found

    def _is_piece(self, before: Any, event: Any, said: Any) -> bool:
        """Whether a key without colon and value is the rest of a number that was cut at its comma."""
        alone = isinstance(said, ScalarEvent) and not said.value
        if not alone or ":" in self._text[event.end_mark.index : said.start_mark.index]:
            return False
        return all(_is_plain(one) and re.fullmatch(r"-?[0-9_.]+", one.value) for one in (before, event))

    def _cut(self, before: tuple[Steps, Any], rest: str) -> None:
        """A number with commas: 1,5 or 1,234,567, of which the first rest is enough to tell."""
        here, first = before
        if not self._tree.faults or self._tree.faults[-1].steps != here:
            what = f"{first.value},{rest} is two things here: in {{ }} a comma begins the next key"
            self._fault(here, first, what, "write an amount with a point and no other marks, such as 1.5 or 3000")

    def _again(self, here: Steps, event: Any, said: Any) -> None:
        """A key that stands here already: what follows it is read into a tree of its own."""
        line, column = self._tree.places[here]
        what = f"the key stands at {self._name}:{line + 1}:{column + 1} already"
        self._fault(here, event, what, "take one of them out", breaks=len(here) > 1, covers=False)
        mine, self._tree = self._tree, Tree(places={here: _position(event)})
        try:
            self._tree.value = self._value(here, said)
            mine.again.append((here, self._tree))
        finally:
            self._tree = mine

    def _aside(self, event: Any) -> None:
        """Go past what cannot be said where it stands, and keep what is wrong in it to itself."""
        mine, self._tree = self._tree, Tree()
        try:
            self._value((), event)
        finally:
            self._tree = mine

    def _scalar(self, steps: Steps, event: Any) -> Any:
        text: str = event.value
        if not _is_plain(event):
            return text
        if text in _WORDS:
            return _WORDS[text]
        if len(text) <= _DIGITS_MAX:
            if _WHOLE.fullmatch(text):
                return int(text)
            if _POINT.fullmatch(text):
                return Number(text)
            if _ODD.fullmatch(text):
                do = 'write plain decimal digits, such as 1000 or 0.25, and put text in quotes ("…")'
                self._fault(steps, event, f"{text[:40]} is read as one number here and as another there", do)
        return text

    def _fault(self, steps: Steps, event: Any, what: str, do: str, *, breaks: bool = True, covers: bool = True) -> None:
        self._tree.faults.append(Fault(steps, _position(event), what, do, breaks, covers))


def _position(event: Any) -> Position:
    return event.start_mark.line, event.start_mark.column


def _is_plain(event: Any) -> bool:
    return bool(event.implicit[0]) and event.ctag is None and event.style is None


def nulls(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    """Where nothing stands: keys without a value, and items that are null."""
    if value is None:
        yield steps
    elif isinstance(value, list | dict):
        for step, one in enumerate(value) if isinstance(value, list) else value.items():
            yield from nulls(one, (*steps, step if isinstance(value, list) else str(step)))


def replaced(tree: Tree, steps: Steps, part: Tree) -> Tree:
    """A tree with something else at these steps, and no other faults than those there."""
    kept = {here: at for here, at in tree.places.items() if here[: len(steps)] != steps}
    return replace(part, value=_with(tree.value, steps, part.value), places=kept | part.places, again=[])


def _with(value: Any, steps: Steps, other: Any) -> Any:
    if not steps:
        return other
    first, rest = steps[0], steps[1:]
    if isinstance(value, list):
        return [_with(one, rest, other) if index == first else one for index, one in enumerate(value)]
    return {key: _with(one, rest, other) if str(key) == first else one for key, one in value.items()}
