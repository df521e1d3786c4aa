"""A hold is waited for, its ending never is; neither is lost when the caller is cancelled or the ledger is away."""

import asyncio

import pytest

from proxy.core.facts import Facts
from proxy.core.ledger import Basis, Charge, Ending, Hold, Settle
from proxy.errors import ProxyError
from proxy.server import books as books_room
from proxy.server.books import Books
from proxy.stores.ledger.contract import LedgerUnavailable
from proxy.stores.ledger.memory import MemoryLedger

HOLD = Hold("h1", Facts("red", "k", "chat"), 100, 0.0)
SETTLE = Settle("h1", Charge(5, Basis.USAGE), Ending.ANSWERED, 1.0)


class SlowLedger(MemoryLedger):
    """A home whose commits take until they are let through, and that can be away."""

    def __init__(self):
        super().__init__()
        self.gate = asyncio.Event()
        self.away = 0

    def submit(self, steps, *, soon=True):
        return asyncio.ensure_future(self._after(steps))

    async def _after(self, steps):
        await self.gate.wait()
        if self.away:
            self.away -= 1
            raise LedgerUnavailable
        return await super().submit(steps)


async def test_a_caller_cancelled_during_the_commit_has_its_hold_voided():
    store = SlowLedger()
    books = Books(store)
    asking = asyncio.ensure_future(books.hold(HOLD))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    store.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    await books.written()
    assert [type(entry).__name__ for entry in store.entries] == ["Hold", "Void"]
    assert books.open_holds == 0


async def test_a_ledger_that_is_away_admits_nothing():
    store = SlowLedger()
    store.gate.set()
    store.away = 1
    books = Books(store)
    with pytest.raises(ProxyError) as refused:
        await books.hold(HOLD)
    assert refused.value.reason.name == "ledger_unavailable"
    assert not books.available
    await books.hold(HOLD)
    assert books.available


async def test_an_ending_is_kept_until_the_ledger_is_back(monkeypatch):
    monkeypatch.setattr(books_room, "RETRY_S", 0.0)
    store = SlowLedger()
    store.gate.set()
    books = Books(store)
    await books.hold(HOLD)
    store.away = 3
    books.end(SETTLE)
    await books.written()
    assert store.projection.spent == {"red": 5}
    assert books.open_holds == 0
