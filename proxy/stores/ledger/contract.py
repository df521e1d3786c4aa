"""What every home of the ledger promises: one writing method, and a projection that is always current.

`apply(steps)` takes a batch, decides each step with `core.ledger` and answers with one outcome a step, in order. When
it returns, the accepted steps are as durable as the home can make them; a step whose outcome is not `OK` left no trace.
It
raises `LedgerUnavailable` when nothing was written. Cancelling the caller does not undo a batch that is being written.
"""

from collections.abc import Sequence
from typing import Protocol

from proxy.core.ledger import Outcome, Projection, Step


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

    async def apply(self, steps: Sequence[Step]) -> list[Outcome]:
        """Take a batch of steps; raises LedgerUnavailable."""
        ...

    async def close(self) -> None:
        """Finish what is being written and let go of the home."""
        ...
