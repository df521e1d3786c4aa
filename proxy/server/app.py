"""The proxy as one running thing: it listens, and at its end it is drained."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from aiohttp import web

from proxy.admin import alerts
from proxy.admin.api import make_app
from proxy.config.settings import Settings
from proxy.config.values import Address
from proxy.core.policy import Policy
from proxy.errors import ProxyError
from proxy.observe import lag
from proxy.server import pipeline, polling, quotas, reconciler, reload, replies, upkeep, verbatim, warnings
from proxy.server.cache import watch as watch_cache
from proxy.server.inbound import Again, Inbound
from proxy.server.listener import CHUNK_MAX, Answering, Connection, Listener, ListenerLimits
from proxy.server.opening import Doubles, Hung, open_parts
from proxy.server.parts import Parts

BACKLOG: Final = 1024
LAST_WORDS_S: Final = 1.0
"""What a handler gets to write its last bytes once a drain is over."""

SETTLE_S: Final = 2.0
"""How long after a drain its endings may take to be written, beside what is left of the drain's own time.

A disk that works needs milliseconds.
"""


class Running:
    """A proxy that listens. Made by `running`, which drains it at its end."""

    def __init__(self, parts: Parts, listener: Listener) -> None:
        self.parts: Final = parts
        self.data_url = ""
        self.admin_url = ""
        self._listener: Final = listener
        self._hurry: Final = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def listen(self, address: Address) -> None:
        """Open the data listener."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._listener, address.host, address.port, backlog=BACKLOG)
        self.data_url = _url(address, self._server.sockets[0].getsockname()[1])

    def hurry(self) -> None:
        """Do not wait any longer for calls that still run."""
        self._hurry.set()

    async def drain(self, within_s: float) -> None:
        """Take no new work, let what runs finish within the time, then end the rest; every hold gets its ending."""
        self.parts.state.draining = True
        self._listener.closing = True
        if self._server is not None:
            self._server.close()
        self._listener.close_idle()
        loop = asyncio.get_running_loop()
        due_s = loop.time() + within_s + SETTLE_S
        finished = asyncio.ensure_future(self._finished())
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait([finished, hurry], timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (finished, hurry):
            waiting.cancel()
        self.parts.exchanges.stop()
        await self._listener.shutdown(LAST_WORDS_S)
        await self._settle(due_s - loop.time())

    async def _settle(self, within_s: float) -> None:
        """Wait for the endings of what ran, but not for a ledger that takes none: their holds stay, which is safe."""
        books = self.parts.books
        written = asyncio.ensure_future(books.written())
        hurry = asyncio.ensure_future(self._hurry.wait())
        within_s = max(LAST_WORDS_S, within_s) if books.available else LAST_WORDS_S
        waits = [written, hurry]
        if self._hurry.is_set():
            # Who does not wait for calls any more still waits for a moment for what they cost to be written.
            waits, within_s = [written], LAST_WORDS_S
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (written, hurry):
            waiting.cancel()
        if books.unwritten:
            self.parts.log.note(
                "error", "endings_unwritten", count=books.unwritten, means="their holds stay spent until somebody says"
            )

    async def _finished(self) -> None:
        await self.parts.active.none()
        await self.parts.exchanges.finished()


@asynccontextmanager
async def running(settings: Settings, policy: Policy, doubles: Doubles | None = None) -> AsyncIterator[Running]:
    """A listening proxy; at the end it is drained and closed. Raises Hung then, when a file does not let go."""
    doubles = doubles or Doubles()
    hung: list[str] = []
    async with AsyncExitStack() as stack:
        parts = await open_parts(stack, settings, policy, doubles, hung)

        def again(connection: Connection, sent: bytes) -> tuple[Again, Answering] | None:
            head = connection.head
            if head is None or (body := head.body_of(sent)) is None:
                if (found := parts.heads.again(sent)) is None:
                    return None
                head, body = found
                connection.head = head
            inbound = Again(connection, head.known, body, sent if len(sent) <= CHUNK_MAX else None)
            return inbound, pipeline.answer(inbound, parts)

        def known(sent: bytes) -> Sequence[bytes]:
            try:
                return verbatim.answer(sent, parts)
            except Exception as fault:  # noqa: BLE001  (a fault here must not cost a connection: all stages are left)
                parts.log.note("error", "fault", stage="recall", kind=type(fault).__name__)
                return ()

        listener = Listener(
            lambda request: pipeline.answer(Inbound(request), parts),
            lambda refused: _unparsed(refused, parts),
            _limits(settings),
            known,
            again,
        )
        proxy = Running(parts, listener)
        proxy.admin_url = await _open_admin(stack, parts, settings)
        await proxy.listen(settings.listen)
        stack.push_async_callback(proxy.drain, settings.drain)
        for watching in (
            lag.watch(parts.metrics),
            reload.watch(parts),
            watch_cache(parts.cache),
            polling.watch(parts),
            upkeep.watch(parts),
            warnings.watch(parts),
            alerts.watch(parts),
            reconciler.watch(parts),
            quotas.watch(parts),
        ):
            stack.callback(asyncio.ensure_future(watching).cancel)
        yield proxy
    if hung:
        raise Hung(", ".join(hung))


async def _open_admin(stack: AsyncExitStack, parts: Parts, settings: Settings) -> str:
    runner = web.AppRunner(make_app(parts), access_log=None, shutdown_timeout=LAST_WORDS_S, handle_signals=False)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, settings.admin_listen.host, settings.admin_listen.port)
    await site.start()
    return _url(settings.admin_listen, site.port)


def _url(address: Address, port: int) -> str:
    return f"http://{Address(address.host, port)}"


def _limits(settings: Settings) -> ListenerLimits:
    return ListenerLimits(
        head_s=settings.head_timeout,
        body_s=settings.body_timeout,
        body_idle_s=settings.body_idle_timeout,
        write_s=settings.write_timeout,
        keepalive_s=settings.keepalive_timeout,
        head_bytes=settings.max_header_bytes,
        connections=settings.max_connections,
        connections_per_peer=settings.max_connections_per_peer,
    )


def _unparsed(refused: ProxyError | None, parts: Parts) -> web.Response:
    """The answer for bytes that never became a request."""
    parts.metrics.count("refusals_total", "_none", refused.reason.name if refused else "fault")
    return replies.unparsed(refused, parts)


async def serve(settings: Settings, policy: Policy, *, ready: Callable[[Running], None] | None = None) -> int:
    """Run until SIGTERM or SIGINT, then drain; a second signal ends at once. Returns the exit code. Raises Hung."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with running(settings, policy) as proxy:

        def asked() -> None:
            if stop.is_set():
                proxy.hurry()
            stop.set()

        for name in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(name, asked)
        reloads: set[asyncio.Task[list[str]]] = set()

        def hung_up() -> None:
            task = loop.create_task(reload.reload(proxy.parts))
            reloads.add(task)
            task.add_done_callback(reloads.discard)

        with contextlib.suppress(NotImplementedError, AttributeError):
            loop.add_signal_handler(signal.SIGHUP, hung_up)
        if ready is not None:
            ready(proxy)
        await stop.wait()
        proxy.parts.log.note(
            "info",
            "draining",
            open_exchanges=len(proxy.parts.exchanges.open),
            open_operations=len(proxy.parts.operations),
        )
    return 0
