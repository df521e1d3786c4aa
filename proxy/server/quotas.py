"""Quotas of member groups, read from the tenant's service now and then, as ceilings of the teams that name them.

While the service does not answer, what it said last holds; it is kept over restarts.
"""

import asyncio
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from proxy.core.limits import Budget
from proxy.core.policy import Policy
from proxy.core.quotas import PREFIX, Quota, budgets_of
from proxy.groups.client import group_client
from proxy.groups.faults import GroupsFault
from proxy.groups.records import Overview
from proxy.server import flows
from proxy.server.parts import Parts
from proxy.stores.quotafile import keep_quotas
from proxy.units import CREDIT, Credits, credits_of

FIRST_AGAIN_S: Final = 10.0
"""How soon after a start the service is asked again when it did not answer."""


def budgets_in_force(policy: Policy, quotas: Mapping[str, Quota]) -> tuple[Budget, ...]:
    """The budgets of the files and the quotas of groups that their teams name."""
    named = {team for team, one in policy.teams.items() if one.group is not None}
    return budgets_of(policy.budgets, {team: quota for team, quota in quotas.items() if team in named})


async def look(parts: Parts) -> None:
    """Read the quotas and judge by them from now on; raises GroupsFault, and what was known holds."""
    settings, policy = parts.settings, parts.state.policy
    wanted = {team.name: team.group for team in policy.teams.values() if team.group is not None}
    if not wanted or settings.tenant_url is None or settings.tenant_token is None:
        return
    async with group_client(settings.tenant_url, settings.tenant_token) as client:
        groups = [one async for one in client.overview()]
    found = {team: _quota(group, groups, parts.wall()) for team, group in wanted.items()}
    for team, quota in found.items():
        if quota is None:
            parts.log.note("warning", "group_unknown", team=team, group=wanted[team])
    known = {team: quota for team, quota in found.items() if quota is not None}
    before = {team: quota.credits for team, quota in parts.state.quotas.items()}
    parts.state.quotas = known
    if before != {team: quota.credits for team, quota in known.items()}:
        flows.count(parts.books.accounts, parts.metrics)
        await parts.books.rebudget(budgets_in_force(policy, known))
    await asyncio.to_thread(keep_quotas, settings.data, known)
    gauge(parts)


def _quota(group: int | str, groups: Iterable[Overview], now_s: float) -> Quota | None:
    """The group of an id, or of a name in either language; None where there is none, or the name fits several."""
    fitting = [one for one in groups if group in (one.id, one.en_name, one.ko_name)]
    if len(fitting) != 1:
        return None
    (one,) = fitting
    limit = None if one.group_quota is None else credits_of(one.group_quota)
    return Quota(one.id, one.en_name or one.ko_name, limit, _used(one.used_month), now_s)


def _used(amount: float) -> Credits:
    return credits_of(Decimal(str(max(0, amount))))


def gauge(parts: Parts) -> None:
    """Show quotas and their use, as the service counts it."""
    quotas = parts.state.quotas
    limits: dict[tuple[str, ...], float] = {
        (team,): one.credits / CREDIT for team, one in quotas.items() if one.credits is not None
    }
    parts.metrics.replace("member_group_quota_credits", limits)
    used: dict[tuple[str, ...], float] = {(team,): one.used / CREDIT for team, one in quotas.items()}
    parts.metrics.replace("member_group_used_credits", used)


async def watch(parts: Parts) -> None:
    """Look now and then until cancelled."""
    every_s = parts.settings.quotas_every
    pause_s = 0.0
    while every_s:
        await asyncio.sleep(pause_s)
        try:
            await look(parts)
            pause_s = every_s
        except (GroupsFault, ValueError) as error:
            parts.log.note("warning", "quotas_unknown", why=str(error))
            pause_s = min(every_s, max(FIRST_AGAIN_S, 2 * pause_s))


def quota_of(budget: Budget, parts: Parts) -> Quota | None:
    """The quota that a budget is, None for one of the policy's own."""
    return parts.state.quotas.get(budget.name.removeprefix(PREFIX)) if budget.name.startswith(PREFIX) else None
