"""`sluicegate ledger`: the books themselves."""

import csv
import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from proxy.cli.columns import columns
from proxy.cli.desk import Desk, desk_of, path_of, print_json, whoami, with_desk

PAGE = "1000"


@click.group("ledger")
def ledger() -> None:
    """The books: check, export and copy them; say what calls in doubt have cost."""


@ledger.command("verify")
@with_desk
def verify(as_json: bool, **given: Any) -> int:
    """Add everything up again and compare; exit 1 when something does not add up.

    The whole file is read, and calls wait meanwhile: some 500 MB a second.
    """
    said = desk_of(given).get(path_of("ledger", "verify"))
    if as_json:
        print_json(said)
    else:
        print(*said["problems"] or ["The books add up."], sep="\n")
    return 0 if said["ok"] else 1


@ledger.command("export")
@click.option("--csv", "as_csv", is_flag=True, help="CSV instead of one JSON object a line.")
@click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Begin after the entry of this number.")
@with_desk
def export(as_csv: bool, after: int, as_json: bool, **given: Any) -> int:
    """Print every entry, oldest first, one a line; amounts are whole numbers of 1e-8 credit."""
    if as_csv and as_json:
        raise click.UsageError("give --csv or --json, not both")
    writer: Any = None
    for entry in _entries(desk_of(given), after):
        if not as_csv:
            print(json.dumps(entry, ensure_ascii=False))
            continue
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(entry), extrasaction="ignore")
            writer.writeheader()
        writer.writerow(entry)
    return 0


def _entries(desk: Desk, after: int) -> Iterator[dict[str, Any]]:
    following: int | None = after
    while following is not None:
        page = desk.get(path_of("ledger", "entries"), after=str(following), limit=PAGE)
        yield from page["entries"]
        following = page["next"]


@ledger.command("backup")
@with_desk
def backup(as_json: bool, **given: Any) -> int:
    """Copy the ledger, as it is now, into `backups` in the data folder; calls wait meanwhile.

    Copy key-secret with it, if keys were issued. To restore, put the copy in ledger.db's place while no proxy runs.
    """
    said = desk_of(given).post(path_of("ledger", "backup"), {})
    if as_json:
        print_json(said)
    else:
        print(said["path"])
    return 0


@ledger.command("doubts")
@click.option("--all", "whole", is_flag=True, help="List also what ended in doubt at 0 credits.")
@with_desk
def doubts(whole: bool, as_json: bool, **given: Any) -> int:
    """List the calls whose cost only the gateway knows: those a crash cut off, and those charged by a guess.

    A call that the gateway failed (5xx) was booked at 0 credits, and stays so unless somebody says otherwise.
    """
    said = desk_of(given).get(path_of("ledger", "doubts"))
    if as_json:
        print_json(said)
        return 0
    print(doubts_text(said, whole=whole))
    return 0


def doubts_text(said: dict[str, Any], *, whole: bool = False) -> str:
    """Both kinds as one table. whole: with those that nobody has to decide, which else are counted below it."""
    both = [(why, one) for why in ("unknown", "uncertain") for one in said[why]]
    rows = [
        (one["hold"], why, one["at"], one["team"], one["route"], one["model"] or one["tool"] or "-", one["held"],
         one["charged"])
        for why, one in both
        if whole or one["to_decide"]
    ]  # fmt: skip
    head = ("hold", "why", "at", "team", "route", "what", "held", "charged")
    shown = columns(head, rows, right=(6, 7)) if rows else "Nothing is in doubt."
    if not (left_out := len(both) - len(rows)):
        return shown
    calls = "1 call" if left_out == 1 else f"{left_out} calls"
    more = f"Besides, {calls} ended in doubt at 0 credits, as one the gateway failed does: ledger doubts --all"
    return f"{shown}\n{more}"


@ledger.command("resolve")
@click.argument("hold")
@click.option("--credits", "amount", required=True, metavar="N", help="What the call cost in all; 0 for nothing.")
@click.option("--reason", required=True, metavar="TEXT", help="How you know; it stands in the ledger for good.")
@click.option("--force", is_flag=True, help="Book more than the call held.")
@with_desk
def resolve(hold: str, amount: str, reason: str, force: bool, as_json: bool, **given: Any) -> int:
    """Say what a call in doubt has cost; HOLD is its name in `ledger doubts`.

    More than the call held is more than it could cost by its price, so it is booked only with --force.
    """
    asked = {"hold": hold, "credits": amount, "reason": reason, "who": whoami(), **({"force": "yes"} if force else {})}
    said = desk_of(given).post(path_of("ledger", "resolve"), asked)
    if as_json:
        print_json(said)
    else:
        print(f"{said['credits']} credits booked for team {said['team']}; it was charged {said['was']} before.")
    return 0
