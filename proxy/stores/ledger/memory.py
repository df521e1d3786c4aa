"""The ledger in memory: exact while the process lives, gone with it."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from proxy.core.accounts import Accounts
from proxy.core.ledger import Adjust, Hold, HoldState, Outcome, Resolve, Settle, Step
from proxy.core.limits import Budget
from proxy.core.operations import Operation
from proxy.core.projection import Projection
from proxy.core.riders import KeptKey, KeptOutcome, KeptOwner, KeptTurn, Learned, Rider
from proxy.core.spending import Total
from proxy.stores.ledger import archive
from proxy.stores.ledger.commit import Commit, LedgerUnavailable
from proxy.stores.ledger.contract import Entry
from proxy.stores.ledger.rows import QUARTER_S, Row, facts_in, row
from proxy.stores.ledger.shelves import Shelves

ENTRIES_MAX: Final = 10_000
"""Newest entries kept for reading; the projection counts all."""


class MemoryLedger:
    """A home without a file, for tests and for running before a file is configured."""

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        self.projection: Final = Projection(accounts=Accounts(budgets))
        self.entries: Final[deque[Step]] = deque(maxlen=ENTRIES_MAX)
        self._rows: Final[deque[Row]] = deque(maxlen=ENTRIES_MAX)  # the same, as a file would have them
        self._count = 0
        self.shelves: Final = Shelves()
        self._doubtful: Final[dict[str, HoldState]] = {}

    @property
    def unknown(self) -> frozenset[str]:
        """Nothing is left of an earlier process."""
        return frozenset()

    async def apply(self, steps: Sequence[Step]) -> list[Outcome]:
        """Take each step at once."""
        return await self.submit(steps)

    def submit(self, steps: Sequence[Step], *, soon: bool = True) -> Commit:
        """Take each step at once; there is nothing to wait for."""
        outcomes = []
        for given in steps:
            step, before = given, None
            if isinstance(given, Adjust):
                step = self.projection.dated(given)
            elif not isinstance(given, Rider):
                step = self.projection.dated(given) if isinstance(given, Hold) else given
                before = self.projection.known(given.hold)
            outcome = self.projection.apply(step)
            if outcome is Outcome.OK:
                self._keep(step, before)
            outcomes.append(outcome)
        taken = Commit(steps, soon)
        taken.written(outcomes)
        return taken

    def _keep(self, step: Step, before: HoldState | None) -> None:
        if isinstance(step, Rider):
            self.shelves.take(step)
            return
        self.entries.append(step)
        self._rows.append(row(step, before, facts_in(step, before)))
        self._count += 1
        if isinstance(step, Adjust):
            return
        state = self.projection.known(step.hold)
        self._doubtful.pop(step.hold, None)
        if state is not None and state.doubt:
            self._doubtful[step.hold] = state

    def push(self) -> None:
        """Everything is written already."""

    def rebudget(self, budgets: Iterable[Budget]) -> Commit:
        """Fill new accounts from the entries that are kept."""
        accounts = Accounts(budgets)
        earlier = self.projection.accounts
        assert isinstance(earlier, Accounts)
        accounts.follow(earlier)
        open_holds = self.projection.holds
        ended: set[str] = set()
        for step in self.entries:
            if isinstance(step, Adjust):
                accounts.spent(step.facts, step.credits, step.at_s)
            elif isinstance(step, Settle | Resolve):
                ended.add(step.hold)
        for hold in ended:
            if (state := self.projection.known(hold)) is not None:
                accounts.spent(state.facts, state.charged, state.at_s)
        for name, state in open_holds.items():
            accounts.hold(name, state.facts, state.held, state.at_s)
        self.projection.accounts = accounts
        return self.submit([])

    async def remember(self, hold: str) -> HoldState | None:
        """A hold as its entries left it."""
        return self.projection.known(hold)

    async def doubtful(self) -> list[tuple[str, HoldState]]:
        """Holds that ended uncertainly and that nobody has resolved."""
        return list(self._doubtful.items())

    async def owners(self, since_s: float) -> list[KeptOwner]:
        """Ids given since an instant, oldest first."""
        return [kept for kept in self.shelves.owners.values() if kept.own.at_s >= since_s]

    async def operations(self) -> list[Operation]:
        """Open operations, oldest first."""
        return list(self.shelves.operations.values())

    async def outcome(self, team: str, key: str) -> KeptOutcome | None:
        """What is known of a call with an idempotency key."""
        return self.shelves.outcomes.get((team, key))

    async def keys(self) -> list[KeptKey]:
        """Every virtual key issued by command, oldest first."""
        return list(self.shelves.keys.values())

    async def turns(self, since_s: float) -> list[KeptTurn]:
        """Turns taken or written since an instant, and those never written, oldest first."""
        return self.shelves.turns_since(since_s)

    async def learned(self) -> list[Learned]:
        """What was learned about text, per route and model."""
        return list(self.shelves.learned.values())

    async def totals(self, since_s: float) -> list[Total]:
        """What was spent since an instant, of the entries that are kept."""
        found = []
        for step in self.entries:
            if isinstance(step, Adjust):
                found.append(Total(_quarter_s(step.at_s), step.facts, step.credits, 0))
            elif isinstance(step, Settle) and (state := self.projection.known(step.hold)) is not None:
                # What was resolved by hand since counts as it was resolved.
                found.append(Total(_quarter_s(state.at_s), state.facts, state.charged, step.charge.calls))
        return [total for total in found if total.begun_s >= _quarter_s(since_s)]

    async def entry_page(self, after: int, limit: int) -> list[Entry]:
        """So many entries after the one of a number, of those that are kept."""
        places = {step.hold: step.place for step in self.entries if isinstance(step, Hold)}
        gone = self._count - len(self._rows)
        kept = islice(enumerate(self._rows, gone + 1), max(after - gone, 0), max(after - gone, 0) + limit)
        return [archive.entry(number, made, places.get(made[1])) for number, made in kept]

    async def verify(self) -> list[str]:
        """Memory adds up by itself."""
        return []

    async def backup(self, path: Path) -> None:
        """There is no file to copy."""
        raise LedgerUnavailable(f"the books are in memory only, so there is nothing for {path}")

    async def close(self) -> None:
        """Nothing to let go of."""


def _quarter_s(at_s: float) -> float:
    return at_s // QUARTER_S * QUARTER_S
