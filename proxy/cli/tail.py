"""`sluicegate tail`: requests of the running proxy as they end, with the reason for what was decided."""

import time
from typing import Any, Final

import click

from proxy.cli.desk import desk_of, print_json, with_desk
from proxy.cli.live import figures, request_line

EVERY_S: Final = 0.5


@click.command("tail")
@click.option("-n", "--lines", default=10, show_default=True, metavar="N", help="Begin with the last N, at most 100.")
@click.option("--no-follow", is_flag=True, help="Stop after those.")
@click.option("--team", default="", help="Only this team's.")
@click.option("--route", default="", help="Only this route's, such as chat or native.")
@click.option("--status", default="", help="Only with this status.")
@click.option("--reason", default="", help="Only refused for this reason, such as budget_exhausted.")
@with_desk
def tail(lines: int, no_follow: bool, as_json: bool, **given: Any) -> int:
    """Print requests as they end; with --json one object on a line. Bodies are nowhere. Stop with Ctrl-C."""
    wanted = {name: given.pop(name) for name in ("team", "route", "status", "reason")}
    desk, after = desk_of(given), 0
    least: int | None = lines
    while True:
        found = figures(desk, "requests", after=str(after), **wanted)["requests"]
        for one in reversed(found[:least] if least is not None else found):
            if as_json:
                print_json(one)
            else:
                print(request_line(one), flush=True)
        after, least = max([after, *(one["number"] for one in found)]), None
        if no_follow:
            return 0
        time.sleep(EVERY_S)
