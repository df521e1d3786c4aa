"""The few values of interest in one JSON text of any length, read from pieces in bounded memory.

A `Scanner` walks only along the paths it was told and jumps over everything else with the `re` module, so a look-alike
inside a string is content and a text of 20 MB costs no memory. It reads; it does not judge: what is not JSON simply
yields nothing more.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import orjson

VALUE_MAX: Final = 16 * 1024
"""Bytes of one captured value. A `usage` object is below 1 KiB; a longer value is reported as a `Run`."""

_NAME_MAX: Final = 1024  # a longer member name is none of ours


@dataclass(frozen=True, slots=True)
class Run:
    """A value that was measured and not kept: `size` bytes of JSON text, without the quotes of a string.

    blank: of strings whose bytes are added up: there is nothing in them but blanks and ends of lines.
    """

    size: int
    blank: bool = False


class Keep(Enum):
    """What to do with the value at a path."""

    WHOLE = 1  # keep it, up to VALUE_MAX
    SIZE = 2  # a string: add up its bytes over all places that match


class Paths:
    """A tree of paths, made once: `response.usage`, `choices.*.finish_reason`; `*` is every element of an array."""

    __slots__ = ("below", "keep")

    def __init__(self) -> None:
        self.below: dict[str, Paths] = {}
        self.keep: Keep | None = None

    @classmethod
    def of(cls, whole: Iterable[str], sized: Iterable[str] = ()) -> "Paths":
        root = cls()
        for keep, paths in ((Keep.WHOLE, whole), (Keep.SIZE, sized)):
            for path in paths:
                node = root
                for step in path.split("."):
                    node = node.below.setdefault(step, cls())
                node.keep = keep
        return root


# Possessive, so that a string of millions of escapes needs no memory for going back.
_STRING_REST: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_STRUCTURE: Final = re.compile(rb'"|[{\[]++|[}\]]++')
_GAP: Final = re.compile(rb"[\s,:]*+")
_SCALAR: Final = re.compile(rb"[^\s,:\"{}\[\]]*+")
_WHOLE_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]{0,19})")
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_BLANK: Final = re.compile(rb"(?: |\\[nrtf])*+")
_QUOTE, _OPEN_OBJECT = b'"'[0], b"{"[0]
_OPENING: Final = frozenset(b"{[")
_CLOSING: Final = frozenset(b"}]")


def _past(pattern: re.Pattern[bytes], piece: bytes, at: int) -> int:
    match = pattern.match(piece, at)
    return match.end() if match else at


class _Over(Enum):
    """The kind of value being passed over."""

    NOTHING = 0
    STRING = 1
    SCALAR = 2
    CONTAINER = 3


@dataclass(slots=True)
class _Frame:
    """An open container on the path. `holder` takes what is found; an array's elements all share one."""

    paths: Paths
    holder: dict[str, Any]
    is_object: bool
    name: str | None = None  # of the member whose value comes next


class Scanner:
    """Feed it the text; `tree` has what was found, shaped as the text is.

    An array on a path appears as a list of one element in which all its elements are merged: later scalars replace
    earlier ones unless null, sizes add up.
    """

    __slots__ = ("_blank", "_depth", "_escaped", "_frames", "_half", "_in_string", "_kept", "_over", "_paths", "_size",
                 "_stopped", "_target", "complete", "tree")  # fmt: skip

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.tree: dict[str, Any] = {}
        self.complete = False
        """The text was an object and has ended."""
        self._stopped = False
        self._frames: list[_Frame] = []
        self._over = _Over.NOTHING
        self._depth = 0
        self._in_string = self._escaped = False
        self._target: Paths | None = None
        self._kept: bytearray | None = None
        self._size = 0
        self._blank = False
        self._half = b""  # of an escape in a string that was blank so far

    def feed(self, piece: bytes) -> None:
        at = 0
        while at < len(piece) and not self._stopped:
            at = self._structure(piece, at) if self._over is _Over.NOTHING else self._value(piece, at)

    # --- between values ---

    def _structure(self, piece: bytes, at: int) -> int:
        at = _past(_GAP, piece, at)
        if at == len(piece):
            return at
        byte = piece[at]
        if not self._frames:
            self._stopped = byte != _OPEN_OBJECT  # only an object holds members
            self._frames.append(_Frame(self._paths, self.tree, is_object=True))
            return at + 1
        frame = self._frames[-1]
        if byte in _CLOSING:
            self._frames.pop()
            if self._frames:
                self._frames[-1].name = None
            else:
                self.complete = self._stopped = True
            return at + 1
        if frame.is_object and frame.name is None:
            if byte != _QUOTE:
                self._stopped = True
                return at
            return self._begin(_Over.STRING, None, keep=True, at=at)
        target = frame.paths.below.get(frame.name if frame.is_object and frame.name is not None else "*")
        return self._begin_value(byte, target, at)

    def _begin_value(self, byte: int, target: Paths | None, at: int) -> int:
        is_object = byte == _OPEN_OBJECT
        if target is not None and byte in _OPENING and self._descends(target, is_object=is_object):
            self._frames.append(_Frame(target, self._holder(is_object=is_object), is_object))
            return at + 1
        keep = target is not None and target.keep is Keep.WHOLE
        if byte == _QUOTE:
            return self._begin(_Over.STRING, target, keep=keep, at=at)
        if byte in _OPENING:
            return self._begin(_Over.CONTAINER, target, keep=keep, at=at)
        return self._begin(_Over.SCALAR, target, keep=keep, at=at)

    @staticmethod
    def _descends(target: Paths, *, is_object: bool) -> bool:
        return bool(target.below) and ("*" in target.below) is not is_object

    def _holder(self, *, is_object: bool) -> dict[str, Any]:
        """Where the members of the container that begins here go."""
        frame = self._frames[-1]
        if not frame.is_object:
            return frame.holder
        name = frame.name or ""
        there = frame.holder.get(name)
        if isinstance(there, list) and not is_object:
            return there[0]  # type: ignore[no-any-return]  # always a dict, put there below
        if isinstance(there, dict) and is_object:
            return there
        holder: dict[str, Any] = {}
        frame.holder[name] = holder if is_object else [holder]
        return holder

    # --- over one value ---

    def _begin(self, over: _Over, target: Paths | None, *, keep: bool, at: int) -> int:
        self._over, self._target = over, target
        self._kept = bytearray() if keep else None
        self._size = self._depth = 0
        self._blank, self._half = over is _Over.STRING and target is not None and target.keep is Keep.SIZE, b""
        if over is _Over.STRING:
            self._in_string = True
            return at + 1
        return at

    def _value(self, piece: bytes, at: int) -> int:
        start = at
        if self._over is _Over.STRING:
            at = self._string(piece, at)
            ended = not self._in_string
            self._take(piece, start, at - 1 if ended else at)
        elif self._over is _Over.SCALAR:
            at = _past(_SCALAR, piece, at)
            ended = at < len(piece)
            self._take(piece, start, at)
        else:
            at = self._container(piece, at)
            ended = self._depth == 0
            self._take(piece, start, at)
        if ended:
            self._end()
        return at

    def _string(self, piece: bytes, at: int) -> int:
        """Past the closing quote, or to the end of the piece."""
        if self._escaped:
            self._escaped = False
            at += 1
        at = _past(_STRING_REST, piece, at)
        if at >= len(piece):
            return len(piece)
        if piece[at] == _QUOTE:
            self._in_string = False
        else:
            self._escaped = True  # a backslash ends the piece
        return at + 1

    def _container(self, piece: bytes, at: int) -> int:
        while True:
            if self._in_string:
                at = self._string(piece, at)
                if self._in_string:
                    return at
            found = _STRUCTURE.search(piece, at)
            if found is None:
                return len(piece)
            at = found.end()
            byte = piece[found.start()]
            if byte == _QUOTE:
                self._in_string = True
            elif byte in _OPENING:
                self._depth += at - found.start()
            else:
                closed = min(at - found.start(), self._depth)
                self._depth -= closed
                if self._depth == 0:
                    return found.start() + closed

    def _take(self, piece: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._kept is not None and self._size <= VALUE_MAX:
            self._kept += piece[start:end]
        if self._blank:
            text = self._half + piece[start:end]
            rest = text[_past(_BLANK, text, 0) :]
            self._blank = rest in (b"", b"\\")
            self._half = rest if self._blank else b""

    def _end(self) -> None:
        over, target = self._over, self._target
        self._over, self._target = _Over.NOTHING, None
        frame = self._frames[-1]
        if frame.is_object and frame.name is None:
            frame.name = self._name()
            return
        name = frame.name or ""
        if target is not None and frame.is_object:
            if target.keep is Keep.SIZE and over is _Over.STRING:
                there = frame.holder.get(name)
                before = there if isinstance(there, Run) else Run(0, blank=True)
                frame.holder[name] = Run(before.size + self._size, before.blank and self._blank)
            elif target.keep is Keep.WHOLE:
                value = self._whole(over)
                if value is not None or name not in frame.holder:
                    frame.holder[name] = value
        frame.name = None

    def _name(self) -> str:
        name = self._whole(_Over.STRING) if self._size <= _NAME_MAX else None
        return name if isinstance(name, str) else ""

    def _whole(self, over: _Over) -> Any:
        """The captured value; a Run when it was too long, None when it is no JSON."""
        if self._kept is None or self._size > VALUE_MAX:
            return Run(self._size)
        raw = bytes(self._kept)
        if over is _Over.SCALAR and raw not in (b"true", b"false"):
            return number(raw)
        try:
            return orjson.loads(b'"' + raw + b'"' if over is _Over.STRING else raw)
        except orjson.JSONDecodeError:
            return None


def number(raw: bytes) -> int | Decimal | None:
    """A JSON number exactly as written; None for anything else, and for more digits than a figure of ours can have."""
    if _WHOLE_NUMBER.fullmatch(raw):
        return int(raw)
    return Decimal(raw.decode()) if _NUMBER.fullmatch(raw) else None


def scan(text: bytes, paths: Paths) -> Mapping[str, Any]:
    """What one whole text holds at these paths."""
    scanner = Scanner(paths)
    scanner.feed(text)
    return scanner.tree
