"""The cache as the server uses it: memory in front of a file, and a short way to what is asked again word for word."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from proxy.core.body import Facts
from proxy.core.deterministic import Decision
from proxy.core.policy import Policy
from proxy.core.steering import FREE, Steer
from proxy.observe.metrics import Metrics
from proxy.stores.cache.contract import CacheStore, Entry, Stats, Which
from proxy.stores.cache.memory import MemoryCache

ROADS_MAX: Final = 20_000
"""Requests whose key is remembered by their bytes, some 10 MB."""

SECRET_BYTES: Final = 32


class Caching(NamedTuple):
    """What was decided about one call, and where its answer stands in the cache: `key` is b"" for a call without."""

    decision: Decision
    key: bytes = b""
    steer: Steer = FREE
    scope: str = ""


class Road(NamedTuple):
    """What judging and deciding a request came to, for the next one with the same bytes under the same policy.

    digest: SHA-256 of its body as it came.
    """

    policy: Policy
    facts: Facts
    caching: Caching
    digest: bytes


class Cache:
    """Answers by key. Nothing here raises, and only `get` of what memory does not have waits for a disk."""

    def __init__(
        self, store: CacheStore, secret: bytes, gateway: str, *, memory_bytes: int, wall: Callable[[], float]
    ) -> None:
        """gateway: whose answers these are; another one's are never given."""
        self._store: Final = store
        self._memory: Final = MemoryCache(memory_bytes)
        self._roads: Final[OrderedDict[Any, Road]] = OrderedDict()
        self._wall: Final = wall
        self.secret: Final = secret
        self.gateway: Final = gateway

    def at_once(self, key: bytes) -> Entry | None:
        """What memory has."""
        entry = self._memory.at_once(key)
        if entry is not None:
            self._store.touch(key, self._wall())
        return entry

    def may_have(self, key: bytes) -> bool:
        """False where `get` would find nothing in the file; most of what is asked for the first time."""
        return self._store.may_have(key)

    async def get(self, key: bytes) -> Entry | None:
        """An entry, however old."""
        if (entry := self.at_once(key)) is not None:
            return entry
        entry = await self._store.get(key)
        if (newer := self.at_once(key)) is not None:
            # It came while the file was read.
            return newer
        if entry is not None:
            self._memory.put(entry)
            self._store.touch(key, self._wall())
        return entry

    def keep(self, entry: Entry) -> None:
        """Give an answer to whoever asks the same from now on."""
        size = entry.size
        self._memory.put(entry, size)
        self._store.put(entry, size)

    def road(self, place: Any, policy: Policy) -> Road | None:
        """What is known of a request with these bytes, under this very policy."""
        road = self._roads.get(place)
        return road if road is not None and road.policy is policy else None

    def remember(self, place: Any, road: Road) -> None:
        """Know a request again by its bytes."""
        self._roads[place] = road
        if len(self._roads) > ROADS_MAX:
            self._roads.popitem(last=False)

    async def sweep(self) -> None:
        """Let go of what nobody may be given any more."""
        await self._memory.sweep(self._wall())
        await self._store.sweep(self._wall())

    async def purge(self, which: Which) -> int:
        """Delete some entries; how many there were."""
        here = self._memory.forget(which)
        return max(here, await self._store.purge(which))

    @property
    def stats(self) -> Stats:
        """Of the file."""
        return self._store.stats

    async def largest(self, count: int) -> list[Entry]:
        """The largest entries, without their bodies."""
        return [entry._replace(body=b"") for entry in await self._store.largest(count)]

    async def written(self) -> None:
        """Wait until what was kept is in the file."""
        await self._store.written()

    async def close(self) -> None:
        await self._store.close()


SWEEP_EVERY_S: Final = 60.0


async def watch(cache: Cache, *, every_s: float = SWEEP_EVERY_S) -> None:
    """Sweep until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        await cache.sweep()


def report(cache: Cache, metrics: Metrics) -> None:
    """Bring the figures of the store into the metrics, before they are read."""
    stats = cache.stats
    metrics.set("cache_entries", to=stats.entries)
    metrics.set("cache_size_bytes", to=stats.bytes)
    metrics.set("cache_limit_bytes", to=stats.limit_bytes)
    metrics.set("cache_evictions_total", "size", to=stats.evicted)
    metrics.set("cache_evictions_total", "expired", to=stats.expired)
    metrics.set("cache_faults_total", to=stats.faults)


def secret_of(folder: Path) -> bytes:
    """The secret that keys are made with; made once, mode 0600. Where it cannot be kept it lasts as long as we run."""
    path = folder / "cache.key"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and len(secret := path.read_bytes()) == SECRET_BYTES:
            return secret
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            secret = os.urandom(SECRET_BYTES)
            file.write(secret)
    except OSError:
        return os.urandom(SECRET_BYTES)
    return secret
