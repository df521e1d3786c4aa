"""A hold is waited for, its ending never is; neither is lost when the caller is cancelled or the ledger is away."""

import asyncio

import pytest

from proxy.core.charges import Basis, Charge, Ending
from proxy.core.facts import Facts
from proxy.core.ledger import Hold, Settle
from proxy.core.limits import Budget
from proxy.core.riders import Promise
from proxy.core.windows import Calendar, Per
from proxy.errors import ProxyError
from proxy.server import books as books_room
from proxy.server.books import Books
from proxy.stores.ledger.commit import LedgerUnavailable
from proxy.stores.ledger.sqlite import SqliteLedger
from tests.held import Late

HOLD = Hold("h1", Facts("red", "k", "chat"), 100, 0.0)
SETTLE = Settle("h1", Charge(5, Basis.USAGE), Ending.ANSWERED, 1.0)


class SlowLedger(Late):
    """A home whose commits take until they are let through, and that can be away."""

    def __init__(self, *budgets):
        super().__init__(budgets)
        self.gate = asyncio.Event()
        self.away = 0

    def submit(self, steps, *, soon=True):
        return self.late(steps, soon=soon)

    async def let_in(self, steps):
        await self.gate.wait()
        if self.away:
            self.away -= 1
            raise LedgerUnavailable("full")


class Second(Late):
    """A home in which the ending of the second hold takes until it is let in."""

    def __init__(self):
        super().__init__()
        self.gate = asyncio.Event()

    def submit(self, steps, *, soon=True):
        if isinstance(steps[0], Settle) and steps[0].hold == "h2":
            return self.late(steps, soon=soon)
        return super().submit(steps, soon=soon)

    async def let_in(self, steps):
        await self.gate.wait()


async def test_a_caller_cancelled_during_the_commit_has_its_hold_voided():
    store = SlowLedger()
    books = Books(store)
    asking = asyncio.ensure_future(books.hold(HOLD))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert books.unanswered == 1, "the home still owes an answer, whoever waits for it"
    store.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    await books.written()
    assert [type(entry).__name__ for entry in store.entries] == ["Hold", "Void"]
    assert (books.open_holds, books.unanswered) == (0, 0)


async def test_two_endings_on_their_way_are_both_waited_for():
    store = Second()
    books = Books(store)
    for name in ("h1", "h2"):
        await books.hold(HOLD._replace(hold=name))
    books.end(SETTLE._replace(hold="h2"))
    books.end(SETTLE)
    all_written = asyncio.ensure_future(books.written())
    for _ in range(5):
        await asyncio.sleep(0)
    assert (books.unwritten, all_written.done()) == (1, False)
    store.gate.set()
    await all_written
    assert books.open_holds == 0


async def test_a_ledger_that_is_away_admits_nothing():
    store = SlowLedger()
    store.gate.set()
    store.away = 2
    books = Books(store)
    told = []
    books.told = told.append
    for _ in range(2):
        with pytest.raises(ProxyError) as refused:
            await books.hold(HOLD)
        assert refused.value.reason.name == "ledger_unavailable"
        assert not books.available
    assert told == ["full"], "why, and once"
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


async def test_an_ending_is_written_at_once_where_somebody_waits_for_what_it_frees(tmp_path):
    """Nobody else writes here, and what nobody waits for stays unwritten for an hour."""
    store = await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0, later_s=3600.0)
    books = Books(store)
    for name in ("h1", "h2", "h3"):
        await books.hold(HOLD._replace(hold=name))
    before = books.next_ending()
    books.end(SETTLE)
    await books.ending(before, 3600.0)
    waiting = asyncio.ensure_future(books.ending(books.next_ending(), 3600.0))
    await asyncio.sleep(0)
    books.end(SETTLE._replace(hold="h2"))
    await waiting
    books.end(SETTLE._replace(hold="h3"))
    await books.written()
    assert store.projection.spent == {"red": 15}
    await books.close()


async def test_who_waits_gets_in_when_a_cancelled_callers_hold_is_gone(tmp_path):
    budget = Budget("total", 150, Calendar(Per.TOTAL))
    store = await SqliteLedger.open(tmp_path / "ledger.db", (budget,), now_s=0.0, later_s=3600.0)
    books = Books(store)
    asking = asyncio.ensure_future(books.hold(HOLD))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    second, promise = HOLD._replace(hold="h2"), Promise("red", "k2", "00", 0.0, "h2")
    ended = books.next_ending()
    while await books.hold(second, [promise]) is not None:
        assert await books.outcome("red", "k2") is None, "what rides with a hold is not taken without it"
        await books.ending(ended, 3600.0)
        ended = books.next_ending()
    assert await books.outcome("red", "k2") is not None
    assert set(store.projection.holds) == {"h2"}
    await books.close()
