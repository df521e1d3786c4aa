"""Heads that were judged before: a connection sends the same lines again and again, and they mean the same each time.

What is judged depends on the lines and on settings that do not change while the process runs. Whose key it is, and what
that key may do, is looked up for every request all the same.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from proxy.core.head import Head
from proxy.server.inbound import Inbound
from proxy.server.routes import Match

HEADS_MAX: Final = 1024
"""Heads remembered at once, some 4 MB."""

LENGTH: Final = frozenset({b"Content-Length", b"content-length"})
"""The one line that differs between two calls of most clients. The parser has seen that it is a number."""

Place = tuple[str, str, tuple[int, int], int, tuple[tuple[bytes, bytes], ...]]
"""Method, target, version, how often a length was given, and all other lines."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a head came to.

    headers: the first line of each, by lower-case name, without its length.
    up:      which of them go to the gateway, by whether the version is pinned; filled in when first asked for.
    """

    head: Head
    match: Match
    headers: Mapping[str, str]
    up: dict[bool, Mapping[str, str]] = field(default_factory=dict)


class Heads:
    """Heads by their lines, the newest at the end."""

    def __init__(self) -> None:
        self._known: Final[OrderedDict[Place, Known]] = OrderedDict()

    def get(self, inbound: Inbound) -> tuple[Place, Known | None]:
        """Where a head is kept, and what it came to."""
        lines = inbound.raw_headers
        kept = tuple([line for line in lines if line[0] not in LENGTH])
        place = (inbound.method, inbound.target, inbound.http_version, len(lines) - len(kept), kept)
        return place, self._known.get(place)

    def keep(self, place: Place, known: Known) -> None:
        """Know a head again that was found good."""
        self._known[place] = known
        if len(self._known) > HEADS_MAX:
            self._known.popitem(last=False)
