"""A home of the ledger whose first hold waits for a gate, as on a disk that takes its time."""

import asyncio
from collections.abc import Sequence

from proxy.core.ledger import Hold, Step
from proxy.stores.ledger.commit import Commit, LedgerUnavailable
from proxy.stores.ledger.memory import MemoryLedger


class Late(MemoryLedger):
    """A home some of whose batches take their time: a subclass says how long."""

    async def let_in(self, steps: Sequence[Step]) -> None:
        """Return when the steps may go on; raises LedgerUnavailable where they may not."""
        raise NotImplementedError

    def late(self, steps: Sequence[Step], *, soon: bool = True) -> Commit:
        """Hand a batch in when it was let in."""
        commit = Commit(steps, soon=soon)
        self._last = asyncio.ensure_future(self._after(commit))
        return commit

    async def _after(self, commit: Commit) -> None:
        try:
            await self.let_in(commit.steps)
        except LedgerUnavailable as error:
            commit.refused(str(error))
        else:
            commit.written(super().submit(commit.steps).outcomes)


class Held(Late):
    """asked: the first hold is on its way.      gate: lets it arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    def submit(self, steps: Sequence[Step], *, soon: bool = True) -> Commit:
        if not self.asked.is_set() and any(isinstance(step, Hold) for step in steps):
            self.asked.set()
            return self.late(steps, soon=soon)
        return super().submit(steps, soon=soon)

    async def let_in(self, steps: Sequence[Step]) -> None:
        await self.gate.wait()
