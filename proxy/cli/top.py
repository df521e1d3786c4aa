"""`sluicegate top`: the running proxy, again and again: teams, who waits, the last requests."""

import shutil
import sys
import time
from typing import Any, Final

import click

from proxy.cli.columns import columns
from proxy.cli.desk import Desk, desk_of, print_json, with_desk
from proxy.cli.live import TEAM_FIGURES, TEAM_HEAD, figures, request_line, team_rows

HOME_AND_CLEAR: Final = "\x1b[H\x1b[J"


@click.command("top")
@click.option("--every", default=2.0, show_default=True, metavar="S", help="Seconds between two looks.")
@click.option("--once", is_flag=True, help="Look once; so it does where the output is no terminal.")
@with_desk
def top(every: float, once: bool, as_json: bool, **given: Any) -> int:
    """Watch teams, the queue and the last requests of the running proxy. Stop with Ctrl-C."""
    desk = desk_of(given)
    if as_json:
        print_json({page: figures(desk, page) for page in ("overview", "upstream", "requests")})
        return 0
    if once or not sys.stdout.isatty():
        print(_screen(desk, 100_000))
        return 0
    while True:
        shown = _screen(desk, shutil.get_terminal_size().lines - 1)
        print(HOME_AND_CLEAR + shown, end="", flush=True)
        time.sleep(max(0.2, every))


def _screen(desk: Desk, lines: int) -> str:
    overview, upstream, requests = (figures(desk, page) for page in ("overview", "upstream", "requests"))
    queue = upstream["queue"]
    shown = [overview["sentence"], "", columns(TEAM_HEAD, team_rows(overview), right=TEAM_FIGURES), ""]
    shown.append(f"{upstream['open_calls']} calls run, {queue['waiting']} wait")
    shown += [
        f"  {lane['team']} {lane['route']}: {lane['waiting']} held up by {lane['limit'] or lane['held_by'] or 'others'}"
        for lane in queue["lanes"]
    ]
    shown += [f"  {one['what']} {one['name']} is left alone" for one in queue["shut"]]
    text = "\n".join([*shown, ""])
    room = max(0, lines - text.count("\n") - 1)
    width = shutil.get_terminal_size().columns
    return text + "\n".join(request_line(one)[:width] for one in requests["requests"][:room]) + "\n"
