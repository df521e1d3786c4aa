"""What one caller waits for before its call is sent: the commit of a hold, and what the disk takes of it.

python -m bench.commits                                      300 commits of each kind
python -m bench.commits --count 1000                         more
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import uvloop

from proxy.core.charges import Basis, Charge, Ending
from proxy.core.facts import Facts
from proxy.core.ledger import Hold, Settle
from proxy.server.ids import new_id
from proxy.stores.ledger.sqlite import SqliteLedger
from proxy.units import Credits

FACTS: Final = Facts("bench", "bench", "chat", "bench")
RESTS_S: Final = (0.0, 0.015)
"""What goes by between two: nothing, as under load, or as long as one stream of `stream-1` takes."""


async def committed_ms(folder: Path, count: int, rest_s: float, *, full: bool) -> float:
    """The median of a hold's commit, each with the ending of the one before it."""
    ledger = await SqliteLedger.open(folder / f"{full}-{rest_s}.db", now_s=time.time(), full=full)
    took_ms, last = [], None
    for _ in range(count):
        await asyncio.sleep(rest_s)
        now_s, name = time.time(), new_id()
        if last is not None:
            ledger.submit([Settle(last, Charge(Credits(1), Basis.USAGE), Ending.ANSWERED, now_s)], soon=False)
        began_s = time.perf_counter()
        await ledger.apply([Hold(name, FACTS, Credits(1000), now_s)])
        took_ms.append(1000 * (time.perf_counter() - began_s))
        last = name
    await ledger.close()
    return statistics.median(took_ms)


def flushed_ms(folder: Path, count: int, rest_s: float) -> float:
    """The median of one page written over another and flushed, by no database at all."""
    took_ms = []
    with (folder / "page").open("wb+", buffering=0) as file:
        page = b"\1" * 4096
        file.write(page)
        os.fsync(file.fileno())
        for _ in range(count):
            time.sleep(rest_s)
            began_s = time.perf_counter()
            os.pwrite(file.fileno(), page, 0)
            os.fdatasync(file.fileno())
            took_ms.append(1000 * (time.perf_counter() - began_s))
    return statistics.median(took_ms)


async def main() -> None:
    """One line for each pause between two commits."""
    parser = argparse.ArgumentParser(prog="python -m bench.commits", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    count = parser.parse_args().count
    folder = Path(tempfile.mkdtemp(prefix="commits-"))
    for rest_s in RESTS_S:
        full = await committed_ms(folder, count, rest_s, full=True)
        crash = await committed_ms(folder, count, rest_s, full=False)
        print(
            f"{1000 * rest_s:g} ms between two: a hold is committed in {full:.2f} ms (median of {count}), "
            f"{crash:.2f} ms where it need not survive a power cut; this disk alone takes "
            f"{flushed_ms(folder, count, rest_s):.2f} ms for a page and its flush"
        )


if __name__ == "__main__":
    uvloop.run(main())
