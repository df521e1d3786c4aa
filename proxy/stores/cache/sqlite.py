"""The cache in a file: raw bytes, bounded by what the file really takes, gone without a trace when it breaks.

Nobody waits for a write. Writes gather for a moment and go out together, old entries leaving first, so the file never
grows beyond its bound. A file that is damaged is thrown away and made anew; a full disk or a fault of it means that for
a while nothing is read or written, which callers see as misses.
"""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import aiosqlite
import orjson

from proxy.stores.cache.contract import OVERHEAD, Entry, Stats, Which
from proxy.stores.cache.keys import KEY_BYTES, Keys
from proxy.units import Credits

VERSION: Final = 1
"""`PRAGMA user_version`; a file of any other version is made anew."""

WAITING_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of entries that may wait for their write; more are dropped."""

GATHER_S: Final = 0.5
"""How long entries gather before they are written, unless there are enough of them: rows that go together change fewer
pages of the file."""

BATCH_MAX: Final = 256
"""Entries of one statement."""

LOG_SHARE: Final = 64
LOG_BYTES_MIN: Final = 512 * 1024
LOG_BYTES_MAX: Final = 4 * 1024 * 1024
"""The log beside the file goes into it when it has one in so many parts of the bound, between these two: what changes
several times meanwhile, as pages of the index do, is written once."""

PAGE_BYTES: Final = 4096

BATCH_SHARE: Final = 32
"""They are no more than one in so many parts of the bound: room is made before it is known what they will take."""

TOUCHES_MAX: Final = 4096
"""Entries whose use is yet to be written; which goes first need not be exact."""

KEYS_AT_ONCE: Final = 1000
"""Keys that are read at once while it is learnt which there are."""

AVERAGE_BYTES: Final = 1024
"""How large entries are taken to be where it is foretold how many there will be."""

REST_S: Final = 30.0
"""How long nothing is tried after a fault of the disk."""

MEASURED_SHARE: Final = 64
"""The file is measured when entries of one in so many parts of its bound were written; between, they are added up."""

FULL_SHARE, ROOM_SHARE = 0.95, 0.9
"""Share of the bound at which old entries leave, and at which they stop leaving."""

_COLUMNS: Final = (
    "key", "scope", "route", "model", "status", "headers", "body", "stored_s", "until_s", "used_s", "credits", "usage",
)  # fmt: skip

_CREATE: Final = f"""
    CREATE TABLE entries (
        key BLOB PRIMARY KEY, scope TEXT NOT NULL, route TEXT NOT NULL, model TEXT NOT NULL, status INTEGER NOT NULL,
        headers TEXT NOT NULL, body BLOB NOT NULL, stored_s REAL NOT NULL, until_s REAL NOT NULL, used_s REAL NOT NULL,
        credits INTEGER NOT NULL, usage TEXT NOT NULL
    ) STRICT;
    CREATE INDEX by_use ON entries (used_s);
    CREATE INDEX by_end ON entries (until_s);
    PRAGMA user_version = {VERSION};
"""

_PUT: Final = f"INSERT OR REPLACE INTO entries ({', '.join(_COLUMNS)}) VALUES "  # noqa: S608
_ROW: Final = f"({', '.join('?' * len(_COLUMNS))})"

_READ: Final = "SELECT key, scope, route, model, status, headers, body, stored_s, until_s, credits, usage FROM entries"

_NEXT_KEYS: Final = "SELECT key FROM entries WHERE key > ? ORDER BY key LIMIT ?"


_Waiting = tuple[Entry, int, bool]
"""An entry on its way into the file, its size, and whether it may take the place of another."""


@dataclass(slots=True)
class _Figures:
    entries: int = 0
    bytes: int = 0
    evicted: int = 0
    expired: int = 0
    faults: int = 0


class SqliteCache:
    """One file, one connection."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        self._path: Final = path
        self._bytes_max: Final = bytes_max
        self._entry_max: Final = bytes_max // 8
        self._gathered_max: Final = min(bytes_max // BATCH_SHARE, WAITING_BYTES_MAX // 2)
        self._database: aiosqlite.Connection | None = None
        self._waiting: dict[bytes, _Waiting] = {}
        self._waiting_bytes = 0
        self._touched: dict[bytes, float] = {}
        self._writer: asyncio.Task[None] | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._keys: Keys | None = None
        self._learning: Keys | None = None
        self._learner: asyncio.Task[None] | None = None
        self._unmeasured = 0
        self._rests_until_s = 0.0
        self._inode = 0
        self._figures: Final = _Figures()

    @classmethod
    async def open(cls, path: Path, bytes_max: int) -> "SqliteCache":
        """Open or make the file; one that cannot be used is replaced. Never raises for what the disk does."""
        cache = cls(path, bytes_max)
        await cache._reopen()
        return cache

    @property
    def stats(self) -> Stats:
        known = self._figures
        return Stats(known.entries, known.bytes, self._bytes_max, known.evicted, known.expired, known.faults)

    # --- opening, and what is done about faults ---

    async def _reopen(self) -> None:
        try:
            try:
                self._database = await _opened(self._path, self._bytes_max)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._figures.faults += self._path.exists()
                _remove(self._path)
                self._database = await _opened(self._path, self._bytes_max)
            await self._measure()
            ((self._figures.entries,),) = await self._all("SELECT count(*) FROM entries")
            self._inode = self._path.stat().st_ino
            self._learn_soon()
        except (sqlite3.Error, OSError):
            await self._fault()

    async def _fault(self, error: Exception | None = None) -> None:
        """Something did not work: a damaged file is made anew at once, anything else is tried again later."""
        self._figures.faults += 1
        database, self._database = self._database, None
        self._keys = self._learning = None
        if database is not None:
            with contextlib.suppress(sqlite3.Error, ValueError):
                await database.close()
        if _is_damage(error):
            _remove(self._path)
            await self._reopen()
            return
        self._rests_until_s = time.monotonic() + REST_S

    async def _ready(self) -> bool:
        if self._database is None and time.monotonic() >= self._rests_until_s:
            await self._reopen()
        return self._database is not None

    async def _all(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        if self._database is None:
            # While something else was waited for, it was found to be no good.
            raise sqlite3.OperationalError("the file is closed")
        return list(await self._database.execute_fetchall(statement, values))

    async def _measure(self) -> None:
        ((pages, free, size),) = await self._all(
            "SELECT * FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
        )
        self._figures.bytes = (pages - free) * size
        self._unmeasured = 0

    # --- which keys there are ---

    def may_have(self, key: bytes) -> bool:
        return self._keys is None or key in self._keys

    def _learn_soon(self) -> None:
        self._keys, self._learning = None, Keys(self._bytes_max // AVERAGE_BYTES)
        self._learner = asyncio.get_running_loop().create_task(self._learn(self._learning))

    async def _learn(self, keys: Keys) -> None:
        """Find out which keys the file has; until then it is asked about each."""
        for key in self._waiting:
            keys.add(key)
        last = b""
        while self._learning is keys:
            try:
                rows = await self._all(_NEXT_KEYS, (last, KEYS_AT_ONCE))
            except (sqlite3.Error, OSError, ValueError):
                # Whoever reads or writes finds the fault, too, and does something about it.
                self._learning = None if self._learning is keys else self._learning
                return
            if self._learning is keys and not rows:
                self._keys, self._learning = keys, None
            for (last,) in rows:
                # A file that somebody else wrote to may have others, which nobody asks for.
                if len(last) == KEY_BYTES:
                    keys.add(last)

    # --- reading ---

    async def get(self, key: bytes) -> Entry | None:
        if (waiting := self._waiting.get(key)) is not None:
            return waiting[0]
        if not await self._ready():
            return None
        try:
            rows = await self._all(f"{_READ} WHERE key = ?", (key,))
            return _entry(rows[0]) if rows else None
        except (sqlite3.Error, OSError, ValueError) as error:
            await self._fault(error)
            return None

    async def largest(self, count: int) -> Sequence[Entry]:
        if not await self._ready():
            return []
        statement = _READ.replace(" body,", " zeroblob(0),") + " ORDER BY length(body) DESC LIMIT ?"
        try:
            return [_entry(row) for row in await self._all(statement, (count,))]
        except (sqlite3.Error, OSError, ValueError) as error:
            await self._fault(error)
            return []

    # --- writing ---

    def put(self, entry: Entry, size: int | None = None) -> None:
        size = entry.size if size is None else size
        waiting_bytes = self._waiting_bytes + size
        if size > self._entry_max or waiting_bytes > WAITING_BYTES_MAX:
            return
        key, keys, waiting = entry.key, self._keys, self._waiting
        if key in waiting:
            waiting_bytes -= waiting[key][1]
        replaces = keys is None or keys.add(key)
        if self._learning is not None:
            self._learning.add(key)
        waiting[key] = entry, size, replaces
        self._waiting_bytes = waiting_bytes
        if self._gathering is None:
            self._write_soon()
        elif len(waiting) >= BATCH_MAX or waiting_bytes > self._gathered_max:
            self._write_now()

    def touch(self, key: bytes, at_s: float) -> None:
        if len(self._touched) < TOUCHES_MAX:
            self._touched[key] = at_s

    def _write_soon(self) -> None:
        if self._gathering is None and (self._writer is None or self._writer.done()):
            self._gathering = asyncio.get_running_loop().call_later(GATHER_S, self._write_now)

    def _write_now(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_waiting())

    async def _write_waiting(self) -> None:
        """Write all that waits by now, and what became too much meanwhile; what came later gathers."""
        due = len(self._waiting)
        while due > 0 or len(self._waiting) >= BATCH_MAX or self._waiting_bytes > self._bytes_max // BATCH_SHARE:
            due -= await self._write_batch()
        self._writer = None
        if self._waiting:
            self._write_soon()

    async def _write_batch(self) -> int:
        """Write what has waited longest, or drop it; how many they were."""
        batch: list[_Waiting] = []
        size, size_max = 0, self._bytes_max // BATCH_SHARE
        for one in islice(self._waiting.values(), _count_of(len(self._waiting))):
            size += one[1]
            batch.append(one)
            if size > size_max:
                break
        try:
            if await self._ready():
                await self._write(batch, size)
        except (sqlite3.Error, OSError) as error:
            await self._fault(error)
        finally:
            for one in batch:
                entry, size, _ = one
                if self._waiting.get(entry.key) is one:
                    del self._waiting[entry.key]
                    self._waiting_bytes -= size
        return len(batch)

    async def _write(self, batch: Sequence[_Waiting], size: int) -> None:
        await self._write_touches()
        await self._make_room(size)
        there = await self._there([entry.key for entry, _, replaces in batch if replaces])
        values: list[Any] = []
        for entry, _, _ in batch:
            values += _row(entry)
        await self._all(_PUT + ", ".join([_ROW] * len(batch)), values)
        self._figures.entries += len(batch) - there
        self._figures.bytes += size
        self._unmeasured += size
        if self._unmeasured > self._bytes_max // MEASURED_SHARE:
            await self._measure()

    async def _there(self, keys: Sequence[bytes]) -> int:
        """How many of these rows take the place of others."""
        if not keys:
            return 0
        ((count,),) = await self._all(f"SELECT count(*) FROM entries WHERE key IN ({_places(keys)})", keys)  # noqa: S608
        return int(count)

    async def _write_touches(self) -> None:
        touched, self._touched = self._touched, {}
        if touched:
            rows = ", ".join(["(?, ?)"] * len(touched))
            await self._all(
                f"UPDATE entries SET used_s = told.column2 FROM (VALUES {rows}) AS told "  # noqa: S608
                "WHERE entries.key = told.column1",
                [value for row in touched.items() for value in row],
            )

    async def _make_room(self, needed: int) -> None:
        """Let the entries go that nobody used for longest, until so many bytes fit under the bound."""
        while self._figures.bytes + needed > FULL_SHARE * self._bytes_max and self._figures.entries:
            excess = self._figures.bytes + needed - ROOM_SHARE * self._bytes_max
            average = max(self._figures.bytes / self._figures.entries, OVERHEAD)
            count = max(1, min(int(excess / average) + 1, self._figures.entries))
            await self._all(
                "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries ORDER BY used_s LIMIT ?)", (count,)
            )
            self._figures.evicted += count
            self._figures.entries -= count
            await self._measure()

    async def _look_for_file(self) -> None:
        """A file that somebody took away is made anew; what was in it is forgotten."""
        try:
            there = self._path.stat().st_ino == self._inode
        except OSError:
            there = False
        if self._database is not None and not there:
            self._figures.faults += 1
            database, self._database = self._database, None
            self._keys = self._learning = None
            with contextlib.suppress(sqlite3.Error, ValueError):
                await database.close()
            await self._reopen()

    async def sweep(self, now_s: float) -> int:
        await self._look_for_file()
        if self._database is not None and self._learning is None and (self._keys is None or self._keys.is_worn):
            self._learn_soon()
        count = await self._delete("until_s <= ?", (now_s,))
        self._figures.expired += count
        return count

    async def purge(self, which: Which) -> int:
        await self.written()
        asked = (("scope = ?", which.scope), ("model = ?", which.model), ("route = ?", which.route),
                 ("stored_s < ?", which.older_than_s))  # fmt: skip
        given = [(condition, value) for condition, value in asked if value is not None]
        return await self._delete(
            " AND ".join(condition for condition, _ in given) or "true", [value for _, value in given]
        )

    async def _delete(self, condition: str, values: Sequence[Any]) -> int:
        """Delete in steps, so that a large purge does not hold up reads."""
        count = 0
        if not await self._ready():
            return count
        try:
            while True:
                rows = await self._all(
                    f"DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE {condition} LIMIT 1000) "  # noqa: S608
                    "RETURNING 1",
                    values,
                )
                count += len(rows)
                if len(rows) < 1000:
                    break
            self._figures.entries -= count
            await self._measure()
        except (sqlite3.Error, OSError) as error:
            await self._fault(error)
        return count

    async def written(self) -> None:
        while self._waiting:
            self._write_now()
            assert self._writer is not None
            await asyncio.wait([self._writer])

    async def close(self) -> None:
        await self.written()
        self._learning = None
        if self._learner is not None:
            await asyncio.wait([self._learner])
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                await self._write_touches()
            await self._database.close()
            self._database = None


def _count_of(waiting: int) -> int:
    """How many of so many entries go out together: a power of two.

    A statement that is new takes the library three times as long as to write its rows, so there are few of them.
    """
    return min(1 << waiting.bit_length() - 1, BATCH_MAX)


def _places(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _row(entry: Entry) -> tuple[Any, ...]:
    key, scope, route, model, status, headers, body, stored_s, until_s, credits_, usage = entry
    said = orjson.dumps(headers, default=dict).decode(), orjson.dumps(usage, default=dict).decode()
    # Of bytes, SQLite's module looks for an adapter each time, which takes longer than to copy them.
    raw = bytearray(key), bytearray(body)
    return (raw[0], scope, route, model, status, said[0], raw[1], stored_s, until_s, stored_s, credits_, said[1])


def _entry(row: Sequence[Any]) -> Entry:
    key, scope, route, model, status, headers, body, stored_s, until_s, credits_, usage = row
    said = orjson.loads(headers), orjson.loads(usage)
    return Entry(key, scope, route, model, status, said[0], body, stored_s, until_s, Credits(credits_), said[1])


async def _opened(path: Path, bytes_max: int) -> aiosqlite.Connection:
    """The file, checked and of this version. Raises sqlite3 errors and OSError."""
    log_bytes = max(LOG_BYTES_MIN, min(bytes_max // LOG_SHARE, LOG_BYTES_MAX))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    database = await aiosqlite.connect(path, isolation_level=None)
    try:
        for pragma in (
            "busy_timeout = 0",
            "locking_mode = EXCLUSIVE",
            "journal_mode = WAL",
            "synchronous = NORMAL",
            f"wal_autocheckpoint = {log_bytes // PAGE_BYTES}",
            # As long as it becomes with the last batch: else its end would be cut off and written again each time.
            f"journal_size_limit = {2 * log_bytes}",
            "trusted_schema = OFF",
            "cell_size_check = ON",
        ):
            await database.execute_fetchall(f"PRAGMA {pragma}")
        ((version,),) = await database.execute_fetchall("PRAGMA user_version")
        if version == 0:
            await database.executescript(f"BEGIN; {_CREATE} COMMIT;")
        else:
            _check(version)
        await database.execute_fetchall("SELECT key FROM entries LIMIT 1")
    except BaseException:
        await database.close()
        raise
    return database


def _is_damage(error: Exception | None) -> bool:
    """Whether the file itself is no good, or of another version; a lock or a full disk is an OperationalError."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _check(version: int) -> None:
    if version != VERSION:
        raise sqlite3.DatabaseError(f"a file of version {version}")


def _remove(path: Path) -> None:
    for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        with contextlib.suppress(OSError):
            name.unlink()
