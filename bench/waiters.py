"""Waiters: what a long queue costs, in memory, in time for a decision, and in wake-ups.

    python -m bench.waiters                    10,000 waiters in 1, 100 and 2,000 lanes
    python -m bench.waiters --waiters 1000     fewer of them
    python -m bench.waiters --json             the figures for programs

No server and no clock: the scheduler alone, in virtual time, driven as the server drives it. A decision is a call that
starts, a wake-up a look at the queue. `alike`: lanes of as many teams, all held up by one rate of the member.
`apart`: lanes held up by a rate of their own each, beside that of the member.
"""

import argparse
import gc
import json
import time
import tracemalloc
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final

from proxy.core.accounts import Accounts
from proxy.core.facts import Facts
from proxy.core.limits import Counts, Draw, Each, Rate
from proxy.core.purse import Purse
from proxy.core.scheduler import Scheduler
from proxy.core.turns import Turn, Waiter

LANES: Final = (1, 100, 2000)
WINDOW_S: Final = 60.0
WINDOWS: Final = 5
TAKES_S: Final = 1 / 7
SPREAD: Final = 97
"""Calls are counted at their answers, which come at so many different instants."""

FREE: Final = Purse(Accounts(), 0.0)
"""No budget stands in anybody's way."""


@dataclass(frozen=True)
class Cost:
    """What one queue came to.

    waiter_bytes:  memory of one more waiter.
    arrive_us:     microseconds for one that comes: it stands in the queue, and the queue is looked at.
    decision_us:   of all looks, for each start.     idle_us: of a look that starts nobody.
    slowest_ms:    the slowest look.                 wakes: looks for each start.
    """

    kind: str
    waiters: int
    lanes: int
    waiter_bytes: int
    arrive_us: float
    decision_us: float
    idle_us: float
    slowest_ms: float
    wakes: float


def rates(kind: str, lanes: int) -> list[Rate]:
    """Alike: the member's limit as the gateway has it. Apart: each model has one besides, which is narrower."""
    member = Rate("member", Counts.REQUESTS, 120, WINDOW_S, each=Each.MEMBER)
    if kind == "alike":
        return [member]
    return [member, Rate("model", Counts.REQUESTS, max(1, 100 // lanes), WINDOW_S, each=Each.MODEL)]


def waiting(scheduler: Scheduler, kind: str, waiters: int, lanes: int) -> list[Turn]:
    """Put everybody into the queue, which is looked at each time; who starts at once."""
    turns = []
    for number in range(waiters):
        lane = number % lanes
        facts = Facts(f"team {lane}", "k", "chat", f"model {lane}" if kind == "apart" else "m")
        scheduler.join(Waiter(f"w{number}", Draw(facts, "m"), inf), 0.0)
        turns += [turn for _, turn in scheduler.look(0.0, FREE).started]
    return turns


def measured(kind: str, waiters: int, lanes: int) -> Cost:
    """One queue, looked at as the server would, until a few windows are over."""
    gc.collect()
    tracemalloc.start()
    traced = Scheduler(rates(kind, lanes))
    waiting(traced, kind, lanes, lanes)
    before = tracemalloc.get_traced_memory()[0]
    waiting(traced, kind, waiters, lanes)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    scheduler = Scheduler(rates(kind, lanes))
    began_s = time.perf_counter()
    turns = waiting(scheduler, kind, waiters, lanes)
    arrived_s = time.perf_counter() - began_s
    looks: list[float] = []
    idle: list[float] = []
    started, now_s, again_s = 0, 0.0, 0.0
    running: list[tuple[float, int, Turn]] = []
    numbers = count()
    while len(scheduler):
        for turn in turns:
            number = next(numbers)
            heappush(running, (now_s + TAKES_S * (1 + number % SPREAD), number, turn))
        now_s = max(now_s, min(again_s, running[0][0] if running else inf))
        if now_s >= WINDOWS * WINDOW_S:
            break
        while running and running[0][0] <= now_s:
            at_s, _, turn = heappop(running)
            scheduler.rates.counted(turn, at_s)
            scheduler.closed(turn, at_s)
        began_s = time.perf_counter()
        done = scheduler.look(now_s, FREE)
        took_s = time.perf_counter() - began_s
        looks.append(took_s)
        if not done.started:
            idle.append(took_s)
        turns, again_s = [turn for _, turn in done.started], done.again_s
        started += len(turns)
    return Cost(
        kind=kind,
        waiters=waiters,
        lanes=lanes,
        waiter_bytes=round(grown / waiters),
        arrive_us=round(arrived_s / waiters * 1e6, 1),
        decision_us=round(sum(looks) / max(1, started) * 1e6, 1),
        idle_us=round(sum(idle) / max(1, len(idle)) * 1e6, 1),
        slowest_ms=round(max(looks, default=0.0) * 1e3, 2),
        wakes=round(len(looks) / max(1, started), 2),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiters", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    costs = [measured(kind, given.waiters, lanes) for kind in ("alike", "apart") for lanes in LANES]
    if given.json:
        print(json.dumps([asdict(cost) for cost in costs]))
        return
    print("kind     lanes   bytes  arrive us  decision us  idle us  slowest ms  wakes")
    for one in costs:
        print(
            f"{one.kind:8}{one.lanes:6}{one.waiter_bytes:8}{one.arrive_us:11}{one.decision_us:13}{one.idle_us:9}"
            f"{one.slowest_ms:12}{one.wakes:7}"
        )


if __name__ == "__main__":
    main()
