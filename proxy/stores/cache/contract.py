"""What every home of the cache promises: answers by key, within a bound, and never a fault that a caller could see.

The cache may be deleted at any time. What cannot be read is a miss, what cannot be written is dropped; `faults` counts
both. An entry comes back as it was put, or not at all, as long as the disk gives back what it took.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from proxy.core.tuples import maker
from proxy.units import Credits

_NOTHING: Mapping[str, int] = MappingProxyType({})


class Entry(NamedTuple):
    """One stored answer.

    key:      32 bytes, `core.cachekey`.
    scope:    the team whose answer it is, "" for one that teams share.
    headers:  lower-case names, of content only.
    body:     the gateway's bytes, streams included.
    stored_s: wall clock.      until_s: when it may be swept; how long it is fresh is the policy's word of the day.
    credits:  units of 1e-8 credit that the call cost when it was made.
    usage:    tokens as the gateway reported them.
    """

    key: bytes
    scope: str
    route: str
    model: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    stored_s: float
    until_s: float
    credits: Credits = Credits(0)
    usage: Mapping[str, int] = _NOTHING

    @property
    def size(self) -> int:
        """Bytes it takes, as far as bounds care."""
        size = OVERHEAD + len(self.body)
        for name, value in self.headers.items():
            size += len(name) + len(value)
        return size

    @property
    def is_stream(self) -> bool:
        """Whether the body is a stream of events."""
        return self.headers.get("content-type", "").lower().startswith("text/event-stream")


_Values = tuple[bytes, str, str, str, int, Mapping[str, str], bytes, float, float, Credits, Mapping[str, int]]
entry_of: Final[Callable[[_Values], Entry]] = maker(Entry)
"""An entry of all its values, in order."""

OVERHEAD = 512
"""Bytes an entry takes besides its body: its columns, its places in three indexes."""


@dataclass(frozen=True, slots=True)
class Which:
    """Some of the entries; None is any. older_than_s: stored before this instant."""

    scope: str | None = None
    model: str | None = None
    route: str | None = None
    older_than_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """What is stored now, and what happened since the start."""

    entries: int
    bytes: int
    limit_bytes: int
    evicted: int = 0
    expired: int = 0
    faults: int = 0


class CacheStore(Protocol):
    """A home of the cache."""

    @property
    def stats(self) -> Stats:
        """Current figures; costs nothing."""
        ...

    def may_have(self, key: bytes) -> bool:
        """False where `get` would certainly find nothing, which is known without waiting."""
        ...

    async def get(self, key: bytes) -> Entry | None:
        """The entry of a key, however old."""
        ...

    def put(self, entry: Entry, size: int | None = None) -> None:
        """Keep an entry in the place of one with the same key; returns at once. size: its own, where it is known."""
        ...

    def touch(self, key: bytes, at_s: float) -> None:
        """An entry was used elsewhere: it is not the next to go."""
        ...

    async def sweep(self, now_s: float) -> int:
        """Let go of what nobody may be given any more; how many there were."""
        ...

    async def purge(self, which: Which) -> int:
        """Delete some entries; how many there were."""
        ...

    async def largest(self, count: int) -> Sequence[Entry]:
        """Entries by size, their bodies left out."""
        ...

    async def written(self) -> None:
        """Wait until what was put is stored or dropped."""
        ...

    async def close(self) -> None:
        """Finish what is being written and let go of the home."""
        ...
