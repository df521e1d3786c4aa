"""Heads that were judged before: a connection sends the same lines again and again, and they mean the same each time.

What is judged depends on the lines and on settings that do not change while the process runs. Whose key it is, and what
that key may do, is looked up for every request all the same. A head that comes byte for byte as before, but for the
length of its body, is not even parsed again.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.core.head import Head
from proxy.server.inbound import Inbound
from proxy.server.routes import Match
from proxy.server.upstream import Headers

HEADS_MAX: Final = 1024
"""Heads remembered at once, some 6 MB with their bytes as clients send them."""

KEPT_BYTES_MAX: Final = 4 * 1024
"""Bytes of a head that is remembered: anybody may send one, as whose key it is comes later."""

LENGTH: Final = frozenset({b"Content-Length", b"content-length"})
"""The one line that differs between two calls of most clients. The parser has seen that it is a number."""

Place = tuple[str, str, tuple[int, int], int, tuple[tuple[bytes, bytes], ...]]
"""Method, target, version, how often a length was given, and all other lines."""


_LENGTH: Final = re.compile(rb"\r\nContent-Length: (\d{1,8})\r\n", re.IGNORECASE)
"""The same line in bytes, where a length is plain and no attempt at a number that overflows."""

_NO_BODY: Final = re.compile(rb"\r\n(?:Content-Length|Transfer-Encoding)[ \t]*:", re.IGNORECASE)
"""Where this is not in a head, nothing follows it."""

Kind = tuple[str, str, bool, bool]
"""The gateway key, what is accepted, whether the version is pinned, and whether there is no body."""

Bytes = tuple[bytes, bytes]
"""A head's bytes before the figure of its length, and behind it; all of them, and none, where it has no length."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a head came to.

    method, target: as they came.
    headers: the first line of each, by lower-case name, without its length.      lines: all of them, as they came.
    up:      the lines of what goes to the gateway, by kind of request; filled in when first asked for.
    """

    method: str
    target: str
    head: Head
    match: Match
    headers: Mapping[str, str]
    lines: Sequence[tuple[str, str]]
    up: dict[Kind, Headers] = field(default_factory=dict)


class Heads:
    """Heads by their lines and by their bytes, the newest at the end."""

    def __init__(self) -> None:
        self._known: Final[OrderedDict[Place, Known]] = OrderedDict()
        self._by_bytes: Final[OrderedDict[Bytes, Known]] = OrderedDict()

    def get(self, inbound: Inbound) -> tuple[Place, Known | None]:
        """Where a head is kept, and what it came to."""
        lines = inbound.raw_headers
        kept = tuple([line for line in lines if line[0] not in LENGTH])
        place = (inbound.method, inbound.target, inbound.http_version, len(lines) - len(kept), kept)
        return place, self._known.get(place)

    def keep(self, place: Place, known: Known) -> None:
        """Know a head again that was found good, unless it is very long."""
        if sum([len(name) + len(value) for name, value in place[4]], len(place[1])) > KEPT_BYTES_MAX:
            return
        self._known[place] = known
        if len(self._known) > HEADS_MAX:
            self._known.popitem(last=False)

    def again(self, sent: bytes) -> tuple[Known, bytes] | None:
        """What the head of a request came to, and its body, where it is one whole request that begins as one before."""
        end = sent.find(b"\r\n\r\n") + 4
        found = _LENGTH.search(sent, 0, end)
        if found is None:
            known = self._by_bytes.get((sent, b""))
            return None if known is None else (known, b"")
        at, behind = found.span(1)
        if len(sent) != end + int(sent[at:behind]):
            return None
        known = self._by_bytes.get((sent[:at], sent[behind:end]))
        return None if known is None else (known, sent[end:])

    def keep_bytes(self, sent: bytes, known: Known) -> None:
        """Know the head of one whole request again by its bytes; its connection stays open behind it."""
        end = sent.find(b"\r\n\r\n") + 4
        if end > KEPT_BYTES_MAX:
            return
        if (found := _LENGTH.search(sent, 0, end)) is not None:
            at, behind = found.span(1)
            self._by_bytes[sent[:at], sent[behind:end]] = known
        elif _NO_BODY.search(sent, 0, end) is None:
            self._by_bytes[sent, b""] = known
        if len(self._by_bytes) > HEADS_MAX:
            self._by_bytes.popitem(last=False)
