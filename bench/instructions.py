"""Instructions that a call takes, counted by valgrind: what else the machine does changes nothing about them.

    python -m bench.instructions                     this proxy, the aiohttp relay, and how one is to the other
    python -m bench.instructions --calls 200         fewer calls, which is quicker and less exact
    python -m bench.instructions --kept              calls whose answers are put into the cache

A short and a long run of 16 callers are counted, each with a start of its own, and the difference is what the calls
between them took. Valgrind has to be installed.
"""

import argparse
import asyncio
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.candidates import HOME, RELAY, ROOT, SLUICEGATE, Candidate, Place
from bench.load import Ask, Seen, Target, callers, numbered, question
from bench.process import CANDIDATE_CORE, OTHER_CORE, Process, first_answer_s, free_port

CALLERS: Final = 16
WARM: Final = 200
"""Calls of the short run: what is remembered or adapted to is by then."""

SLOWER: Final = 60
"""How much longer a start may take than it does without being counted."""


async def counted(candidate: Candidate, gateway: int, calls: int, *, kept: bool) -> tuple[int, int]:
    """Instructions from the start to the end of a run of so many calls, and how many were answered."""
    place = Place(free_port(), gateway, free_port())
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        command = [
            *("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"),
            *(f"--log-file={told}", *candidate.command(place)),
        ]
        process = Process.start(
            command, core=CANDIDATE_CORE, log=HOME / "instructions.log", env=candidate.env, folder=ROOT
        )
        try:
            target = Target(place.port, candidate.key, candidate.headers(place))
            request = target.post(question())
            asks: Ask = numbered(target, question(exact=True)) if kept else request
            await asyncio.to_thread(
                first_answer_s, place.port, request, process, patience_s=SLOWER * candidate.patience_s
            )
            seen = Seen()
            asking = await callers(target, asks, seen, CALLERS)
            while seen.answers < calls:  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.01)
            for one in asking:
                one.stop()
            process.popen.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.popen.wait, SLOWER * candidate.patience_s)
        finally:
            process.end()
        found = re.findall(r"I\s+refs:\s+([\d,]+)", told.read_text())
    assert found, "valgrind told no figure"
    return int(found[-1].replace(",", "")), 1 + seen.answers


async def _per_call(candidate: Candidate, gateway: int, calls: int, *, kept: bool) -> int:
    (few, answered), (many, in_all) = [
        await counted(candidate, gateway, count, kept=kept) for count in (WARM, WARM + calls)
    ]
    return (many - few) // (in_all - answered)


async def _measured(calls: int, *, kept: bool) -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    port = free_port()
    gateway = Process.start(
        [sys.executable, "-m", "bench.gateway", str(port)],
        core=OTHER_CORE, log=HOME / "instructions.log", env={}, folder=ROOT,
    )  # fmt: skip
    try:
        ours, relay = [await _per_call(candidate, port, calls, kept=kept) for candidate in (SLUICEGATE, RELAY)]
    finally:
        gateway.end()
    print(f"sluicegate {ours:,} instructions a call, aiohttp relay {relay:,}: {relay / ours:.3f} x")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=500, help="calls that are counted")
    parser.add_argument("--kept", action="store_true", help="each call is new to the cache, and its answer is kept")
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed; apt-get install valgrind")
    given = parser.parse_args()
    asyncio.run(_measured(given.calls, kept=given.kept))


if __name__ == "__main__":
    main()
