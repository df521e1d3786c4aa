"""The quota of a member group as a budget of the team that names it. Pure.

The service counts what every member of the group uses anywhere; the ledger counts what the team spends here. Both have
to stay under the quota, so it is a ceiling here beside the team's own budgets, and the two counts are shown together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from proxy.core.limits import Budget, Match
from proxy.core.windows import Calendar, Per
from proxy.units import Credits

PREFIX: Final = "group:"
"""Begins the names of budgets that are quotas; no name in a policy file has a colon."""

MONTH: Final = Calendar(Per.MONTH)
"""The service does not say in which zone its months begin: UTC, here alone."""


@dataclass(frozen=True, slots=True)
class Quota:
    """A group as the service told of it last.

    credits: its quota, None for one without.      used: what its members used this month, by the service's count.
    """

    id: int
    name: str
    credits: Credits | None
    used: Credits
    read_s: float


def budgets_of(budgets: Iterable[Budget], quotas: Mapping[str, Quota]) -> tuple[Budget, ...]:
    """The budgets of a policy, and one for each team whose group has a quota."""
    made = (_budget(team, quota) for team, quota in sorted(quotas.items()))
    return (*budgets, *(one for one in made if one is not None))


def _budget(team: str, quota: Quota) -> Budget | None:
    if quota.credits is None:
        return None
    source = f"member group {quota.id} ({quota.name})"
    return Budget(PREFIX + team, quota.credits, MONTH, Match(team=team), source=source)
