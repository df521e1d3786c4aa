"""What every home of the ledger promises: one writing method, and a projection that is always current.

`submit(steps)` takes a batch, decides each step with `core.projection` and answers with one outcome a step, in order.
When they are there, the accepted steps are as durable as the home can make them; a step whose outcome is not `OK` left
no trace. The answer is `LedgerUnavailable` when nothing was written. Cancelling who waits does not undo a batch.

A batch that nobody waits for is submitted with `soon=False`: it is decided at once and written with the next batch that
somebody waits for, after `LATER_S` when none comes, or when `push` is called.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from proxy.core.ledger import HoldState, Outcome, Step
from proxy.core.limits import Budget
from proxy.core.operations import Operation
from proxy.core.projection import Projection
from proxy.core.riders import KeptKey, KeptOutcome, KeptOwner, KeptTurn, Learned
from proxy.core.spending import Total
from proxy.stores.ledger.commit import Commit

LATER_S: Final = 0.02
"""How long a batch that nobody waits for may stay unwritten."""


Entry = Mapping[str, Any]
"""One entry for export: id, kind, hold, at_s, its facts, credits and what else its kind has."""


class CannotOpen(Exception):
    """The home cannot be used; the message says why and what to do."""


class LedgerStore(Protocol):
    """A home of the ledger."""

    @property
    def projection(self) -> Projection:
        """What all entries add up to. Read it, do not change it."""
        ...

    @property
    def unknown(self) -> frozenset[str]:
        """Open holds of an earlier process: they count as spent until somebody says what they cost."""
        ...

    def submit(self, steps: Sequence[Step], *, soon: bool = True) -> Commit:
        """Hand a batch in. soon: somebody waits for it."""
        ...

    def push(self) -> None:
        """Write at once what was not to be written soon."""
        ...

    async def apply(self, steps: Sequence[Step]) -> list[Outcome]:
        """Hand a batch in and wait for it; raises LedgerUnavailable."""
        ...

    def rebudget(self, budgets: Sequence[Budget]) -> Commit:
        """Keep accounts of these budgets from the next batch on, filled from the entries; done when they are made."""
        ...

    async def remember(self, hold: str) -> HoldState | None:
        """A hold as its entries left it, however long ago; what is submitted next is judged by it."""
        ...

    async def doubtful(self) -> Sequence[tuple[str, HoldState]]:
        """Holds that ended uncertainly and that nobody has resolved; those without an ending are `unknown`."""
        ...

    async def owners(self, since_s: float) -> Sequence[KeptOwner]:
        """Ids given since an instant, oldest first."""
        ...

    async def operations(self) -> Sequence[Operation]:
        """Open operations, oldest first."""
        ...

    async def outcome(self, team: str, key: str) -> KeptOutcome | None:
        """What is known of a call with an idempotency key."""
        ...

    async def keys(self) -> Sequence[KeptKey]:
        """Every virtual key issued by command, oldest first."""
        ...

    async def turns(self, since_s: float) -> Sequence[KeptTurn]:
        """Turns taken or written since an instant, and those never written, oldest first."""
        ...

    async def learned(self) -> Sequence[Learned]:
        """What was learned about text, per route and model."""
        ...

    async def totals(self, since_s: float) -> Sequence[Total]:
        """What was spent since an instant, per quarter of an hour and kind of call."""
        ...

    async def entry_page(self, after: int, limit: int) -> Sequence[Entry]:
        """So many entries after the one of a number, in the order they were written."""
        ...

    async def verify(self) -> Sequence[str]:
        """Everything that does not add up; empty when it does."""
        ...

    async def backup(self, path: Path) -> None:
        """Write a whole copy into a new file; raises LedgerUnavailable."""
        ...

    async def close(self) -> None:
        """Finish what is being written and let go of the home."""
        ...
