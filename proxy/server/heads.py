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


FIGURE_MAX: Final = 8
_LENGTH: Final = re.compile(rb"\r\nContent-Length: (\d{1,%d})\r\n" % FIGURE_MAX, re.IGNORECASE)
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


class Sent:
    """A head in bytes, for those that send it again.

    before, behind: what stands before the figure of its length, and behind it; all, and nothing, where it has none.
    """

    __slots__ = ("before", "behind", "known")

    def __init__(self, before: bytes, behind: bytes, known: Known) -> None:
        self.before: Final = before
        self.behind: Final = behind
        self.known: Final = known

    def body_of(self, sent: bytes) -> bytes | None:
        """The body of one whole request that has this head; None for any other bytes."""
        before, behind = self.before, self.behind
        if not behind:
            return b"" if sent == before else None
        if not sent.startswith(before):
            return None
        at = len(before)
        end = sent.find(b"\r\n", at, at + FIGURE_MAX + 2)
        figure = sent[at:end]
        if not figure.isdigit() or not sent.startswith(behind, end):
            return None
        body = sent[end + len(behind) :]
        return body if len(body) == int(figure) else None


class Heads:
    """Heads by their lines and by their bytes, the newest at the end."""

    def __init__(self) -> None:
        self._known: Final[OrderedDict[Place, Known]] = OrderedDict()
        self._by_bytes: Final[OrderedDict[Bytes, Sent]] = OrderedDict()

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

    def again(self, sent: bytes) -> tuple[Sent, bytes] | None:
        """A head that came before, and the body behind it, where these bytes are one whole request that begins so."""
        end = sent.find(b"\r\n\r\n") + 4
        parted = sent, b""
        if (found := _LENGTH.search(sent, 0, end)) is not None:
            at, behind = found.span(1)
            parted = sent[:at], sent[behind:end]
        head = self._by_bytes.get(parted)
        body = None if head is None else head.body_of(sent)
        return None if head is None or body is None else (head, body)

    def keep_bytes(self, sent: bytes, known: Known) -> None:
        """Know the head of one whole request again by its bytes; its connection stays open behind it."""
        end = sent.find(b"\r\n\r\n") + 4
        if end > KEPT_BYTES_MAX:
            return
        if (found := _LENGTH.search(sent, 0, end)) is not None:
            at, behind = found.span(1)
            before, after = sent[:at], sent[behind:end]
            self._by_bytes[before, after] = Sent(before, after, known)
        elif _NO_BODY.search(sent, 0, end) is None:
            self._by_bytes[sent, b""] = Sent(sent, b"", known)
        if len(self._by_bytes) > HEADS_MAX:
            self._by_bytes.popitem(last=False)
