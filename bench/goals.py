"""What we aim for, as a table: how a figure follows from one round, its floor, its goal, and what limits it today."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Round = dict[str, dict[str, dict[str, float]]]
"""One round: candidate, cell, figure."""

OURS: Final = "sluicegate"


@dataclass(frozen=True, slots=True)
class Goal:
    """One row of the table.

    value:  from one round; None where something it needs was not measured.
    more:   more is better.
    limits: what keeps it from being better, in sentences.
    """

    what: str
    unit: str
    floor: float
    goal: float
    value: Callable[[Round], float | None]
    limits: str
    more: bool = False

    def reached(self, value: float) -> str:
        """A word for where a value stands."""
        if self.more:
            return "goal reached" if value >= self.goal else "above the floor" if value >= self.floor else "BELOW"
        return "goal reached" if value <= self.goal else "within the floor" if value <= self.floor else "BELOW"


def figure(name: str, cell: str, key: str) -> Callable[[Round], float | None]:
    """A figure as it was measured."""
    return lambda got: got.get(name, {}).get(cell, {}).get(key)


def _ratio(
    over: Callable[[Round], float | None], under: Callable[[Round], float | None]
) -> Callable[[Round], float | None]:
    def value(got: Round) -> float | None:
        above, below = over(got), under(got)
        return above / below if above is not None and below else None

    return value


def _added(
    over: Callable[[Round], float | None], to: Callable[[Round], float | None]
) -> Callable[[Round], float | None]:
    def value(got: Round) -> float | None:
        high, low = over(got), to(got)
        return high - low if high is not None and low is not None else None

    return value


def _least(*of: Callable[[Round], float | None]) -> Callable[[Round], float | None]:
    def value(got: Round) -> float | None:
        known = [found for one in of if (found := one(got))]
        return min(known) if known else None

    return value


def _cpu(name: str) -> Callable[[Round], float | None]:
    return figure(name, "json-32", "cpu us")


def _hit(name: str) -> Callable[[Round], float | None]:
    return figure(name, "hit-32", "cpu us")


_EVENT: Final = "cpu us per event"
_FIRST: Final = "first byte p50 ms"
_DELAY: Final = "chunk delay p50 ms"

GOALS: Final[tuple[Goal, ...]] = (
    Goal(
        "requests per CPU second against the aiohttp relay, 32 callers", "x", 0.5, 1.0, more=True,
        value=_ratio(_cpu("aiohttp relay"), _cpu(OURS)),
        limits="Our own Python, and flat: admission, the answer's way back, log line and metrics, the end of the "
        "exchange, the ledger's rows, judging the body, no function above 3 %. The thread that commits takes "
        "an eighth.",
    ),
    Goal(
        "the same, with each answer put into the cache", "x", 0.5, 1.0, more=True,
        value=_ratio(_cpu("aiohttp relay"), figure(OURS, "kept-32", "cpu us")),
        limits="As above, and a key over the whole request, a place in flight that others may join, what is kept of "
        "the answer in memory, and a row of the cache's file.",
    ),
    Goal(
        "CPU of LiteLLM's better version against ours, 32 callers", "x", 12, 35, more=True,
        value=_ratio(_least(_cpu("LiteLLM 1.74.9"), _cpu("LiteLLM 1.108.7")), _cpu(OURS)),
        limits="Only our own cost. It checks a key but holds no budget here, as that needs its database.",
    ),
    Goal(
        "CPU of Portkey against ours, 32 callers", "x", 3, 8, more=True,
        value=_ratio(_cpu("Portkey 1.15.2"), _cpu(OURS)),
        limits="Only our own cost. It checks nothing here.",
    ),
    Goal(
        "hits per CPU second against the aiohttp relay, 32 callers", "x", 1.3, 3, more=True,
        value=_ratio(_cpu("aiohttp relay"), _hit(OURS)),
        limits="Nothing is parsed; what is left is whose key it is, the log line, metrics, our header and one write.",
    ),
    Goal(
        "hits per CPU second against aiohttp answering fixed bytes, 32 callers", "x", 0.4, 0.75, more=True,
        value=_ratio(_cpu("aiohttp fixed"), _hit(OURS)),
        limits="As above.",
    ),
    Goal(
        "hits per CPU second against nginx serving a file, 32 callers", "x", 0.05, 0.1, more=True,
        value=_ratio(_cpu("nginx static"), _hit(OURS)),
        limits="As above, and a language.",
    ),
    Goal(
        "p50 of a call with 1,000 teams, 10,000 accounts and old books against one team and none", "x", 1.5, 1.1,
        value=_ratio(
            figure("sluicegate grown", "teams-1", "latency p50 ms"), figure(OURS, "json-1", "latency p50 ms")
        ),
        limits="Indexes of the ledger are as deep as it is long, and pages of theirs are not in memory yet.",
    ),
    Goal(
        "added p50 of a call, one caller, over the direct call", "ms", 2, 0.7,
        value=_added(figure(OURS, "json-1", "latency p50 ms"), figure("direct", "json-1", "latency p50 ms")),
        limits="A commit of the ledger before the call is sent, with the ending of the call before it: a change of "
        "threads and a flush to disk. Many callers share commits, one does not.",
    ),
    Goal(
        "added time to first byte of a stream over the aiohttp relay", "ms", 1, 0.3,
        value=_added(figure(OURS, "stream-1", _FIRST), figure("aiohttp relay", "stream-1", _FIRST)),
        limits="All of the work before a request is sent, half of it the commit of the hold, and half of that the "
        "flush of the disk (`bench.commits`, and docs/decisions/0016); the log line comes later.",
    ),
    Goal(
        "added delay of a chunk over the direct call, 200 paced streams, p50", "ms", 1, 0.3,
        value=_added(figure(OURS, "paced-200", _DELAY), figure("direct", "paced-200", _DELAY)),
        limits="4,000 events a second wake the loop one by one; what is added is the queue of those that woke at once.",
    ),
    Goal(
        "CPU per event against nginx, as fast as it goes", "x", 2, 1.2,
        value=_ratio(figure(OURS, "unpaced-50", _EVENT), figure("nginx", "unpaced-50", _EVENT)),
        limits="The meter decodes every event for its usage, about 1 us each in orjson and as much around it; nginx "
        "looks at none. Bytes that arrive together are passed on together.",
    ),
    Goal(
        "CPU per event against nginx, 200 streams paced", "x", 5, 2,
        value=_ratio(figure(OURS, "paced-200", _EVENT), figure("nginx", "paced-200", _EVENT)),
        limits="Every event is a wake-up through four coroutines (library, exchange, source, writer) and two parsers.",
    ),
    Goal(
        "memory of an open silent stream", "KiB", 32, 16,
        value=figure(OURS, "idle-1000", "KiB per stream"),
        limits="Two connections of the library with their parsers, the call with its body, the frames of its stages. "
        "What cells before have freed is used again: measured alone (`make bench ONLY=idle-1000`) it is 30 KiB, the "
        "relay 24.",
    ),
    Goal(
        "resident at rest", "MiB", 80, 48,
        value=figure(OURS, "start", "rest MiB"),
        limits="Imports: the library, pydantic and the command line make most of it.",
    ),
    Goal(
        "start to first answer", "s", 3, 0.7,
        value=figure(OURS, "start", "start s"),
        limits="Imports too, and the interpreter itself.",
    ),
    Goal(
        "longest wait of a neighbour during a 25 MB body", "ms", 100, 20,
        value=figure(OURS, "stall", "next 25 MB longest ms"),
        limits="Judged in a process of its own, which on one core takes turns with the loop; joining the pieces "
        "and handing 25 MB to that process is what is left on the loop.",
    ),
    Goal(
        "longest wait of a neighbour during a scrape, 200 models", "ms", 100, 20,
        value=figure(OURS, "stall", "scrape longest ms"),
        limits="Rendered in a thread, which takes the interpreter lock in turns with the loop, about 20 us a line.",
    ),
    Goal(
        "longest wait of a neighbour during a scrape, 200 teams and 50 models", "ms", 100, 20,
        value=figure("sluicegate grown", "crowd", "scrape longest ms"),
        limits="As above; a metric has 2,000 series at most, whoever calls.",
    ),
    Goal(
        "longest wait of a neighbour during a reload, 1,000 teams and old books", "ms", 100, 20,
        value=figure("sluicegate grown", "crowd", "reload longest ms"),
        limits="Files and totals are read in threads, which take the interpreter lock in turns with the loop; "
        "accounts are filled a hundred rows at a time.",
    ),
    Goal(
        "p50 of a caller with 800 stuck connections beside it against alone", "x", 2, 1.2,
        value=figure(OURS, "neighbour", "ratio"),
        limits="Deadlines are one timer each; nothing polls.",
    ),
)  # fmt: skip
"""Floors and goals of this project; what is measured once a run stands in beside.py."""
