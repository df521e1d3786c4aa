"""Requests by all their bytes, for those that are sent again and again. What is kept follows from the bytes alone."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from proxy.core.head import Head
from proxy.server.call import Call
from proxy.server.routes import Match

SEEN_MAX: Final = 512
"""Requests remembered, each at most `listener.CHUNK_MAX` bytes: 8 MB."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What follows from a request's bytes. shaping, hash: as in `recall.Place`; digest: SHA-256 of the body."""

    head: Head
    match: Match
    method: str
    target: str
    headers: Mapping[str, str]
    shaping: tuple[str | None, ...]
    hash: int
    digest: bytes


class Repeats:
    """Requests that were answered from memory, the oldest let go first."""

    def __init__(self) -> None:
        self._seen: Final[OrderedDict[bytes, Seen]] = OrderedDict()

    def get(self, sent: bytes) -> Seen | None:
        """What is known of a request."""
        return self._seen.get(sent)

    def keep(self, sent: bytes | None, call: Call, digest: bytes) -> None:
        """Know the request of a call again, where it came in one piece and its connection stays open."""
        inbound = call.inbound
        if sent is None or call.head is None or call.match is None or call.place is None:
            return
        if not inbound.stays_open:
            return
        _, _, target, shaping, number = call.place
        self._seen[sent] = Seen(call.head, call.match, inbound.method, target, inbound.headers, shaping, number, digest)
        if len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)
