"""Budgets as gauges, read from the accounts whenever metrics are asked for."""

from math import inf
from typing import Final

from proxy.core.accounts import Accounts, Standing
from proxy.core.limits import Each
from proxy.core.windows import Calendar
from proxy.observe.metrics import Metrics
from proxy.units import CREDIT

ALL: Final = "_all"
"""The team label of a budget that is one for all teams."""


def gauge(accounts: Accounts, metrics: Metrics, at_s: float) -> None:
    """Set the gauges of all budgets that have one account, or one for each team."""
    shown = {
        _labels(one): one
        for budget in accounts.budgets
        if budget.each in (None, Each.TEAM)
        for one in accounts.standing(budget, at_s)
    }
    metrics.replace("budget_limit_credits", {labels: one.amount / CREDIT for labels, one in shown.items()})
    metrics.replace("budget_remaining_credits", {labels: one.left / CREDIT for labels, one in shown.items()})
    metrics.replace("budget_reserved_credits", {labels: one.held / CREDIT for labels, one in shown.items()})
    lengths = {labels: _length_s(one, at_s) for labels, one in shown.items()}
    metrics.replace("budget_window_seconds", {labels: span_s for labels, span_s in lengths.items() if span_s < inf})
    ends = {labels: one.ends_s for labels, one in shown.items() if one.ends_s is not None}
    metrics.replace("budget_reset_timestamp_seconds", ends)


def _labels(one: Standing) -> tuple[str, ...]:
    return (one.group[0] if one.group else one.budget.match.team or ALL, one.budget.name)


def _length_s(one: Standing, at_s: float) -> float:
    window = one.budget.window
    if not isinstance(window, Calendar):
        return window.seconds
    begin_s, end_s = window.window(at_s)
    return end_s - begin_s
