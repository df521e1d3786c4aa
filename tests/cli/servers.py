"""A proxy for commands to ask: in a thread with a loop of its own, on real ports, since commands block."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.config.policyfile import load_policies
from proxy.config.settings import LogFormat
from proxy.config.sources import load
from proxy.emulator.gateway import Options
from proxy.emulator.gateway import running as emulated
from proxy.observe.log import RequestLog
from proxy.server.app import Running, running
from proxy.server.opening import Doubles


@dataclass
class Served:
    """A running proxy as other threads see it."""

    loop: asyncio.AbstractEventLoop
    proxy: Running
    lines: list[bytes]

    @property
    def admin(self) -> str:
        return self.proxy.admin_url.removeprefix("http://")

    def within(self, work: Callable[[], Any]) -> Any:
        """Run something in the proxy's own loop."""

        async def once() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(once(), self.loop).result(60)


@contextmanager
def served(
    policies: str, upstream: str = "http://127.0.0.1:1", *, emulate: bool = False, **flags: Any
) -> Iterator[Served]:
    """A proxy on the policies of a folder, with its ledger in `data/`. emulate: with a gateway's double behind it."""
    given = {"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "data": "data", **flags}
    policy = load_policies(Path(policies))
    started: list[Served] = []
    ready, stop = threading.Event(), asyncio.Event()
    lines: list[bytes] = []

    async def serve() -> None:
        log = RequestLog(lines.append, form=LogFormat.JSON)
        async with AsyncExitStack() as stack:
            behind = (await stack.enter_async_context(emulated(Options(limits=False)))).url if emulate else upstream
            settings = load(
                {**given, "upstream": behind, "policies": policies}, {"SLUICEGATE_UPSTREAM_KEY": "sk-emu-alpha-1"}, None
            )
            proxy = await stack.enter_async_context(running(settings, policy, Doubles(log=log)))
            started.append(Served(asyncio.get_running_loop(), proxy, lines))
            ready.set()
            await stop.wait()

    def thread() -> None:
        try:
            asyncio.run(serve())
        finally:
            ready.set()

    worker = threading.Thread(target=thread)
    worker.start()
    ready.wait(60)
    assert started
    try:
        yield started[0]
    finally:
        started[0].loop.call_soon_threadsafe(stop.set)
        worker.join(60)


@contextmanager
def serving(policies: str, **flags: Any) -> Iterator[str]:
    """The address of its admin listener alone."""
    with served(policies, **flags) as one:
        yield one.admin
