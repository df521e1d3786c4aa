"""What the commands that watch a running proxy share: its figures, or a sentence where none runs."""

from typing import Any

import click

from proxy.cli.desk import Desk


def figures(desk: Desk, page: str, **query: str) -> Any:
    """The figures of a page of the running proxy; ends the command where none runs, or it refuses."""
    found = desk.running("GET", f"/{page}.json", query, None)
    if found is None:
        raise click.ClickException(f"no proxy runs at {desk.settings.admin_listen}; start one with sluicegate serve")
    status, said = found
    if status >= 400:
        raise click.ClickException(str(said.get("error") if isinstance(said, dict) else f"it answers {status}"))
    return said


def team_rows(said: Any) -> list[list[str]]:
    """The overview's teams as cells."""
    from proxy.admin.page.words import amount
    from proxy.cli.spark import bar

    rows = []
    for team in said["teams"]:
        limit = team["limit"]
        counted = [f"{team['requests']:.0f}", f"{team['refused']:.0f}", amount(team["saved"])]
        if limit is None:
            rows.append([team["team"], "fine", "-", "", "-", "-", "-", *counted])
            continue
        whole = float(limit["credits"])
        used = 1.0 if whole <= 0 else 1 - float(limit["left"]) / whole
        lasts = limit["lasts_until"] if limit["trouble"] in ("runs_out", "warned") else None
        state = limit["trouble"].replace("_", " ")
        figures_ = [bar(used), amount(limit["left"]), amount(limit["per_hour"]), lasts or "-"]
        rows.append([team["team"], state, limit["name"], *figures_, *counted])
    return rows


TEAM_HEAD = ("team", "state", "limit", "used", "left", "per hour", "lasts until", "requests", "refused", "saved")
TEAM_FIGURES = (4, 5, 7, 8, 9)


def request_line(one: Any) -> str:
    """One request on one line: when, who, what, how it ended, and why."""
    from proxy.admin.page.words import charged_by
    from proxy.observe.log import printable

    words = [
        one["at"][11:19],
        one.get("team", "-"),
        one.get("route", "-"),
        one.get("model", "-"),
        str(one["status"] or 499),
        one.get("ending", "-"),
        f"{one['dur_s']:.3f}s",
    ]
    if charged := one.get("charged"):
        by = charged_by(one.get("basis"), one.get("place"))
        words.append(f"charged={charged}" + (f" ({by})" if by else ""))
    if cache := one.get("cache"):
        words.append(f"cache={cache}")
    if one["why"]:
        words.append(f"– {one['why']}")
    return str(printable(" ".join(words)))
