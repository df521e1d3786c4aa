"""A power cut takes what was written and not synced. Every write of the ledger's file is recorded, and replayed to there.

A process writes holds and settlements and says each one that was acknowledged, while its calls of the system are
recorded. For a cut at each of those moments the file is made as a disk could be left: without all that was not synced,
and with parts of it, torn inside a page too. This is a replay, no real power cut: it trusts the disk to keep what it
said it has.
"""

import asyncio
import random
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from proxy.stores.ledger.sqlite import SqliteLedger
from tests.disks import Disk, left
from tests.stores.test_contract import NOW_S
from tests.syscalls import Event, can_trace, events, tracing

pytestmark = pytest.mark.skipif(not can_trace(), reason="strace is missing, or not allowed here")

CHILD = """
    import asyncio, os, sys
    from pathlib import Path
    from proxy.core.ledger import Hold
    from proxy.stores.ledger.sqlite import SqliteLedger
    from tests.stores.test_contract import NOW_S, RED
    from tests.stores.test_sqlite import settle

    async def main():
        path = Path(sys.argv[1])
        await (await SqliteLedger.open(path, (), now_s=NOW_S)).close()
        home = await SqliteLedger.open(path, (), now_s=NOW_S, full=sys.argv[2] == "full")
        for n in range(int(sys.argv[3])):
            await home.apply([Hold(f"h{n}", RED, 5, NOW_S)])
            os.write(1, f"hold h{n}\\n".encode())
            await home.apply([settle(f"h{n}", 3)])
            os.write(1, f"settle h{n}\\n".encode())
        os._exit(0)  # nothing is tidied up

    asyncio.run(main())
"""


async def recorded(folder: Path, mode: str, count: int) -> Sequence[Event]:
    """What the process did, from its first acknowledgement to its end."""
    log = folder / f"{mode}.log"
    command = tracing(log, sys.executable, "-c", textwrap.dedent(CHILD), str(folder / mode / "ledger.db"), mode)
    process = await asyncio.create_subprocess_exec(*command, str(count), stdout=asyncio.subprocess.PIPE)
    await process.communicate()
    assert process.returncode == 0
    return events(log)


def cuts(events: Sequence[Event], folder: Path) -> Iterator[tuple[Disk, frozenset[str]]]:
    """The disk and what was acknowledged: after each sync and acknowledgement, and after a seventh of all writes."""
    disk, told = Disk(), frozenset[str]()
    for number, event in enumerate(events):
        if event.name == "write" and event.data.startswith((b"hold ", b"settle ")):
            told |= {event.data.decode().strip()}
        elif Path(event.target).parent == folder or Path(event.target) == folder:
            disk.take(event)
        else:
            continue
        if told and (event.name != "pwrite64" or number % 7 == 0):
            yield disk, told


def commits(events: Sequence[Event]) -> int:
    """Frames of the log of writes that end a transaction: their head says how large the file is then."""
    heads = [event for event in events if event.target.endswith("-wal") and len(event.data) == 24]
    return sum(int.from_bytes(event.data[4:8]) > 0 for event in heads)


def syncs(events: Sequence[Event]) -> int:
    return sum(event.name == "fdatasync" and event.target.endswith("-wal") for event in events)


async def test_after_a_power_cut_at_any_moment_all_that_was_acknowledged_is_there(tmp_path):
    """Enough is written for a checkpoint among it, which moves what the log of writes holds into the file."""
    done, rng, looked = await recorded(tmp_path, "full", 100), random.Random(4), 0
    assert any(event.target.endswith("ledger.db") and event.at > 0 for event in done), "there was a checkpoint"
    for disk, told in cuts(done, tmp_path / "full"):
        files = disk.torn(rng) if looked % 2 else disk.worst()
        assert told <= left(files, tmp_path / "cut")
        looked += 1
    assert looked > 400
    # What is left is a file like any other.
    home = await SqliteLedger.open(tmp_path / "cut" / "ledger.db", now_s=NOW_S)
    assert await home.verify() == []
    await home.close()


async def test_each_commit_is_synced_before_it_is_acknowledged(tmp_path):
    done = await recorded(tmp_path, "full", 20)
    assert commits(done) >= 40
    assert syncs(done) >= commits(done)


async def test_with_durability_normal_a_power_cut_loses_what_was_acknowledged(tmp_path):
    """That is what the word means, and that this replay shows it means that it would show it for `full`."""
    done = await recorded(tmp_path, "normal", 20)
    assert syncs(done) < commits(done)
    lost = [told - left(disk.worst(), tmp_path / "cut") for disk, told in cuts(done, tmp_path / "normal")]
    assert any(lost)
