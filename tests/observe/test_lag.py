import asyncio
import contextlib
import time

from proxy.observe.lag import watch
from proxy.observe.metrics import Metrics


class Seen(Metrics):
    """Metrics that say when something was observed."""

    def __init__(self):
        super().__init__(process=False)
        self.values = asyncio.Queue()

    def observe(self, name, *labels, value):
        super().observe(name, *labels, value=value)
        self.values.put_nowait((name, value))


async def test_a_loop_that_was_held_up_is_seen():
    metrics = Seen()
    task = asyncio.create_task(watch(metrics, every_s=0.001))
    await metrics.values.get()
    time.sleep(0.05)  # noqa: ASYNC251  (it is the stall that must be seen)
    lag_s = 0.0
    while lag_s < 0.04:
        name, lag_s = await metrics.values.get()
    assert name == "event_loop_lag_seconds"
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
