"""Figures that are read where they are kept, whenever metrics are asked for: budgets, cache, policy, ledger."""

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final

from proxy.core.account import Standing
from proxy.core.accounts import Accounts
from proxy.core.gatename import Kind
from proxy.core.limits import Budget, Each
from proxy.core.windows import Calendar
from proxy.observe.metrics import Labels, Metrics
from proxy.server import cache, flows, waits
from proxy.server.flows import SHOWN, labels_of
from proxy.server.parts import Parts
from proxy.units import CREDIT

DIGEST_SHOWN: Final = 12
"""Digits of the policies' digest: enough to tell two of them apart."""


def bring(parts: Parts) -> None:
    """Bring everything up to date that nobody counts as it happens."""
    metrics, policy = parts.metrics, parts.state.policy
    cache.report(parts.cache, metrics)
    gauge(parts.books.accounts, metrics, parts.wall(), policy.teams)
    for name, share in waits.shares(parts.queue.scheduler, parts.queue.now_s()).items():
        metrics.set("upstream_limit_used_ratio", name, to=share)
    for what, count in breakers(parts).items():
        metrics.set("breakers_open", what, to=count)
    metrics.set("store_up", "ledger", to=float(parts.books.available))
    metrics.replace("policy_info", {(policy.digest[:DIGEST_SHOWN] or "none",): 1})


def breakers(parts: Parts) -> dict[str, int]:
    """How much of the gateway is left alone now, by kind; names of members and models are no labels."""
    found = {kind.value: 0 for kind in Kind}
    for name in parts.queue.scheduler.gates.all_shut(parts.queue.now_s()):
        found[name.kind.value] += 1
    return found


def gauge(accounts: Accounts, metrics: Metrics, at_s: float, teams: Iterable[str] = ()) -> None:
    """Set the gauges of all budgets that have one account, or one for each team.

    teams: those of the policy; their accounts are shown before their first call, so that a graph begins at full.
    """
    teams = tuple(teams)
    shown: dict[Labels, Standing] = {
        labels_of(one.budget, one.group): one
        for budget in accounts.budgets
        if budget.each in SHOWN
        for group in (*_groups(budget, teams), None)
        for one in accounts.standing(budget, at_s, group)
    }
    metrics.replace("budget_limit_credits", {labels: one.amount / CREDIT for labels, one in shown.items()})
    metrics.replace("budget_remaining_credits", {labels: one.left / CREDIT for labels, one in shown.items()})
    metrics.replace("budget_reserved_credits", {labels: one.held / CREDIT for labels, one in shown.items()})
    lengths = {labels: length_s(one, at_s) for labels, one in shown.items()}
    metrics.replace("budget_window_seconds", {labels: span_s for labels, span_s in lengths.items() if span_s < inf})
    ends = {labels: one.ends_s for labels, one in shown.items() if one.ends_s is not None}
    metrics.replace("budget_reset_timestamp_seconds", ends)
    for labels in shown:
        # The counter is there with its budget, so that its first charge is an increase.
        metrics.count("budget_spent_credits_total", *labels, by=0)
    flows.count(accounts, metrics)


def _groups(budget: Budget, teams: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if budget.each is Each.TEAM:
        yield from ((team,) for team in teams if budget.match.team in (None, team))


def length_s(one: Standing, at_s: float) -> float:
    """Length of an account's window in seconds; infinite for a total."""
    window = one.budget.window
    if not isinstance(window, Calendar):
        return window.seconds
    begin_s, end_s = window.window(at_s)
    return end_s - begin_s
