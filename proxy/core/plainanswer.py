"""An answer of the gateway that arrived whole, in one piece: read at once, without the library's parser.

Only the plainest form is taken here: a status that may have a body, one `Content-Length`, no coding of any kind, and
nothing that changes what becomes of the connection. Everything else is the parser's.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from proxy.core.tuples import maker

HEAD_MAX: Final = 8000
"""Longest head that is looked at, in bytes; the parser's own bound is a little higher."""

DIGITS_MAX: Final = 12
"""Digits of a length that is believed here; thousands of them would be no number to Python."""

NAMES_MAX: Final = 128
VALUES_MAX: Final = 16
LINE_MAX: Final = 256
"""Names of lines that are remembered, lines of each of them, and bytes of one of these: 2 MB at most.

Most lines come with every answer. A name with another value each time fills its own room, and takes none from others.
"""

_FIRST: Final = re.compile(rb"HTTP/1\.1 ([2-5][0-9][0-9]) [\t\x20-\x7e\x80-\xff]*")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NOT_PLAIN: Final = ("transfer-encoding", "content-encoding", "upgrade", "trailer")
"""What names of lines begin with that change what becomes of a body."""

_BODYLESS: Final = frozenset({204, 205, 304})
"""Statuses whose answers end with their head, whatever length they tell."""


class PlainAnswer(NamedTuple):
    """Head and body. headers: in their order, names as they were written."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content_type: str
    body: bytes


_answer: Final[Callable[[tuple[int, tuple[tuple[str, str], ...], str, bytes]], PlainAnswer]] = maker(PlainAnswer)


_Line = tuple[tuple[str, str], str]
"""A line as it was written, and its name again where it says something about the answer, else ""."""


class _Name:
    """One name of lines.

    kind:  the name in lower case where its lines say something about an answer, else "".
    room:  how many more of its lines are remembered.
    """

    __slots__ = ("kind", "room", "text")

    def __init__(self, text: str, room: int) -> None:
        self.text: Final = text
        low = text.lower()
        self.kind: Final = low if low in _SAYING else ""
        self.room = room


_SAYING: Final = frozenset({"content-length", "content-type", "connection"})


class Reader:
    """Reads the answers of one gateway, and remembers what their lines say."""

    def __init__(self) -> None:
        self._firsts: Final[dict[bytes, int]] = {}
        self._names: Final[dict[bytes, _Name]] = {}
        self._lines: Final[dict[bytes, _Line]] = {}

    def plain(self, data: bytes) -> PlainAnswer | None:
        """The answer that these bytes are, all of them and nothing else; None where the parser has to look."""
        head, found, body = data.partition(b"\r\n\r\n")
        if not found or len(head) + 4 > HEAD_MAX:
            return None
        texts = head.split(b"\r\n")
        first = texts.pop(0)
        if (status := self._firsts.get(first) or self._status(first)) is None:
            return None
        known, headers, content_type, length = self._lines, [], None, None
        for text in texts:
            if (line := known.get(text) or self._line(text)) is None:
                return None
            field, kind = line
            headers.append(field)
            if not kind:
                continue
            if kind == "content-length":
                if length is not None:
                    return None
                length = int(field[1])
            elif content_type is None and kind == "content-type":
                content_type = field[1]
        if length != len(body):
            return None
        return _answer((status, tuple(headers), content_type or "", body))

    def _status(self, text: bytes) -> int | None:
        """The status of a first line that is not remembered; None where it is not plain."""
        first = _FIRST.fullmatch(text)
        if first is None or (status := int(first[1])) in _BODYLESS:
            return None
        if len(self._firsts) < NAMES_MAX and len(text) <= LINE_MAX:
            self._firsts[text] = status
        return status

    def _line(self, text: bytes) -> _Line | None:
        """A line that is not remembered; None where it is not plain."""
        written, colon, rest = text.partition(b":")
        name = self._names.get(written) or self._name(written)
        if name is None or not colon:
            return None
        value = rest.decode("utf-8", "surrogateescape")
        if not value.isprintable() and _CONTROL.search(value):
            return None
        # Looking for blanks at the end with an expression would take the square of their number.
        line = (name.text, value.strip(" \t")), name.kind
        if name.kind and not _is_plain(name.kind, value):
            return None
        if name.room and len(text) <= LINE_MAX:
            name.room -= 1
            self._lines[text] = line
        return line

    def _name(self, written: bytes) -> _Name | None:
        """A name that is not remembered; None for what is none, or begins lines that are not plain."""
        if _NAME.fullmatch(written) is None or (text := written.decode()).lower().startswith(_NOT_PLAIN):
            return None
        if len(self._names) >= NAMES_MAX or len(written) > LINE_MAX:
            return _Name(text, room=0)
        name = self._names[written] = _Name(text, room=VALUES_MAX)
        return name


def _is_plain(kind: str, value: str) -> bool:
    """Whether a line that says something about its answer says nothing unusual."""
    if kind == "content-length":
        # Blanks behind the figure are the parser's.
        figure = value.lstrip(" \t")
        return 0 < len(figure) <= DIGITS_MAX and figure.isascii() and figure.isdigit()
    return kind != "connection" or (value.isascii() and value.strip(" \t").lower() == "keep-alive")
