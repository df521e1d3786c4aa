"""Calls on their way that identical ones may join."""

import asyncio
import time
from math import inf
from typing import Final

from proxy.server.sources import Shared, SharedSource


class Slot:
    """A place for one exchange: claimed before admission, filled with the exchange, or given up."""

    __slots__ = ("_is_free", "_key", "_left", "_shared", "_slots", "_waiting")

    def __init__(self, slots: "dict[bytes, Slot]", key: bytes) -> None:
        self._slots: Final = slots
        self._key: Final = key
        self._shared: Shared | None = None
        self._is_free = False
        self._waiting: asyncio.Future[None] | None = None
        self._left: asyncio.Future[None] | None = None

    @property
    def shared(self) -> Shared | None:
        """The exchange, once there is one."""
        return self._shared

    async def exchange(self) -> Shared | None:
        """Wait for the exchange; None when whoever claimed the place was refused or left."""
        if self._shared is None and not self._is_free:
            self._waiting = self._waiting or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiting)
        return self._shared

    def fill(self, shared: Shared) -> None:
        """Offer the exchange to all who wait, and to newcomers until it ends and the place is left."""
        self._shared = shared
        self._wake()

    def give_up(self) -> None:
        """Let one of those who wait try for itself; does nothing once filled."""
        if self._shared is None and not self._is_free:
            self._is_free = True
            self.leave()
            self._wake()

    def leave(self) -> None:
        """The place is another call's."""
        if self._slots.get(self._key) is self:
            del self._slots[self._key]
        if self._left is not None and not self._left.done():
            self._left.set_result(None)

    async def left(self) -> None:
        """Wait until the place is another call's."""
        if self._slots.get(self._key) is self:
            self._left = self._left or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._left)

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.set_result(None)


class InFlight:
    """Shared exchanges that newcomers may still join, by the key of their answer."""

    def __init__(self) -> None:
        self._slots: Final[dict[bytes, Slot]] = {}

    def has(self, key: bytes) -> bool:
        """Whether there is a call that may be joined, or is about to be."""
        return key in self._slots

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
            if shared.is_over:
                # Whoever had it sent is about to say whether it is sent again.
                await slot.left()
                continue
            # Of those who waited for it in vain one takes its place, and the others wait for that one.
            if self._slots.get(key) is slot:
                return None
        return None

    def claim(self, key: bytes) -> Slot:
        """Take the place for an exchange that is yet to be admitted."""
        slot = self._slots[key] = Slot(self._slots, key)
        return slot
