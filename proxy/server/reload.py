"""Reload: the policy is swapped whole, on a signal, when its files change, or when an operator asks.

A folder with a mistake changes nothing: the policy in force stays, and the mistake is in the log, in a metric and in
the answer to whoever asked.
"""

import asyncio
from typing import Final

from proxy.config.policyfile import digest, load_policies
from proxy.config.problem import Problems
from proxy.observe.seeds import seed
from proxy.server import flows, warnings
from proxy.server.parts import Parts
from proxy.server.quotas import budgets_in_force

EVERY_S: Final = 2.0
"""How often the files are looked at. Watching them would not work on network and cluster mounts."""


async def reload(parts: Parts) -> list[str]:
    """Read the policies again; what is wrong with them, empty when the new ones are in force."""
    try:
        policy = await asyncio.to_thread(load_policies, parts.settings.policies)
    except Problems as error:
        found = [str(problem) for problem in error.problems]
        parts.state.problems = tuple(found)
        parts.metrics.set("policy_last_reload_successful", to=0)
        parts.log.note("error", "policy_refused", problems=found)
        warnings.policy_refused(found, parts)
        return found
    flows.count(parts.books.accounts, parts.metrics)
    await parts.books.rebudget(budgets_in_force(policy, parts.state.quotas))
    parts.state.policy, parts.state.problems = policy, ()
    await parts.queue.take_up(policy)
    seed(parts.metrics, policy)
    parts.metrics.set("policy_last_reload_successful", to=1)
    parts.metrics.set("policy_last_reload_success_timestamp_seconds", to=parts.wall())
    parts.log.note("info", "policy_loaded", teams=sorted(policy.teams), budgets=[one.name for one in policy.budgets])
    return []


async def watch(parts: Parts, *, every_s: float = EVERY_S) -> None:
    """Reload whenever the files change, until cancelled."""
    seen = parts.state.policy.digest or await asyncio.to_thread(digest, parts.settings.policies)
    while True:
        await asyncio.sleep(every_s)
        now = await asyncio.to_thread(digest, parts.settings.policies)
        if now != seen:
            seen = now
            await reload(parts)
