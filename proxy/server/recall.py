"""Recall: an answer that need not be fetched. So far: identical deterministic calls in flight share one exchange."""

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

from proxy.core.body import Facts
from proxy.server.call import Call
from proxy.server.sources import Shared, SharedSource
from proxy.units import Credits

if TYPE_CHECKING:
    from proxy.server.parts import Parts

Key = tuple[str, str, str, bytes, tuple[tuple[str, str], ...]]


class Slot:
    """A place for one exchange: claimed before admission, filled with the exchange, or given up."""

    def __init__(self, slots: "dict[Key, Slot]", key: Key) -> None:
        self._slots: Final = slots
        self._key: Final = key
        self._filled: Final[asyncio.Future[Shared | None]] = asyncio.get_running_loop().create_future()

    async def exchange(self) -> Shared | None:
        """Wait for the exchange; None when whoever claimed the place was refused or left."""
        return await asyncio.shield(self._filled)

    def fill(self, shared: Shared) -> None:
        """Offer the exchange to all who wait, and to newcomers until it ends."""
        self._filled.set_result(shared)
        shared.task.add_done_callback(lambda _: self._remove())

    def give_up(self) -> None:
        """Let one of those who wait try for itself; does nothing once filled."""
        if not self._filled.done():
            self._remove()
            self._filled.set_result(None)

    def _remove(self) -> None:
        if self._slots.get(self._key) is self:
            del self._slots[self._key]


class InFlight:
    """Shared exchanges that newcomers may still join, by all that makes two calls identical."""

    def __init__(self) -> None:
        self._slots: Final[dict[Key, Slot]] = {}

    async def join(self, key: Key) -> SharedSource | None:
        """A reader's view of a running exchange; None when there is none a newcomer would get every byte of.

        Whoever gets None claims the place before it waits for anything else, so that the next one finds it taken.
        """
        while (slot := self._slots.get(key)) is not None:
            shared = await slot.exchange()
            if shared is not None:
                return shared.join() if shared.joinable else None
        return None

    def claim(self, key: Key) -> Slot:
        """Take the place for an exchange that is yet to be admitted."""
        slot = self._slots[key] = Slot(self._slots, key)
        return slot


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
    if key is None:
        return None
    source = await parts.in_flight.join(key)
    if source is None:
        call.slot = parts.in_flight.claim(key)
        return None
    call.source, call.shared, call.joined = source, True, True
    call.hold, call.held = None, Credits(0)
    call.cache_status = "sluicegate; fwd=uri-miss; collapsed"
    call.inbound.on_gone(source.leave)
    return None
