"""The cache in memory: what was used last stays, within a bound of bytes. In front of a file, or alone."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from proxy.stores.cache.contract import Entry, Stats, Which


class MemoryCache:
    """Entries by key, the one used last at the end."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max: Final = bytes_max
        self._entry_max: Final = bytes_max // 2
        self._entries: Final[OrderedDict[bytes, Entry]] = OrderedDict()
        self._bytes = 0
        self._evicted = self._expired = 0

    @property
    def stats(self) -> Stats:
        return Stats(len(self._entries), self._bytes, self._bytes_max, self._evicted, self._expired)

    def at_once(self, key: bytes) -> Entry | None:
        """The entry of a key, which is now the one used last."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def may_have(self, key: bytes) -> bool:
        return key in self._entries

    async def get(self, key: bytes) -> Entry | None:
        return self.at_once(key)

    def put(self, entry: Entry, size: int | None = None) -> None:
        size = entry.size if size is None else size
        key, entries = entry.key, self._entries
        if key in entries:
            self._drop(key)
        # One entry must not push out half of the others.
        if size > self._entry_max:
            return
        entries[key] = entry
        self._bytes += size
        while self._bytes > self._bytes_max:
            self._drop(next(iter(self._entries)))
            self._evicted += 1

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size

    def touch(self, key: bytes, at_s: float) -> None:  # noqa: ARG002  (the order is kept by use, not by time)
        self.at_once(key)

    async def sweep(self, now_s: float) -> int:
        return self._drop_all([key for key, entry in self._entries.items() if entry.until_s <= now_s], expired=True)

    async def purge(self, which: Which) -> int:
        return self.forget(which)

    def forget(self, which: Which) -> int:
        """`purge`, at once."""
        return self._drop_all([key for key, entry in self._entries.items() if _is_one(entry, which)])

    def _drop_all(self, keys: Sequence[bytes], *, expired: bool = False) -> int:
        for key in keys:
            self._drop(key)
        self._expired += len(keys) if expired else 0
        return len(keys)

    async def largest(self, count: int) -> Sequence[Entry]:
        found = sorted(self._entries.values(), key=lambda entry: entry.size, reverse=True)[:count]
        return [entry._replace(body=b"") for entry in found]

    async def written(self) -> None:
        pass

    async def close(self) -> None:
        pass


def _is_one(entry: Entry, which: Which) -> bool:
    return (
        which.scope in (None, entry.scope)
        and which.model in (None, entry.model)
        and which.route in (None, entry.route)
        and (which.older_than_s is None or entry.stored_s < which.older_than_s)
    )
