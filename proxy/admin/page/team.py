"""One team: the chain of its limits with the one that binds, what it spent, and what was refused last."""

from typing import Any

from proxy.admin.call import Asked, Refused
from proxy.admin.chains import Chain, chains, limit_row
from proxy.admin.gauges import length_s
from proxy.admin.page.charts import burn
from proxy.admin.page.frame import Page, Row, section, state_word, table
from proxy.admin.page.markup import Html, tag, text
from proxy.admin.page.overview import DAYS, by_day, chart, used
from proxy.admin.page.requests import request_row, requests_table
from proxy.admin.page.words import amount, instant, place
from proxy.core.instants import ago
from proxy.core.limits import drawn
from proxy.core.spending import By, Total, spending
from proxy.core.windows import Calendar
from proxy.server.parts import Parts
from proxy.units import credit_text, instant_text

REFUSED_SHOWN = 20


async def read(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Raises Refused for a team that is not there."""
    name = asked.values["team"]
    if name not in parts.state.policy.teams:
        raise Refused(404, f"there is no team {name!r}; known are {', '.join(parts.state.policy.teams)}")
    parts.books.store.push()
    since_s = min(ago(f"{DAYS}d", parts.wall()), _begin_s(parts))
    totals = list(await parts.books.store.totals(since_s))
    chain = next(one for one in chains(parts, totals) if one.team == name)
    own = [total for total in totals if total.facts.team == name]
    refused = [seen for seen in parts.recent.since(team=name) if seen.story.get("reason")]
    return {
        "at": instant_text(parts.wall()),
        "team": name,
        "source": parts.state.policy.sources.get(f"team {name}", ""),
        "sentence": _sentence(chain),
        "limits": [limit_row(one, binding=one is chain.binding) for one in chain.limits],
        "burn": _burn(chain, totals, parts),
        "days": by_day(own, parts.wall(), By.MODEL),
        "keys": [
            {"key": row.words[0], "credits": credit_text(row.credits)}
            for row in spending(own, (By.KEY,))
            if row.credits
        ],
        "refused": [request_row(seen) for seen in refused[:REFUSED_SHOWN]],
    }


def _begin_s(parts: Parts) -> float:
    """When the oldest calendar window began that is not a total's."""
    now_s = parts.wall()
    begins = [
        budget.window.window(now_s).start_s
        for budget in parts.books.accounts.budgets
        if isinstance(budget.window, Calendar)
    ]
    return min((begin_s for begin_s in begins if begin_s > 0), default=now_s)


def _sentence(chain: Chain) -> str:
    one = chain.binding
    if one is None:
        return f"No limit binds {chain.team}."
    of = one.standing
    return (
        f"The next call of {chain.team} meets {of.budget.name} first: {amount(credit_text(of.left))} of "
        f"{amount(credit_text(of.amount))} credits are left."
    )


def _burn(chain: Chain, totals: list[Total], parts: Parts) -> dict[str, Any] | None:
    """What was spent through the window of the limit that binds; None for windows without beginning or end."""
    if chain.binding is None:
        return None
    one = chain.binding.standing
    budget, now_s = one.budget, parts.wall()
    if one.ends_s is None or length_s(one, now_s) == float("inf"):
        return None
    begins_s = (
        one.ends_s - length_s(one, now_s) if isinstance(budget.window, Calendar) else now_s - length_s(one, now_s)
    )
    ends_s = one.ends_s if isinstance(budget.window, Calendar) else now_s
    points, sum_ = [], 0
    for total in sorted(totals, key=lambda total: total.begun_s):
        counts = budget in drawn(parts.books.accounts.budgets, total.facts) and budget.group(total.facts) == one.group
        if counts and begins_s <= total.begun_s < ends_s:
            sum_ += total.credits
            points.append([total.begun_s, credit_text(sum_)])
    points.append([now_s, credit_text(sum_)])
    return {
        "budget": budget.name,
        "limit": credit_text(one.amount),
        "begins_s": begins_s,
        "ends_s": ends_s,
        "spent": points,
    }


def show(said: dict[str, Any], now_s: float) -> Page:
    head = ["limit", "state", "window", "used", "spent", "held", "left", "of", "lasts", "reopens", "where"]
    limits = (_limit(one, now_s) for one in said["limits"])
    keys = (Row([one["key"] or "–", amount(one["credits"])]) for one in said["keys"])
    body = text(
        section(
            "Limits",
            table("limits", "Every limit on this team's calls, the tightest first", head, limits, (4, 5, 6, 7)),
        ),
        _burn_section(said["burn"]),
        section("Credits per day by model", chart(said["days"], "model")),
        section("Callers", table("keys", "What each key spent", ["key", "credits"], keys, (1,))),
        section("Refused last", requests_table("refused", said["refused"], now_s)),
    )
    return Page(f"Team {said['team']}", said["sentence"], body)


def _limit(one: dict[str, Any], now_s: float) -> Row:
    whose = "/".join(one["group"])
    name = f"{one['name']} ({whose})" if whose else one["name"]
    binds = tag("strong", " binds", class_="binds") if one["binding"] else None
    note = "" if one["acts"] else " (only counts)"
    cells = [
        text(name, binds, note),
        state_word(one["trouble"]),
        one["window"],
        used(one),
        *(amount(one[word]) for word in ("spent", "held", "left", "credits")),
        instant(one["lasts_until"], now_s),
        instant(one["resets_at"], now_s),
        place(one["source"]),
    ]
    return Row(cells, f"{one['trouble']} binding" if one["binding"] else one["trouble"])


def _burn_section(said: dict[str, Any] | None) -> Html | None:
    if said is None:
        return None
    points = [(at_s, float(value)) for at_s, value in said["spent"]]
    says = f"{amount(said['spent'][-1][1])} of {amount(said['limit'])} credits of {said['budget']} are spent."
    drawn_ = burn(points, float(said["limit"]), said["begins_s"], said["ends_s"], says)
    return section(f"Burn of {said['budget']}", tag("figure", drawn_, id="burn-chart"))
