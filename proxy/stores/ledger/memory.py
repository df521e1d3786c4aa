"""The ledger in memory: exact while the process lives, gone with it."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from proxy.core.accounts import Accounts
from proxy.core.ledger import Outcome, Projection, Settle, Step
from proxy.core.limits import Budget

ENTRIES_MAX: Final = 10_000
"""Newest entries kept for reading; the projection counts all."""


class MemoryLedger:
    """A home without a file, for tests and for running before a file is configured."""

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        self.projection: Final = Projection(accounts=Accounts(budgets))
        self.entries: Final[deque[Step]] = deque(maxlen=ENTRIES_MAX)

    async def apply(self, steps: Sequence[Step]) -> list[Outcome]:
        """Take each step at once."""
        return await self.submit(steps)

    def submit(self, steps: Sequence[Step]) -> asyncio.Future[list[Outcome]]:
        """Take each step at once; there is nothing to wait for."""
        outcomes = []
        for step in steps:
            outcome = self.projection.apply(step)
            if outcome is Outcome.OK:
                self.entries.append(step)
            outcomes.append(outcome)
        taken: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        taken.set_result(outcomes)
        return taken

    def rebudget(self, budgets: Iterable[Budget]) -> None:
        """Fill new accounts from the entries that are kept."""
        accounts = Accounts(budgets)
        open_holds = self.projection.holds
        for step in self.entries:
            if isinstance(step, Settle) and (state := self.projection.known(step.hold)) is not None:
                accounts.spent(state.facts, step.charge.credits, state.at_s)
        for name, state in open_holds.items():
            accounts.hold(name, state.facts, state.held, state.at_s)
        self.projection.accounts = accounts

    async def close(self) -> None:
        """Nothing to let go of."""
