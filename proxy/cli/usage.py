"""`sluicegate usage`: what was spent, as a table, JSON or CSV."""

import csv
import sys
from datetime import date, timedelta
from typing import Any

import click

from proxy.cli.columns import columns
from proxy.cli.desk import desk_of, path_of, print_json, with_desk
from proxy.cli.spark import spark


@click.command("usage")
@click.option(
    "--by",
    default="team",
    show_default=True,
    metavar="WORDS",
    help="team, key, model, route, suite, tool, day; several with commas.",
)
@click.option("--since", default="30d", show_default=True, metavar="WHEN", help="A span such as 7d, or a day.")
@click.option("--timezone", default="UTC", show_default=True, metavar="ZONE", help="Whose days are meant.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@with_desk  # fmt: skip
def usage(by: str, since: str, timezone: str, as_csv: bool, as_json: bool, **given: Any) -> int:
    """Show what was spent, by the ledger.

    Amounts belong to the quarter of an hour in which their call was admitted; --since begins with a whole one.
    A model, suite or tool is one row however calls spelt it, under the name that most was spent by.
    """
    if as_csv and as_json:
        raise click.UsageError("give --csv or --json, not both")
    said = desk_of(given).get(path_of("usage"), by=by, since=since, timezone=timezone)
    if as_json:
        print_json(said)
        return 0
    head = [*said["by"], "credits", "tool_calls"]
    rows = [[str(row[name]) for name in head] for row in said["rows"]]
    if as_csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(head)
        writer.writerows([_plain(cell) for cell in row] for row in rows)
        return 0
    figures = (len(head) - 2, len(head) - 1)
    names = [name.replace("_", " ") for name in head]
    if "day" not in said["by"] and rows:
        names.append("by day")
        for row, line in zip(rows, _by_day(given, said, since, timezone), strict=True):
            row.append(line)
    print(columns(names, [[cell or "-" for cell in row] for row in rows], right=figures) if rows else "Nothing.")
    print(f"{said['credits']} credits since {said['since']}")
    return 0


def _by_day(given: dict[str, Any], said: Any, since: str, timezone: str) -> list[str]:
    """For each row, its credits of each day as a line of blocks; all lines have the same days."""
    asked = ",".join([*said["by"], "day"])
    found = desk_of(given).get(path_of("usage"), by=asked, since=since, timezone=timezone)["rows"]
    spent = {(*(row[name] for name in said["by"]), row["day"]): float(row["credits"]) for row in found}
    seen = sorted({row["day"] for row in found})
    first, last = date.fromisoformat(seen[0]), date.fromisoformat(seen[-1])
    days = [(first + timedelta(days=at)).isoformat() for at in range((last - first).days + 1)]
    keys = [tuple(row[name] for name in said["by"]) for row in said["rows"]]
    return [spark([spent.get((*key, day), 0.0) for day in days]) for key in keys]


def _plain(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: names of models come from callers."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t") and not cell[1:2].isdigit() else cell
