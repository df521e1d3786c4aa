"""RESULTS.md: medians over the rounds, each table under the command that measures it again."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.candidates import CANDIDATES
from bench.goals import GOALS, Round
from bench.machine import described
from bench.measures import CELLS

__all__ = ["Round", "Taken", "write"]

TITLES: Final = {
    "json-1": "JSON, one caller",
    "json-32": "JSON, 32 callers",
    "kept-32": "JSON, 32 callers, each answer put into the cache",
    "json-128": "JSON, 128 callers",
    "hit-1": "Hits of the cache, one caller, the same bytes each time",
    "hit-32": "Hits of the cache, 32 callers, the same bytes each time",
    "hit-respelt-32": "Hits of the cache, 32 callers, the same JSON spaced differently each time",
    "teams-1": "JSON, one caller, each call from another of 1,000 teams, on old books",
    "stream-1": "Streams, one at a time, three events 5 ms apart",
    "paced-200": "Streams, 200 at a time, an event each every 50 ms",
    "unpaced-50": "Streams, 50 at a time, 400 events as fast as they go",
    "neighbour": "A caller beside 800 stuck connections (silent, half a head, a body byte by byte, a stream not read)",
    "stall": "Longest wait of a health check of the same process",
    "crowd": "Longest wait of a health check during a scrape and a reload, after calls of 200 teams for 50 models",
    "tools": "Lists of tools from the cache, 8 callers: one suite of forty tools, and ten of them as one server",
    "idle-1000": "Memory of 1,000 open silent streams",
    "start": "Start to first answer, and resident memory at rest",
}


@dataclass(slots=True)
class Taken:
    """All that one run found.

    missing: candidates left out, and why.      starts: of those that start once a run.
    beside:  commands that are run once, and what they printed.
    """

    rounds: list[Round]
    missing: dict[str, str]
    quick: bool
    seconds: float
    load_before: float
    load_after: float = 0.0
    install: dict[str, float] = field(default_factory=dict)
    starts: dict[str, dict[str, float]] = field(default_factory=dict)
    beside: list[tuple[str, str]] = field(default_factory=list)


def write(taken: Taken, path: Path) -> None:
    """Write the report."""
    path.write_text("\n".join(_report(taken)) + "\n")
    print(f"written: {path.name}, {len(taken.rounds)} round(s)")


def _report(taken: Taken) -> Iterable[str]:
    yield "# What the proxy costs, beside others\n"
    yield from _circumstances(taken)
    yield from _goals(taken)
    yield "## Figures\n"
    yield (
        "Medians over the rounds, the lowest and highest round in brackets where they matter. `cpu us` is the "
        "candidate's CPU time by the operating system's count for one answer, and the steadiest figure here.\n"
    )
    for cell in (*CELLS, "start"):
        yield from _table(cell, taken)
    yield from _install(taken)
    yield from _beside(taken)


def _beside(taken: Taken) -> Iterable[str]:
    if not taken.beside:
        return
    yield "\n### Measured once a run\n"
    for command, said in taken.beside:
        yield f"`{command}`\n"
        yield f"```\n{said}\n```\n"


def _circumstances(taken: Taken) -> Iterable[str]:
    yield (
        f"Made by `make bench{' QUICK=1' if taken.quick else f' ROUNDS={len(taken.rounds)}'}`: {len(taken.rounds)} "
        f"interleaved round(s), {taken.seconds:g} s a cell once it is warm. The candidate runs alone on one core; "
        "callers and gateway share another, and both are programs of ours that are quicker than any candidate but "
        "nginx, whose requests per second are therefore theirs: compare CPU time. Every candidate is started afresh in "
        "each round, except those that take long; they start once and stand still while others are measured. Ratios of "
        "one run are good to about 30 %, figures of two machines are not comparable.\n"
    )
    yield from (f"- {line}" for line in described())
    busy = max(taken.load_before, taken.load_after) > 1.5
    yield (
        f"- load average before {taken.load_before:.1f}, after {taken.load_after:.1f}"
        + (": **the machine was busy with other work**, so waits and requests per second are worse than they are"
           if busy else "")
    )  # fmt: skip
    yield ""
    yield from (f"- {candidate.name}: {candidate.what}" for candidate in CANDIDATES)
    yield from (f"- **left out: {name}** ({why})" for name, why in taken.missing.items())
    yield ""


INSTALLED: Final = (
    "The libraries; a third of it is bytecode that the installer makes of them and of us, which is told apart below."
)


def _goals(taken: Taken) -> Iterable[str]:
    yield "## Against floors and goals\n"
    yield "| what | measured | floor | goal | |\n|---|---|---|---|---|"
    told: list[str] = []
    for goal in GOALS:
        values = [value for one in taken.rounds if (value := goal.value(one)) is not None]
        if values:
            middle = statistics.median(values)
            shown = f"{_number(middle)} {goal.unit}{_spread(values)}"
            yield f"| {goal.what} | {shown} | {goal.floor:g} | {goal.goal:g} | {goal.reached(middle)} |"
        else:
            yield f"| {goal.what} | not measured | {goal.floor:g} | {goal.goal:g} | |"
        told.append(f"- **{goal.what}**: {goal.limits}")
    if taken.install:
        size = taken.install["MB"]
        word = "goal reached" if size <= 30 else "within the floor" if size <= 60 else "BELOW"
        yield f"| installed size without extras | {size:.1f} MB | 60 | 30 | {word} |"
        told.append(f"- **installed size without extras**: {INSTALLED}")
    yield "\n### What limits each\n"
    yield from told
    yield ""


def _table(cell: str, taken: Taken) -> Iterable[str]:
    rows: dict[str, dict[str, list[float]]] = {}
    for one in taken.rounds:
        for name, cells in one.items():
            for key, value in cells.get(cell, {}).items():
                rows.setdefault(name, {}).setdefault(key, []).append(value)
    if cell == "start":
        rows |= {name: {key: [value] for key, value in found.items()} for name, found in taken.starts.items()}
    if not rows:
        return
    keys = list(dict.fromkeys(key for found in rows.values() for key in found))
    yield f"### {TITLES[cell]}\n"
    yield f"`make bench ONLY={cell}`\n" if cell != "start" else "`make bench`\n"
    yield f"| | {' | '.join(keys)} |\n|{'---|' * (len(keys) + 1)}"
    for name, found in rows.items():
        yield f"| {name} | {' | '.join(_cell(key, found.get(key, [])) for key in keys)} |"
    yield ""


def _cell(key: str, values: list[float]) -> str:
    if not values:
        return ""
    steady = key in ("req/s", "cpu us", "cpu us per event", "ratio") or key.endswith("longest ms")
    return _number(statistics.median(values)) + (_spread(values) if steady else "")


def _spread(values: list[float]) -> str:
    return f" ({_number(min(values))} to {_number(max(values))})" if len(values) > 1 else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _install(taken: Taken) -> Iterable[str]:
    if not taken.install:
        return
    yield "### Installed size\n"
    yield "`pip install .` into a fresh environment, without extras (`make bench`)\n"
    yield from (f"- {value:.1f} {name}" for name, value in taken.install.items())
