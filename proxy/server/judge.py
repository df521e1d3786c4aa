"""Where bodies are judged: small ones at once, large ones in a process of their own.

Reading 25 MB of JSON holds the interpreter for a quarter of a second, and every stream with it. The worker gives facts
back, never the tree.
"""

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final

from proxy.core import body
from proxy.errors import ProxyError


class Judge:
    """Judges bodies; start the worker with the first large one."""

    def __init__(self, make_pool: Callable[[], Executor] | None = None) -> None:
        self._make_pool: Final = make_pool or _one_worker
        self._pool: Executor | None = None

    async def facts(self, raw: bytes, dialect: body.Dialect) -> body.Facts:
        """Facts of a body; raises ProxyError `bad_request`."""
        return body.judge(raw, dialect) if len(raw) <= body.LARGE else await self._elsewhere(raw, dialect)

    def at_once(self, raw: bytes, dialect: body.Dialect) -> tuple[body.Facts, dict[str, Any] | None] | None:
        """What `body.judged` has of a small body, None of a large one. Raises as `facts` does."""
        return body.judged(raw, dialect) if len(raw) <= body.LARGE else None

    async def _elsewhere(self, raw: bytes, dialect: body.Dialect) -> body.Facts:
        loop = asyncio.get_running_loop()
        for _ in range(2):
            if self._pool is None:
                self._pool = self._make_pool()
            try:
                judged = await loop.run_in_executor(self._pool, body.judge_large, raw, dialect)
            except BrokenProcessPool:
                # The worker was killed; a new one judges the same bytes.
                self._pool = None
                continue
            if isinstance(judged, str):
                raise ProxyError("bad_request", judged)
            return judged
        return body.judge(raw, dialect)

    async def close(self) -> None:
        """Let the worker go."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)


def _one_worker() -> Executor:
    # Spawned, not forked: a fork would take the gateway key, the sockets and the ledger's lock along.
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
