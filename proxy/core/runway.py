"""Runway: how long what is left of a budget lasts if calls go on as they did lately. Pure; amounts are units."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from proxy.core.account import Standing
from proxy.core.limits import Budget, drawn
from proxy.core.spending import Total
from proxy.core.windows import Sliding

LATELY_S: Final = 86_400.0
"""What "lately" is: a day, so that nights and mornings are in it."""

LEAST_S: Final = 3600.0
"""A start of a few minutes says nothing about a day: at least so long is assumed to have been watched."""

Place = tuple[str, tuple[str, ...]]


class Trouble(IntEnum):
    """How an account stands, worst first."""

    EXHAUSTED = 0
    RUNS_OUT = 1
    WARNED = 2
    FINE = 3


@dataclass(frozen=True, slots=True)
class Runway:
    """One account with its prospects. per_hour: units. lasts_s: the instant it runs out, None where it does not."""

    standing: Standing
    per_hour: int
    lasts_s: float | None
    trouble: Trouble


def burned(budgets: tuple[Budget, ...], totals: Iterable[Total]) -> Mapping[Place, int]:
    """What lately went through each account."""
    sums: dict[Place, int] = {}
    for total in totals:
        for budget in drawn(budgets, total.facts):
            place = (budget.name, budget.group(total.facts))
            sums[place] = sums.get(place, 0) + total.credits
    return sums


def runway(standing: Standing, burned_lately: int, watched_s: float, now_s: float) -> Runway:
    """watched_s: over how many seconds that was burned."""
    watched_s = min(max(watched_s, LEAST_S), LATELY_S)
    per_hour = max(0, int(burned_lately * 3600 / watched_s))
    lasts_s = now_s + standing.left * 3600 / per_hour if per_hour else None
    if standing.left <= 0:
        trouble = Trouble.EXHAUSTED
    elif lasts_s is not None and _runs_out(standing, per_hour, lasts_s, now_s):
        trouble = Trouble.RUNS_OUT
    else:
        trouble = Trouble.WARNED if standing.reached else Trouble.FINE
    return Runway(standing, per_hour, lasts_s, trouble)


def _runs_out(standing: Standing, per_hour: int, lasts_s: float, now_s: float) -> bool:
    """Before its window ends; within a day where nothing comes back; of a sliding window, if it fills at this pace."""
    window = standing.budget.window
    if isinstance(window, Sliding):
        return per_hour * window.seconds > standing.amount * 3600
    return lasts_s < (now_s + LATELY_S if standing.ends_s is None else standing.ends_s)
