"""A home of the ledger whose first hold waits for a gate, as on a disk that takes its time."""

import asyncio
from collections.abc import Sequence

from proxy.core.ledger import Hold, Outcome, Step
from proxy.stores.ledger.memory import MemoryLedger


class Held(MemoryLedger):
    """asked: the first hold is on its way.      gate: lets it arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    def submit(self, steps: Sequence[Step], *, soon: bool = True) -> asyncio.Future[list[Outcome]]:
        if not self.asked.is_set() and any(isinstance(step, Hold) for step in steps):
            self.asked.set()
            return asyncio.ensure_future(self._after(steps))
        return super().submit(steps, soon=soon)

    async def _after(self, steps: Sequence[Step]) -> list[Outcome]:
        await self.gate.wait()
        return await super().submit(steps)
