"""What every home of the ledger promises: one writing method, and a projection that is always current.

`submit(steps)` takes a batch, decides each step with `core.ledger` and answers with one outcome a step, in order. When
they are there, the accepted steps are as durable as the home can make them; a step whose outcome is not `OK` left no
trace. The answer is `LedgerUnavailable` when nothing was written. Cancelling who waits does not undo a batch.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from proxy.core.ledger import Outcome, Projection, Step
from proxy.core.limits import Budget


class LedgerUnavailable(Exception):
    """The home cannot take entries now; nothing of the batch was written."""


class CannotOpen(Exception):
    """The home cannot be used; the message says why and what to do."""


class LedgerStore(Protocol):
    """A home of the ledger."""

    @property
    def projection(self) -> Projection:
        """What all entries add up to. Read it, do not change it."""
        ...

    def submit(self, steps: Sequence[Step]) -> "asyncio.Future[list[Outcome]]":
        """Hand a batch in; the future has its outcomes, or LedgerUnavailable. Cancelling it undoes nothing."""
        ...

    async def apply(self, steps: Sequence[Step]) -> list[Outcome]:
        """Hand a batch in and wait for it; raises LedgerUnavailable."""
        ...

    def rebudget(self, budgets: Sequence[Budget]) -> None:
        """Keep accounts of these budgets from the next batch on, filled from the entries."""
        ...

    async def close(self) -> None:
        """Finish what is being written and let go of the home."""
        ...
