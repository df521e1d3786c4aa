"""The limits each team lives under: every account its calls draw on, how long each lasts, and the one that binds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proxy.admin.budgets import standing_row
from proxy.core.account import Standing
from proxy.core.limits import Budget, Each
from proxy.core.runway import LATELY_S, Runway, burned, runway
from proxy.core.spending import Total
from proxy.core.windows import spoken
from proxy.server.parts import Parts
from proxy.units import credit_text, instant_text


@dataclass(frozen=True, slots=True)
class Chain:
    """One team's limits, tightest first. binding: the one that its next call meets first, None where none acts."""

    team: str
    limits: tuple[Runway, ...]
    binding: Runway | None

    @property
    def trouble(self) -> tuple[int, float]:
        """For sorting: the worst first, and of those the one that ends soonest."""
        worst = min(self.limits, key=lambda one: one.trouble, default=None)
        if worst is None:
            return (len(self.limits) + 9, 0.0)
        return (worst.trouble, worst.lasts_s or float("inf"))


def chains(parts: Parts, totals: list[Total]) -> list[Chain]:
    """Of every team, by trouble. totals: what was spent, at least over the last day."""
    now_s = parts.wall()
    accounts = parts.books.accounts
    lately = [total for total in totals if total.begun_s >= now_s - LATELY_S]
    watched_s = now_s - min((total.begun_s for total in lately), default=now_s)
    sums = burned(accounts.budgets, lately)

    def prospect(one: Standing) -> Runway:
        return runway(one, sums.get((one.budget.name, one.group), 0), watched_s, now_s)

    found = []
    for team in parts.state.policy.teams:
        limits = sorted(map(prospect, _standing(team, parts, now_s)), key=lambda one: one.standing.left)
        acting = [one for one in limits if _binds(one.standing.budget)]
        found.append(Chain(team, tuple(limits), next(iter(acting), None)))
    return sorted(found, key=lambda one: (*one.trouble, one.team))


def _standing(team: str, parts: Parts, now_s: float) -> Iterator[Standing]:
    for budget in parts.books.accounts.budgets:
        if budget.match.team not in (None, team):
            continue
        group = _group(budget, team)
        for one in parts.books.accounts.standing(budget, now_s, group):
            if budget.each is not Each.KEY or one.group[0] == team:
                yield one


def _binds(budget: Budget) -> bool:
    """Whether every call of a team meets it: not one key's, one model's or one tool's alone."""
    match = budget.match
    return budget.acts and match.of_all_calls and match.key is None and budget.each in (None, Each.TEAM)


def _group(budget: Budget, team: str) -> tuple[str, ...] | None:
    return (team,) if budget.each is Each.TEAM else None


def limit_row(one: Runway, *, binding: bool) -> dict[str, Any]:
    """One limit for JSON."""
    return {
        **standing_row(one.standing),
        "window": spoken(one.standing.budget.window),
        "acts": one.standing.budget.acts,
        "per_hour": credit_text(one.per_hour),
        "lasts_until": None if one.lasts_s is None or one.lasts_s > 1e11 else instant_text(one.lasts_s),
        "trouble": one.trouble.name.lower(),
        "binding": binding,
    }
