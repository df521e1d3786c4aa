"""An answer of the gateway that arrived whole, in one piece: read at once, without the library's parser.

Only the plainest form is taken here: a status that may have a body, one `Content-Length`, no coding of any kind, and
nothing that changes what becomes of the connection. Everything else is the parser's.
"""

import re
from typing import Final, NamedTuple

HEAD_MAX: Final = 8000
"""Longest head that is looked at, in bytes; the parser's own bound is a little higher."""

DIGITS_MAX: Final = 12
"""Digits of a length that is believed here; thousands of them would be no number to Python."""

_HEAD: Final = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9]) [\t\x20-\x7e\x80-\xff]*"
    rb"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)+"
)
_NOT_PLAIN: Final = re.compile(
    rb"\r\n(?:transfer-encoding|content-encoding|upgrade|trailer|connection:(?![ \t]*keep-alive[ \t]*\r\n))"
)
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([^\r]*)")
_TYPE: Final = re.compile(rb"\r\ncontent-type:[ \t]*([^\r]*)")
_FIELD: Final = re.compile(r"\r\n([^:]+):([^\r]*)")
"""Blanks around a value are taken off afterwards: looking for those at its end would take the square of its length."""

_BODYLESS: Final = frozenset({b"204", b"205", b"304"})
"""Statuses whose answers end with their head, whatever length they tell."""


class PlainAnswer(NamedTuple):
    """Head and body. headers: in their order, names as they were written."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content_type: str
    body: bytes


def plain(data: bytes) -> PlainAnswer | None:
    """The answer that these bytes are, all of them and nothing else; None where the parser has to look."""
    end = data.find(b"\r\n\r\n", 0, HEAD_MAX)
    if end < 0 or (begun := _HEAD.fullmatch(data, 0, end)) is None or begun[1] in _BODYLESS:
        return None
    head = data[: end + 2]
    lowered = head.lower()
    lengths = _LENGTH.findall(lowered)
    if len(lengths) != 1 or not 0 < len(lengths[0]) <= DIGITS_MAX or not lengths[0].isdigit():
        return None
    if _NOT_PLAIN.search(lowered) is not None:
        return None
    if len(data) != end + 4 + int(lengths[0]):
        return None
    kind = _TYPE.search(lowered)
    return PlainAnswer(
        int(begun[1]),
        tuple([(name, value.strip(" \t")) for name, value in _FIELD.findall(head.decode("utf-8", "surrogateescape"))]),
        "" if kind is None else head[kind.start(1) : kind.end(1)].decode("utf-8", "surrogateescape").rstrip(" \t"),
        data[end + 4 :],
    )
