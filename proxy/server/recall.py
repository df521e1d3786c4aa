"""Recall: an answer that need not be fetched. So far: identical deterministic calls in flight share one exchange."""

from typing import TYPE_CHECKING, Final

from aiohttp import web

from proxy.core.body import Facts
from proxy.server.call import Call
from proxy.server.exchange import Shared, SharedSource
from proxy.units import Credits

if TYPE_CHECKING:
    from proxy.server.parts import Parts

Key = tuple[str, str, str, bytes, tuple[tuple[str, str], ...]]


class InFlight:
    """Shared exchanges that newcomers may still join, by all that makes two calls identical."""

    def __init__(self) -> None:
        self._shared: Final[dict[Key, Shared]] = {}

    def join(self, key: Key) -> SharedSource | None:
        """A reader's view of a running exchange; None when there is none a newcomer would get every byte of."""
        shared = self._shared.get(key)
        return shared.join() if shared is not None and shared.joinable else None

    def add(self, key: Key, shared: Shared) -> None:
        """Offer an exchange to newcomers until it ends."""
        self._shared[key] = shared

        def remove(_: object) -> None:
            if self._shared.get(key) is shared:
                del self._shared[key]

        shared.task.add_done_callback(remove)


def _deterministic(facts: Facts) -> bool:
    """Whether the gateway is asked for the same answer each time, and gives it without keeping or reading anything."""
    asked = facts.temperature_zero or facts.seeded
    keeps = facts.stored or facts.background or facts.previous_response_id is not None
    return asked and facts.n == 1 and not keeps and not facts.references and facts.call is None


_INDIFFERENT: Final = frozenset({"x-request-id", "traceparent", "tracestate", "via"})
"""Header lines that differ between calls and change nothing in an answer."""


def key_of(call: Call) -> Key | None:
    """What makes two calls identical; None for a call that may not be shared.

    Only byte-identical bodies of one team count as identical here.
    """
    if call.facts is None or call.out is None or call.team is None or not _deterministic(call.facts):
        return None
    shaping = tuple(sorted(line for line in call.out.headers.items() if line[0] not in _INDIFFERENT))
    return call.team.name, call.gateway_key or "", call.out.target, call.facts.digest, shaping


async def recall(call: Call, parts: "Parts") -> web.StreamResponse | None:
    """Join an identical call in flight: it costs this caller nothing, and admits nothing."""
    key = key_of(call)
    source = parts.in_flight.join(key) if key is not None else None
    if source is not None:
        call.source, call.shared, call.hold, call.held = source, True, None, Credits(0)
        call.joined = True
        call.cache_status = "sluicegate; fwd=uri-miss; collapsed"
        call.inbound.on_gone(source.leave)
    return None
