"""What a proxy is put together from, opened in one place and let go of in the reverse order."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from proxy.admin import alerts
from proxy.config.secret import Secret, secret_from_file
from proxy.config.settings import Durability, LogFormat, Settings
from proxy.core.learned import Densities
from proxy.core.owners import KEPT_S, Owner, Owners
from proxy.core.policy import Policy
from proxy.core.refusals import Refusals
from proxy.mcp.cancelling import Cancelling
from proxy.mcp.toolbox import Toolbox
from proxy.mcp.views import Views
from proxy.observe.log import RequestLog, open_log
from proxy.observe.metrics import Metrics
from proxy.observe.news import Newsroom
from proxy.observe.recent import Recent
from proxy.observe.seeds import seed
from proxy.observe.traces import ExtraMissing, Traces
from proxy.server import quotas, reconciler
from proxy.server.books import Books
from proxy.server.boot import this_boot
from proxy.server.cache import SECRET_BYTES, Cache, secret_of
from proxy.server.exchange import Bounds, Exchanges
from proxy.server.heads import Heads
from proxy.server.ids import new_id
from proxy.server.in_flight import InFlight
from proxy.server.judge import Judge
from proxy.server.keys import Keys
from proxy.server.known import Known
from proxy.server.operations import Operations
from proxy.server.parts import Parts, State
from proxy.server.promises import Promises
from proxy.server.repeats import Repeats
from proxy.server.turns import Queue
from proxy.server.upstream import Upstream
from proxy.stores.cache.contract import CacheStore
from proxy.stores.cache.memory import MemoryCache
from proxy.stores.cache.sqlite import SqliteCache
from proxy.stores.ledger.contract import CannotOpen, LedgerStore
from proxy.stores.ledger.memory import MemoryLedger
from proxy.stores.ledger.sqlite import SqliteLedger
from proxy.stores.newsfile import NewsFile
from proxy.stores.quotafile import kept_quotas
from proxy.stores.spanfile import SpanFile

LEDGER: Final = "ledger.db"
"""Name of the books in the data folder."""

CACHE: Final = "cache.db"
"""Name of the file of the cache in the data folder."""

NOWHERE: Final = "http://gateway.invalid"
"""Stands for the gateway where none is set: nothing is sent there."""

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
WILDCARDS: Final = frozenset({"0.0.0.0", "::"})

CLOSE_S: Final = 5.0
"""How long a file may take to be let go of. A disk that does not answer keeps the thread that waits for it for good."""


class Hung(Exception):
    """A disk does not answer: everything is over, but for threads that wait for it and would keep the process."""


@dataclass(frozen=True, slots=True)
class Doubles:
    """What a test may put in the place of the real thing."""

    wall: Callable[[], float] = time.time
    log: RequestLog | None = None
    ledger: LedgerStore | None = None
    cache: CacheStore | None = None


async def open_parts(
    stack: AsyncExitStack, settings: Settings, policy: Policy, doubles: Doubles, hung: list[str] | None = None
) -> Parts:
    """hung: takes the names of files that do not let go when they are closed."""
    hung = [] if hung is None else hung
    log = doubles.log
    if log is None:
        log, sink = open_log(
            sys.stderr,
            settings.log_format,
            settings.log_level,
            (settings.upstream_key, settings.admin_token, settings.alert_url, settings.alert_secret),
        )
        stack.callback(sink.close)
    metrics = Metrics()
    metrics.set("policy_last_reload_successful", to=1)
    metrics.set("policy_last_reload_success_timestamp_seconds", to=doubles.wall())
    seed(metrics, policy)
    ledger = doubles.ledger or await _open_ledger(settings, policy, doubles, log)
    books = Books(ledger)
    books.told = lambda why: log.note("error", "ledger_unavailable", why=why)
    books.back = lambda: log.note("info", "ledger_back", means="it takes entries again")

    def lost() -> dict[str, object]:
        return {
            "endings": books.unwritten,
            "steps": books.unanswered,
            "means": "holds without an ending stay spent until somebody says",
        }

    stack.push_async_callback(_let_go, LEDGER, books.close, log, hung, lost)
    spans = SpanFile(settings.data)
    reconciler.gauge(spans.span, metrics)
    told, waiting = alerts.kept_news(NewsFile(settings.data))
    news = Newsroom(delivers=settings.alert_url is not None, told=told, waiting=waiting)
    keys = Keys(books.store, settings.data, doubles.wall)
    await keys.load()
    upstream = Upstream(
        str(settings.upstream or NOWHERE),
        connect_s=settings.connect_timeout,
        read_s=settings.upstream_read_timeout,
        keepalive_s=settings.upstream_keepalive,
    )
    stack.push_async_callback(upstream.close)
    traces = _open_traces(settings, log)
    if traces is not None:
        stack.push_async_callback(traces.close)
    judge = Judge()
    stack.push_async_callback(judge.close)
    store = doubles.cache or await SqliteCache.open(settings.data / CACHE, settings.cache_size)
    cache = Cache(
        store,
        secret_of(settings.data) if doubles.cache is None else os.urandom(SECRET_BYTES),
        str(settings.upstream),
        memory_bytes=settings.cache_memory,
        wall=doubles.wall,
    )
    stack.push_async_callback(_let_go, CACHE, cache.close, log, hung, lambda: {"means": "newest answers are not kept"})
    queue = Queue(policy, books, metrics, boot=this_boot(), wall=doubles.wall, room=settings.queue_bytes)
    stack.callback(queue.close)
    await queue.take_up()
    models = Known()
    bounds = Bounds(settings.read_on_time, settings.read_on_bytes, settings.read_on_max)
    exchanges = Exchanges(bounds, upstream, books, doubles.wall)
    return Parts(
        settings=settings,
        state=State(policy, settings.upstream_key, quotas=kept_quotas(settings.data) if doubles.ledger is None else {}),
        books=books,
        upstream=upstream,
        exchanges=exchanges,
        operations=Operations(books, metrics, models, log, doubles.wall, kept=await ledger.operations()),
        owners=await _owners(ledger, doubles.wall()),
        densities=Densities(await ledger.learned()),
        keys=keys,
        spans=spans,
        in_flight=InFlight(),
        heads=Heads(),
        repeats=Repeats(),
        cache=cache,
        promises=Promises(),
        queue=queue,
        refusals=Refusals(),
        judge=judge,
        metrics=metrics,
        log=log,
        recent=Recent(),
        traces=traces,
        news=news,
        instance=f"sluicegate-{os.urandom(4).hex()}",
        wall=doubles.wall,
        new_id=new_id,
        reread_key=lambda: _key_again(settings),
        allowed_hosts=LOOPBACK_NAMES | {settings.listen.host} | frozenset(settings.allowed_hosts),
        cors_origins=frozenset(settings.cors_origins),
        any_ip_host=settings.listen.host in WILDCARDS,
        models=models,
        suites=Known(),
        tools=Known(),
        toolbox=Toolbox(),
        views=Views(),
        cancelling=Cancelling(),
    )


async def _let_go(
    name: str,
    close: Callable[[], Awaitable[None]],
    log: RequestLog,
    hung: list[str],
    lost: Callable[[], dict[str, object]],
) -> None:
    """Close a file, for as long as that may take; else say what of it was not written, and go on.

    It is not cancelled: who closes a database waits for its thread, and would wait again.
    """
    closing = asyncio.ensure_future(close())
    await asyncio.wait([closing], timeout=CLOSE_S)
    if closing.done():
        closing.result()
        return
    hung.append(name)
    log.note("error", "disk_does_not_answer", file=name, **lost())


def _open_traces(settings: Settings, log: RequestLog) -> Traces | None:
    """Raises CannotOpen where spans are asked for and cannot be made."""
    if settings.otlp_endpoint is None:
        return None
    try:
        return Traces(str(settings.otlp_endpoint), lambda why: log.note("warning", "spans_lost", why=why))
    except ExtraMissing as missing:
        raise CannotOpen(str(missing)) from missing


async def _open_ledger(settings: Settings, policy: Policy, doubles: Doubles, log: RequestLog) -> LedgerStore:
    """The ledger in the data folder; raises CannotOpen."""
    full = settings.durability is Durability.FULL
    budgets = quotas.budgets_in_force(policy, kept_quotas(settings.data))
    ledger = await SqliteLedger.open(settings.data / LEDGER, budgets, now_s=doubles.wall(), full=full)
    if ledger.unknown:
        log.note(
            "warning", "holds_without_ending", count=len(ledger.unknown), means="they stay spent at what they held"
        )
    return ledger


async def _owners(ledger: LedgerStore, now_s: float) -> Owners:
    owners = Owners()
    for kept in await ledger.owners(now_s - KEPT_S):
        known = kept.input_tokens is not None and kept.output_tokens is not None
        tokens = (kept.input_tokens or 0) + (kept.output_tokens or 0) if known else None
        owners.give(kept.own.id, Owner(kept.own.team, kept.own.model, kept.own.at_s, tokens))
    return owners


def _key_again(settings: Settings) -> Secret | None:
    """The gateway key as its file has it now; None when there is no file or nothing usable in it."""
    if settings.upstream_key_file is None:
        return None
    try:
        return secret_from_file(settings.upstream_key_file)[0]
    except ValueError:
        return None


@asynccontextmanager
async def at_rest(settings: Settings, policy: Policy, *, writes: bool = False) -> AsyncIterator[Parts]:
    """The parts of a proxy that does not listen, for one question about policy and books; raises CannotOpen.

    writes: a ledger is made where there is none; else the books are empty then, and none is made.
    """
    log = RequestLog(lambda _: None, form=LogFormat.JSON)
    # Policies are tried out on machines without a key, too; nothing is sent with this one.
    settings = replace(settings, upstream_key=settings.upstream_key or Secret("no-gateway-key"), otlp_endpoint=None)
    ledger = None if writes or (settings.data / LEDGER).exists() else MemoryLedger(policy.budgets)
    cache = None if (settings.data / CACHE).exists() else MemoryCache(0)
    async with AsyncExitStack() as stack:
        yield await open_parts(stack, settings, policy, Doubles(log=log, ledger=ledger, cache=cache))
