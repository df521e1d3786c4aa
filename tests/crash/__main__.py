"""`python -m tests.crash --kills 10000`: kill the proxy so often, in runs of a hundred with books of their own.

The seed of a run is printed when it fails, and `--seed` begins with it.
"""

import argparse
import asyncio
import itertools
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from tests.crash.run import crash, emptied
from tests.journeys.programs import emulating

RUN: Final = 100
"""Kills before books and gateway are begun anew, so that looking at them stays quick."""


async def main(kills: int, seed: int, at_once: int) -> None:
    """Run until there were so many kills; an assertion ends it."""
    seeds, seen, began_s = itertools.count(seed), Counter[str](), time.monotonic()

    async def one_after_another(folder: Path, share: int) -> None:
        with emulating(folder) as gateway:
            while share:
                now, number = min(share, RUN), next(seeds)
                try:
                    seen.update(await crash(gateway, emptied(folder / "run"), now, random.Random(number)))
                except BaseException:
                    print(f"the run with --seed {number} failed; its books are in {folder}", flush=True)
                    raise
                share -= now
                print(f"{told(seen)}, {time.monotonic() - began_s:.0f} s", flush=True)

    shares = [kills // at_once + (number < kills % at_once) for number in range(at_once)]
    folders = [Path(tempfile.mkdtemp(prefix="crash-")) for _ in shares]
    await asyncio.gather(*(one_after_another(*each) for each in zip(folders, shares, strict=True)))
    for folder in folders:
        emptied(folder)


def told(seen: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in seen.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2)
    given = parser.parse_args()
    asyncio.run(main(given.kills, given.seed, given.at_once))
