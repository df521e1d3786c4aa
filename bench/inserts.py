"""A cache that is always full: how large its file becomes, whether hits go on, and how late the loop is.

python -m bench.inserts                                      1,000,000 entries of about 2 KB into 64 MB
python -m bench.inserts --count 50000 --mb 8                 fewer
"""

import argparse
import asyncio
import hashlib
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import uvloop

from proxy.stores.cache.contract import Entry
from proxy.stores.cache.sqlite import SqliteCache

TOGETHER: Final = 64
"""Entries handed over before the writer is waited for; as many as go out in one statement."""
LOOK_EVERY: Final = 100
"""Batches between two looks at the size of the files."""
TICK_S: Final = 0.005


def entry(number: int, rng: random.Random) -> Entry:
    """An answer of between 1 and 3 KB under a key that looks random."""
    key = hashlib.sha256(number.to_bytes(8, "big")).digest()
    body = rng.randbytes(64) * rng.randint(16, 48)
    return Entry(key, "", "chat", "bench", 200, {"content-type": "application/json"}, body, 0.0, 1e12)


def size_of(folder: Path) -> int:
    """Bytes of the file and of what lies beside it."""
    return sum(file.stat().st_size for file in folder.iterdir())


async def late(ticks: list[float]) -> None:
    """Note how late the loop wakes up, in milliseconds."""
    while True:
        due_s = time.perf_counter() + TICK_S
        await asyncio.sleep(TICK_S)
        ticks.append(1000 * (time.perf_counter() - due_s))


async def main() -> None:
    """Fill the file many times over, and print one line."""
    parser = argparse.ArgumentParser(prog="python -m bench.inserts", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--mb", type=int, default=64)
    given = parser.parse_args()
    folder, limit, rng = Path(tempfile.mkdtemp(prefix="inserts-")), given.mb * 1024 * 1024, random.Random(1)
    cache = await SqliteCache.open(folder / "cache.db", limit)
    ticks: list[float] = []
    watching = asyncio.ensure_future(late(ticks))
    largest, hits, found, took_ms = 0, 0, 0, []
    began_s = time.perf_counter()
    for start in range(0, given.count, TOGETHER):
        for number in range(start, min(start + TOGETHER, given.count)):
            cache.put(entry(number, rng))
        await cache.written()
        if start // TOGETHER % LOOK_EVERY == 0:
            largest = max(largest, size_of(folder))
            # What came lately has to be there still.
            asked = entry(max(0, start - rng.randint(1, 2000)), rng).key
            sent_s = time.perf_counter()
            found += await cache.get(asked) is not None
            took_ms.append(1000 * (time.perf_counter() - sent_s))
            hits += 1
    took_s = time.perf_counter() - began_s
    largest = max(largest, size_of(folder))
    watching.cancel()
    stats = cache.stats
    await cache.close()
    p99_ms = statistics.quantiles(ticks, n=100)[98]
    print(
        f"{given.count:,} entries into {given.mb} MB: {given.count / took_s:,.0f} a second; file and log together "
        f"never above {largest / limit:.3f} of the bound; {found} of {hits} looks at recent entries found them, "
        f"{statistics.median(took_ms):.2f} ms (median); the loop at most {max(ticks):.1f} ms late, {p99_ms:.1f} ms "
        f"(p99); {stats.evicted:,} left for room, {stats.faults} faults"
    )


if __name__ == "__main__":
    uvloop.run(main())
