"""Calls on their way that identical ones may join."""

import asyncio
import time
from math import inf
from typing import Final

from proxy.server.sources import Shared, SharedSource


class Slot:
    """A place for one exchange: claimed before admission, filled with the exchange, or given up."""

    def __init__(self, slots: "dict[bytes, Slot]", key: bytes) -> None:
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
    """Shared exchanges that newcomers may still join, by the key of their answer."""

    def __init__(self) -> None:
        self._slots: Final[dict[bytes, Slot]] = {}

    async def join(self, key: bytes, age_max_s: float = inf) -> SharedSource | None:
        """A reader's view of a running exchange; None when there is none a newcomer would get every byte of.

        age_max_s: one that has run for longer is left to those who wait for it already.

        Whoever gets None claims the place before it waits for anything else, so that the next one finds it taken.
        """
        while (slot := self._slots.get(key)) is not None:
            shared = await slot.exchange()
            if shared is None:
                continue
            if shared.joinable and shared.age_s(time.monotonic()) < age_max_s:
                return shared.join()
            # Of those who waited for it in vain one takes its place, and the others wait for that one.
            if self._slots.get(key) is slot:
                return None
        return None

    def claim(self, key: bytes) -> Slot:
        """Take the place for an exchange that is yet to be admitted."""
        slot = self._slots[key] = Slot(self._slots, key)
        return slot
