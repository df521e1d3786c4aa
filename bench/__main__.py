"""One run, side by side: rounds in which every candidate is started afresh and measured in turn, then RESULTS.md.

    make bench                    five rounds of everything
    make bench QUICK=1            one short round, to try
    make bench ONLY=json-1,stall  some cells      make bench WHO=sluicegate,nginx  some candidates

In turn, because a machine that is slow for a minute is then slow for all of them.
"""

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import uvloop

from bench import beside
from bench.beside import COMMANDS
from bench.candidates import CANDIDATES, HOME, ROOT, Candidate, Place
from bench.install import weigh
from bench.load import Target, question
from bench.machine import load_average
from bench.measures import CELLS, Figures, Subject
from bench.process import CANDIDATE_CORE, OTHER_CORE, Process, first_answer_s, free_port
from bench.report import Round, Taken, write

QUICK: Final = os.environ.get("QUICK") == "1"
ROUNDS: Final = 1 if QUICK else int(os.environ.get("ROUNDS", "5"))
SECONDS: Final = 1.0 if QUICK else float(os.environ.get("SECONDS", "1.2"))
ONLY: Final = tuple(filter(None, os.environ.get("ONLY", "").split(",")))
WHO: Final = tuple(filter(None, os.environ.get("WHO", "").split(",")))
RESULTS: Final = HOME / "RESULTS.md" if QUICK or ONLY or WHO else Path(__file__).parent / "RESULTS.md"
"""Only a whole run replaces the figures that are under version control."""
DIRECT: Final = "direct"
"""The name under which the gateway itself is measured."""


class Gateway:
    """The fake gateway all candidates stand before."""

    def __init__(self) -> None:
        self.port: Final = free_port()
        command = [sys.executable, "-m", "bench.gateway", str(self.port)]
        self.process: Final = Process.start(command, core=OTHER_CORE, log=HOME / "gateway.log", env={}, folder=ROOT)


class Started:
    """A candidate that answers, and how long that took it, in seconds."""

    def __init__(self, candidate: Candidate, gateway: Gateway) -> None:
        place = Place(free_port(), gateway.port, free_port())
        self.gateway: Final = gateway
        self.target: Final = Target(place.port, candidate.key, candidate.headers(place))
        self.admin: Final = place.admin
        log = HOME / f"{candidate.command.__module__.rpartition('.')[2]}.log"
        self.process: Final = Process.start(
            candidate.command(place), core=CANDIDATE_CORE, log=log, env=candidate.env, folder=ROOT
        )
        try:
            self.start_s: Final = first_answer_s(
                place.port, self.target.post(question()), self.process, patience_s=candidate.patience_s
            )
        except RuntimeError:
            self.process.end()
            raise

    def subject(self) -> Subject:
        return Subject(self.target, self.process, self.gateway.process, self.admin, SECONDS)


def main() -> None:
    """Set up, measure, write."""
    shutil.rmtree(HOME / "data", ignore_errors=True)
    (HOME / "data").mkdir(parents=True)
    os.sched_setaffinity(0, {OTHER_CORE})
    taken = Taken(rounds=[], missing={}, quick=QUICK, seconds=SECONDS, load_before=load_average())
    present = [candidate for candidate in _asked_for() if _present(candidate, taken)]
    if not (QUICK or ONLY):
        taken.install = weigh()
    gateway = Gateway()
    heavy: dict[str, Started] = {}
    try:
        time.sleep(1)
        for candidate in [one for one in present if one.heavy]:
            _start_heavy(candidate, gateway, heavy, taken)
        for number in range(ROUNDS):
            taken.rounds.append(_round(number, present, gateway, heavy, taken))
            taken.load_after = load_average()
            (HOME / "results.json").write_text(json.dumps(taken.rounds, indent=1))
            # After each round, so that a run that is cut short has told what it found.
            write(taken, RESULTS)
    finally:
        for started in heavy.values():
            started.process.end()
        gateway.process.end()
    if not (QUICK or ONLY or WHO):
        for command in COMMANDS:
            taken.beside.append(beside.run(command))
            write(taken, RESULTS)


def _asked_for() -> Iterable[Candidate]:
    return (candidate for candidate in CANDIDATES if not WHO or candidate.name in WHO)


def _present(candidate: Candidate, taken: Taken) -> bool:
    why = candidate.set_up()
    if why is not None:
        taken.missing[candidate.name] = why
        print(f"LEFT OUT: {candidate.name}: {why}", file=sys.stderr, flush=True)
    return why is None


def _start_heavy(candidate: Candidate, gateway: Gateway, heavy: dict[str, Started], taken: Taken) -> None:
    try:
        heavy[candidate.name] = started = Started(candidate, gateway)
    except RuntimeError as error:
        taken.missing[candidate.name] = str(error)
        print(f"LEFT OUT: {candidate.name}: {error}", file=sys.stderr, flush=True)
        return
    time.sleep(1)
    taken.starts[candidate.name] = {"start s": started.start_s, "rest MiB": started.process.memory_mib()}
    started.process.pause()


def _round(number: int, present: list[Candidate], gateway: Gateway, heavy: dict[str, Started], taken: Taken) -> Round:
    direct = Subject(Target(gateway.port), None, gateway.process, 0, SECONDS)
    figures: Round = {DIRECT: _cells(DIRECT, direct, heavy=False, relays=True)}
    _tell(number, DIRECT, figures[DIRECT])
    for candidate in present:
        if candidate.heavy:
            if (running := heavy.get(candidate.name)) is None:
                continue
            running.process.go_on()
            figures[candidate.name] = _cells(candidate.name, running.subject(), heavy=True, relays=True)
            running.process.pause()
        else:
            try:
                started = Started(candidate, gateway)
            except RuntimeError as error:
                taken.missing[candidate.name] = str(error)
                continue
            time.sleep(0.5)
            rest = {"start s": started.start_s, "rest MiB": started.process.memory_mib()}
            cells = _cells(candidate.name, started.subject(), heavy=False, relays=candidate.relays, only=candidate.only)
            figures[candidate.name] = {"start": rest, **cells}
            started.process.end()
        _tell(number, candidate.name, figures[candidate.name])
    return figures


def _cells(name: str, subject: Subject, *, heavy: bool, relays: bool, only: tuple[str, ...] = ()) -> dict[str, Figures]:
    got: dict[str, Figures] = {}
    for cell_name, cell in CELLS.items():
        asked_for = (not ONLY or cell_name in ONLY) and (not only or cell_name in only)
        wanted = asked_for and (not cell.who or name in cell.who)
        if not wanted or (heavy and not cell.heavy) or (cell.streams and not relays):
            continue
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                got[cell_name] = runner.run(cell.measure(subject))
        except (OSError, RuntimeError, asyncio.IncompleteReadError) as error:
            print(f"{name} {cell_name}: {error!r}", file=sys.stderr, flush=True)
    return got


def _tell(number: int, name: str, cells: dict[str, Figures]) -> None:
    said = "; ".join(
        f"{cell}: " + " ".join(f"{key}={value:.4g}" for key, value in figures.items())
        for cell, figures in cells.items()
    )
    print(f"round {number + 1} {name}: {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
