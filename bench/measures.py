"""What is measured of a running candidate: a table of cells, each a coroutine that returns figures by name."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bench.books import key
from bench.candidates import TEAMS
from bench.load import Ask, Run, Seen, Target, callers, numbered, percentile, question, respelt, run
from bench.process import Process
from bench.stuck import Stuck

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Subject:
    """A running candidate, or the gateway itself.

    process: None when it is the gateway that is measured.
    admin:   port of our own admin listener.
    """

    target: Target
    process: Process | None
    gateway: Process
    admin: int
    seconds: float

    def cpu_s(self) -> float:
        return self.process.cpu_s() if self.process is not None else 0.0

    async def quiet(self) -> None:
        """Wait, ten seconds at most, until neither candidate nor gateway has anything more to do."""
        for _ in range(100):
            used_s = self.cpu_s() + self.gateway.cpu_s()
            await asyncio.sleep(0.1)
            if self.cpu_s() + self.gateway.cpu_s() - used_s < 0.01:
                return

    async def load(self, asks: Ask, count: int) -> Run:
        """So many callers for the usual time, once it has done with those before."""
        await self.quiet()
        return await run(self.target, asks, count=count, warm_s=0.5, seconds=self.seconds, cpu=self.cpu_s)


def _latency(name: str, values: list[float]) -> Figures:
    found = {f"{name} p50 ms": percentile(values, 0.5), f"{name} p99 ms": percentile(values, 0.99)}
    return {key: value for key, value in found.items() if value is not None}


def _json(count: int, asks: Callable[[Target], Ask]) -> Callable[[Subject], Coroutine[Any, Any, Figures]]:
    async def cell(subject: Subject) -> Figures:
        got = await subject.load(asks(subject.target), count)
        return {
            "req/s": got.seen.answers / got.seconds,
            **_latency("latency", got.seen.latency_ms),
            "cpu us": 1e6 * got.cpu_s / max(1, got.seen.answers),
            "busy %": 100 * got.cpu_s / got.seconds,
            "bad": got.seen.bad,
        }

    return cell


def _plain(target: Target) -> Ask:
    return target.post(question())


def _exact(target: Target) -> Ask:
    """What a cache may answer."""
    return target.post(question(exact=True))


def _new(target: Target) -> Ask:
    """What a cache may keep, and does not have."""
    return numbered(target, question(exact=True))


def _respelt(target: Target) -> Ask:
    """The same, never in the same bytes."""
    return respelt(target, question(exact=True))


def _teams(target: Target) -> Ask:
    """Each request from another team."""
    by_team = itertools.cycle([replace(target, key=key(team)).post(question()) for team in range(TEAMS)])
    return lambda: next(by_team)


def _streams(count: int, shape: str) -> Callable[[Subject], Coroutine[Any, Any, Figures]]:
    async def cell(subject: Subject) -> Figures:
        got = await subject.load(subject.target.post(question(stream=shape)), count)
        return {
            "events/s": got.seen.events / got.seconds,
            **_latency("first byte", got.seen.first_byte_ms),
            **_latency("chunk delay", got.seen.delay_ms),
            "cpu us per event": 1e6 * got.cpu_s / max(1, got.seen.events),
            "bad": got.seen.bad,
        }

    return cell


IDLE: Final = 1000


async def _idle(subject: Subject) -> Figures:
    """Memory of streams that are open and silent, and what it costs to keep them."""
    assert subject.process is not None
    before_mib = subject.process.memory_mib()
    seen = Seen()
    body = question(stream="events=2 every_ms=1 hold_s=60 bytes=0")
    asking = await callers(subject.target, subject.target.post(body), seen, IDLE, once=True)
    for _ in range(100):
        if seen.events >= 2 * IDLE:
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(0.3)
    kib = (subject.process.memory_mib() - before_mib) * 1024 / IDLE
    for caller in asking:
        caller.stop()
    await asyncio.sleep(0.5)
    return {"KiB per stream": kib, "events seen": seen.events}


async def _neighbour(subject: Subject) -> Figures:
    """A caller's latency alone, and with four times 200 connections stuck beside it."""
    alone = await subject.load(_plain(subject.target), 1)
    async with Stuck(subject.target, 200):
        beside = await subject.load(_plain(subject.target), 1)
    await subject.quiet()
    before, after = (percentile(got.seen.latency_ms, 0.5) for got in (alone, beside))
    if before is None or after is None:
        return {"bad": 1}
    return {"alone p50 ms": before, "beside p50 ms": after, "ratio": after / before, "bad": beside.seen.bad}


async def _stall(subject: Subject) -> Figures:
    """How long a health check waits at most: with nothing else going on, during a 25 MB body, during a scrape."""
    body = subject.target.post(question(characters=25_000_000))
    await _many_models(subject)
    scrape = f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{subject.admin}\r\n\r\n".encode()
    doing: dict[str, Callable[[], Awaitable[int | None]]] = {
        "quiet": lambda: asyncio.sleep(0.5),
        "first 25 MB": lambda: _asked(subject.target.port, body),
        "next 25 MB": lambda: _asked(subject.target.port, body),
        "scrape": lambda: _asked(subject.admin, scrape),
    }
    return await _stalls(subject, **doing)


MODELS: Final = 200


async def _many_models(subject: Subject) -> None:
    """So many models have been called once, so that a scrape has something to tell."""
    for number in range(MODELS):
        await _asked(subject.target.port, subject.target.post(question(model=f"bench-{number}")))


async def _crowd(subject: Subject) -> Figures:
    """As `_stall`, during a scrape and a reload, after calls of 200 teams for 50 models each."""
    pairs = itertools.product(range(CROWD_TEAMS), range(CROWD_MODELS))
    made = itertools.cycle(
        [replace(subject.target, key=key(team)).post(question(model=f"bench-{model}")) for team, model in pairs]
    )
    seen = Seen()
    asking = await callers(subject.target, lambda: next(made), seen, 16)
    for _ in range(1200):
        if seen.answers >= CROWD_TEAMS * CROWD_MODELS:
            break
        await asyncio.sleep(0.1)
    for caller in asking:
        caller.stop()
    await subject.quiet()
    to_admin = f"HTTP/1.1\r\nHost: 127.0.0.1:{subject.admin}\r\nContent-Length: 0\r\n\r\n"
    return await _stalls(
        subject,
        quiet=lambda: asyncio.sleep(0.5),
        scrape=lambda: _asked(subject.admin, f"GET /metrics {to_admin}".encode()),
        reload=lambda: _asked(subject.admin, f"POST /api/reload {to_admin}".encode()),
    )


async def _stalls(subject: Subject, **doing: Callable[[], Awaitable[int | None]]) -> Figures:
    """How long a health check waits at most while something else goes on, by name."""
    ping = f"GET /-/health HTTP/1.1\r\nHost: 127.0.0.1:{subject.target.port}\r\n\r\n".encode()
    seen = Seen()
    (pinging,) = await callers(subject.target, ping, seen, 1)
    figures: Figures = {}
    for name, begin in doing.items():
        await asyncio.sleep(0.2)
        seen.clear()
        began_s = time.monotonic()
        figures[f"{name} bytes"] = await begin() or 0
        figures[f"{name} took ms"] = (time.monotonic() - began_s) * 1000
        await asyncio.sleep(0.05)
        figures[f"{name} longest ms"] = max(seen.latency_ms, default=figures[f"{name} took ms"])
    pinging.stop()
    return figures


CROWD_TEAMS: Final = 200
CROWD_MODELS: Final = 50


async def _tools(subject: Subject) -> Figures:
    """Lists of tools from the cache: of one suite of forty tools, and of ten such suites as one server."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    figures: Figures = {}
    for name, path in (("one suite", "/v1/mcp/suite-0"), ("ten suites", "/v1/mcp")):
        got = await subject.load(subject.target.post(body, path), 8)
        figures[f"{name} cpu us"] = 1e6 * got.cpu_s / max(1, got.seen.answers)
        figures |= _latency(name, got.seen.latency_ms)
        figures["bad"] = figures.get("bad", 0) + got.seen.bad
    return figures


async def _asked(port: int, request: bytes) -> int:
    """Ask once on a connection of its own; the length of what came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    answer = await reader.readexactly(int(length.partition(b":")[2]))
    writer.transport.abort()
    if head[9:12] != b"200":
        raise RuntimeError(f"not 200: {(head + answer)[:300]!r}")
    return len(answer)


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table.

    heavy:   also run on candidates that are too slow for the rest.
    who:     names of the candidates; empty: all, and the gateway itself.
    streams: needs a candidate that relays.
    """

    measure: Callable[[Subject], Coroutine[Any, Any, Figures]]
    heavy: bool = False
    who: tuple[str, ...] = ()
    streams: bool = False


OURS: Final = ("sluicegate",)
GROWN: Final = "sluicegate grown"
LIGHT: Final = ("sluicegate", "aiohttp relay", "nginx")

CELLS: Final[Mapping[str, Cell]] = {
    "json-1": Cell(_json(1, _plain), heavy=True),
    "json-32": Cell(_json(32, _plain), heavy=True),
    "kept-32": Cell(_json(32, _new), who=OURS),
    "json-128": Cell(_json(128, _plain)),
    "hit-1": Cell(_json(1, _exact), who=OURS),
    "hit-32": Cell(_json(32, _exact), who=OURS),
    "hit-respelt-32": Cell(_json(32, _respelt), who=OURS),
    "teams-1": Cell(_json(1, _teams), who=(GROWN,)),
    "stream-1": Cell(_streams(1, "events=3 every_ms=5 hold_s=0 bytes=0"), heavy=True, streams=True),
    "paced-200": Cell(_streams(200, "events=60 every_ms=50 hold_s=0 bytes=0"), streams=True),
    "unpaced-50": Cell(_streams(50, "events=400 every_ms=0 hold_s=0 bytes=0"), streams=True),
    "neighbour": Cell(_neighbour, who=("sluicegate", "aiohttp relay")),
    "stall": Cell(_stall, who=OURS),
    "crowd": Cell(_crowd, who=(GROWN,)),
    "tools": Cell(_tools, who=OURS),
    "idle-1000": Cell(_idle, who=LIGHT),
}
