"""The overview: teams by trouble, and what each spent by day."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from proxy import __version__
from proxy.admin.call import Asked
from proxy.admin.chains import Chain, chains, limit_row
from proxy.admin.gauges import DIGEST_SHOWN
from proxy.admin.page.charts import HUES, Series, bars, meter
from proxy.admin.page.frame import Page, Row, section, state_word, table, team_link
from proxy.admin.page.markup import Html, tag, text
from proxy.admin.page.words import amount, counted, instant, number
from proxy.core.instants import ago
from proxy.core.runway import Trouble
from proxy.core.spending import By, spending
from proxy.server.parts import Parts
from proxy.units import credit_text, instant_text

DAYS: Final = 14


async def read(_: Asked, parts: Parts) -> dict[str, Any]:
    """Every team with the limit that binds it, by trouble; credits by day."""
    parts.books.store.push()
    totals = list(await parts.books.store.totals(ago(f"{DAYS}d", parts.wall())))
    found = chains(parts, totals)
    return {
        "at": instant_text(parts.wall()),
        "sentence": sentence(found, parts),
        "ready": parts.ready,
        "version": __version__,
        "digest": parts.state.policy.digest[:DIGEST_SHOWN],
        "teams": [_team(chain, parts) for chain in found],
        "days": by_day(totals, parts.wall()),
    }


def sentence(found: list[Chain], parts: Parts) -> str:
    """What matters, in one sentence."""
    if parts.state.key_refused:
        return "The gateway refuses the proxy's key: no call gets through until somebody replaces it."
    if not parts.books.available:
        return "The ledger takes no entries, so nothing that spends is admitted."
    if parts.state.problems:
        mistakes = counted(len(parts.state.problems), "mistake")
        return f"The policy files have {mistakes}; the policies read before them are in force."
    out = [chain.team for chain in found if chain.trouble[0] == Trouble.EXHAUSTED]
    soon = [chain.team for chain in found if chain.trouble[0] == Trouble.RUNS_OUT]
    if not out and not soon:
        return f"No budget of {counted(len(found), 'team')} runs out before it reopens."
    of, one, said = f"of {counted(len(found), 'team')}", "a budget", []
    if out:
        said.append(f"{len(out)} {of} {'has' if len(out) == 1 else 'have'} used a budget up")
        of, one = "", "one"
    if soon:
        words = f"{len(soon)} {of} {'runs' if len(soon) == 1 else 'run'} out of {one} before it reopens"
        said.append(" ".join(words.split()))
    return f"{', and '.join(said)}."


def _team(chain: Chain, parts: Parts) -> dict[str, Any]:
    metrics, worst = parts.metrics, min(chain.limits, key=lambda one: one.trouble, default=None)
    shown = chain.binding if worst is None or worst.trouble is Trouble.FINE else worst
    return {
        "team": chain.team,
        "trouble": "fine" if worst is None else worst.trouble.name.lower(),
        "limit": None if shown is None else limit_row(shown, binding=shown is chain.binding),
        "requests": metrics.total("requests_total", team=chain.team),
        "refused": metrics.total("refusals_total", team=chain.team),
        "saved": f"{metrics.total('saved_credits_total', team=chain.team):.8f}",
    }


def by_day(totals: list[Any], now_s: float, by: By = By.TEAM) -> dict[str, Any]:
    """Credits of the last days, by team or model; the smallest series are summed up. Days are those of UTC."""
    rows = spending(totals, (By.DAY, by))
    today = datetime.fromtimestamp(now_s, UTC).date()
    days = [(today - timedelta(days=back)).isoformat() for back in reversed(range(DAYS))]
    most = spending(totals, (by,))
    names = [row.words[0] for row in most if row.credits]
    shown = names if len(names) <= HUES else names[: HUES - 1]
    found: dict[str, dict[str, int]] = {name: {} for name in shown}
    for row in rows:
        name = row.words[1] if row.words[1] in found else "others"
        column = found.setdefault(name, {})
        column[row.words[0]] = column.get(row.words[0], 0) + row.credits
    series = [
        {"name": name or "none", "credits": [credit_text(column.get(day, 0)) for day in days]}
        for name, column in found.items()
        if any(column.values())
    ]
    return {"days": days, "series": series}


def show(said: dict[str, Any], now_s: float) -> Page:
    head = ["team", "state", "limit", "used", "left", "burn per hour", "lasts", "reopens", "refused", "saved"]
    rows = (_row(team, now_s) for team in said["teams"])
    says = "Teams, the worst off first; figures of requests since the start of this process"
    body = text(
        section("Teams", table("teams", says, head, rows, (4, 5, 8, 9))),
        section("Credits per day by team", chart(said["days"], "team")),
    )
    return Page("Overview", said["sentence"], body, "/")


def _row(team: dict[str, Any], now_s: float) -> Row:
    limit = team["limit"]
    counted = [number(team["refused"]), amount(team["saved"])]
    if limit is None:
        return Row([team_link(team["team"]), state_word("fine"), "none", "", "–", "–", "–", "–", *counted])
    trouble = limit["trouble"]
    cells = [
        team_link(team["team"]),
        state_word(trouble),
        limit["name"],
        used(limit),
        amount(limit["left"]),
        amount(limit["per_hour"]),
        instant(limit["lasts_until"], now_s) if trouble in ("runs_out", "warned") else "–",
        instant(limit["resets_at"], now_s),
    ]
    return Row([*cells, *counted], trouble)


def used(limit: dict[str, Any]) -> Html:
    """The bar of a limit."""
    whole = float(limit["credits"])
    share = 1.0 if whole <= 0 else 1 - float(limit["left"]) / whole
    return meter(share, f"{share:.0%} used")


def chart(days: dict[str, Any], what: str) -> Html:
    """Bars by day, and the same as a table for who wants the figures."""
    if not days["series"]:
        return tag("p", "Nothing was spent yet.", class_="nothing")
    series = [Series(one["name"], [float(value) for value in one["credits"]]) for one in days["series"]]
    most = max(range(len(days["days"])), key=lambda at: sum(one.values[at] for one in series))
    says = f"Credits per day by {what}; most on {days['days'][most]}: {sum(one.values[most] for one in series):,.4g}."
    rows = [Row([day, *(amount(one["credits"][at]) for one in days["series"])]) for at, day in enumerate(days["days"])]
    head = ["day", *(one["name"] for one in days["series"])]
    figures = tag("details", tag("summary", "As figures"), table("days", says, head, rows, range(1, len(head))))
    return text(tag("figure", bars(series, days["days"], says), id="days-chart"), figures)
