"""`sluicegate status`: how the running proxy is, in a few lines."""

from typing import Any

import click

from proxy.cli.columns import columns
from proxy.cli.desk import desk_of, print_json, with_desk
from proxy.cli.live import TEAM_FIGURES, TEAM_HEAD, figures, team_rows


@click.command("status")
@with_desk
def status(as_json: bool, **given: Any) -> int:
    """Show how the running proxy is; exit 1 when it takes no new work."""
    desk = desk_of(given)
    said = figures(desk, "overview")
    if as_json:
        print_json(said)
    else:
        upstream = figures(desk, "upstream")
        print(said["sentence"], upstream["sentence"], "", sep="\n")
        print(columns(TEAM_HEAD, team_rows(said), right=TEAM_FIGURES))
        running, waiting = upstream["open_calls"], upstream["queue"]["waiting"]
        print(f"\nsluicegate {said['version']}, policies {said['digest'] or 'built in'}; ", end="")
        print(f"{running} calls run, {waiting} wait; page at http://{desk.settings.admin_listen}/")
    return 0 if said["ready"] else 1
