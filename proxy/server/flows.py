"""What is charged to budgets, as counters that only rise: how fast a budget burns is their rate."""

from typing import Final

from proxy.core.accounts import Accounts
from proxy.core.limits import Budget, Each
from proxy.observe.metrics import Metrics
from proxy.units import CREDIT

ALL: Final = "_all"
"""The team label of a budget that is one for all teams."""

SHOWN: Final = (None, Each.TEAM)
"""Budgets that are metrics: of keys, models and tools there are too many accounts."""


def labels_of(budget: Budget, group: tuple[str, ...]) -> tuple[str, str]:
    """Team and budget of an account."""
    return (group[0] if group else budget.match.team or ALL, budget.name)


def count(accounts: Accounts, metrics: Metrics) -> None:
    """Count what was charged since the last time; also before accounts are made anew, as they forget it then."""
    budgets = {budget.name: budget for budget in accounts.budgets}
    for (name, group), amount in accounts.flowed().items():
        if (budget := budgets[name]).each in SHOWN:
            metrics.count("budget_spent_credits_total", *labels_of(budget, group), by=amount / CREDIT)
