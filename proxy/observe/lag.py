"""How late the event loop wakes up: the pause that every caller feels and no request's own time shows."""

import asyncio
from typing import Final

from proxy.observe.metrics import Metrics

EVERY_S: Final = 0.25
"""Four wakes a second find a stall of a quarter of a second for sure and cost nothing."""


async def watch(metrics: Metrics, *, every_s: float = EVERY_S) -> None:
    """Measure until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + every_s
        await asyncio.sleep(every_s)
        metrics.observe("event_loop_lag_seconds", value=max(0.0, loop.time() - due_s))
