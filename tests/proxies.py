"""A proxy on ports of the system's choosing, with its log kept for reading and a client that talks to it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import orjson

from proxy.config.settings import LogFormat, LogLevel
from proxy.config.sources import load
from proxy.core.ledger import Step
from proxy.core.policy import DEFAULT_POLICY, Policy
from proxy.observe.log import RequestLog
from proxy.server.app import Running, running
from proxy.server.opening import Doubles
from proxy.stores.cache.contract import CacheStore
from proxy.stores.cache.memory import MemoryCache
from proxy.stores.ledger.contract import LedgerStore
from proxy.stores.ledger.memory import MemoryLedger

KEY = "sk-emu-alpha-1"
NOW = {"X-Sluicegate-Wait-Max": "0"}
"""The caller does not wait: the gateway's 429 is told instead of being waited out."""
CHAT = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}
NATIVE = {"model": "claude-sonnet-x", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
RESPONSE = {"model": "gpt-4o-mini", "input": [{"role": "user", "content": "hi"}]}

AFTERNOON_S: Final = 1_800_014_700.0
"""Five past twelve on a Friday in the middle of a month, UTC."""
_BEGAN_S: Final = time.monotonic()


def afternoon_s() -> float:
    """A wall clock that runs from there: no day, week or month ends during a test, at whatever minute the tests run."""
    return AFTERNOON_S + time.monotonic() - _BEGAN_S


@dataclass
class Front:
    """A running proxy and a client's view of it. events: the parsed log, one mapping per request or note."""

    running: Running
    client: aiohttp.ClientSession
    events: list[dict[str, Any]] = field(default_factory=list)
    _bell: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return self.running.data_url

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    @property
    def ledger(self) -> MemoryLedger:
        store = self.running.parts.books._store
        assert isinstance(store, MemoryLedger)
        return store

    @property
    def entries(self) -> list[Step]:
        return list(self.ledger.entries)

    def logged(self, line: bytes) -> None:
        self.events.append(orjson.loads(line))
        self._bell.set()

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == "request"]

    async def until(self, holds: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait until `holds()`, looking again whenever the proxy logs something and every turn of a short clock."""
        async with asyncio.timeout(within_s):
            while not holds():
                self._bell.clear()
                try:
                    await asyncio.wait_for(self._bell.wait(), 0.02)
                except TimeoutError:
                    continue

    async def request(self) -> dict[str, Any]:
        """The next request's event that nobody has read, in order."""
        await self.until(lambda: bool(self.requests))
        event = self.requests[0]
        self.events.remove(event)
        return event

    async def post(self, path: str, body: Any, **options: Any) -> "Reply":
        return await self.call("POST", path, json=body, **options)

    async def get(self, path: str, **options: Any) -> "Reply":
        return await self.call("GET", path, **options)

    async def admin(self, method: str, path: str, body: Any = None, headers: Any = None) -> tuple[int, Any]:
        """Status and JSON of the admin listener."""
        url = self.running.admin_url + path
        async with self.client.request(method, url, json=body, headers=headers) as answer:
            return answer.status, await answer.json()

    @property
    def audits(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == "audit"]

    async def call(self, method: str, path: str, **options: Any) -> "Reply":
        async with self.client.request(method, self.url + path, **options) as response:
            return Reply(response.status, response.headers, await response.read())


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        return self.json["error"]


@asynccontextmanager
async def proxied(
    upstream: str,
    policy: Policy = DEFAULT_POLICY,
    key: str | None = KEY,
    *,
    cache: CacheStore | None = None,
    ledger: LedgerStore | None = None,
    wall: Callable[[], float] = afternoon_s,
    **flags: Any,
) -> AsyncIterator[Front]:
    """A proxy in front of `upstream`; flags as on the command line, with underscores. It closes the ledger."""
    given = {"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "auth": "open", "drain": "5s", **flags}
    environ = {} if key is None else {"SLUICEGATE_UPSTREAM_KEY": key}
    settings = load({"upstream": upstream, **given}, environ, None)
    sink: list[Front] = []
    log = RequestLog(lambda line: sink[0].logged(line) if sink else None, form=LogFormat.JSON, level=LogLevel.DEBUG)
    async with (
        running(
            settings,
            policy,
            Doubles(
                log=log,
                ledger=ledger or MemoryLedger(policy.budgets),
                cache=cache or MemoryCache(64 * 1024 * 1024),
                wall=wall,
            ),
        ) as proxy,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client,
    ):
        front = Front(proxy, client)
        sink.append(front)
        yield front
