"""A call taken through the stages up to admission, and judged by the accounts, without sending or booking anything.

These are the stages that real calls pass, so what is told here is what the real call meets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from types import CoroutineType
from typing import Final, cast

from proxy.config.settings import Credential
from proxy.core.account import Refusal, Standing
from proxy.core.policy import Team
from proxy.errors import ProxyError
from proxy.mcp import merged, mirroring
from proxy.server import pipeline
from proxy.server.budgets import over_budget
from proxy.server.cache import Caching
from proxy.server.call import Call
from proxy.server.ids import new_id
from proxy.server.imagined import Imagined
from proxy.server.parts import Parts
from proxy.server.recall import caching_of, is_fresh

STAND_IN: Final = "the-caller-s-own"
"""Stands for the gateway key of an imagined caller; it is never sent."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is imagined to call. team None: whoever the request's key says."""

    team: Team | None = None
    key_id: str = ""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What came of it.

    answered: status of an answer that needs no gateway.
    error:    what the call would be refused with, None where it would be sent.
    refusal:  the budget in its way; where that only waits for running calls, the call would wait first.
    standing: the accounts the call draws on, as they are without it.
    caching:  whether its answer may be kept and given, and why or why not; None where it did not come so far.
    hit:      the cache would answer it.
    """

    call: Call
    answered: int | None = None
    error: ProxyError | None = None
    refusal: Refusal | None = None
    standing: tuple[Standing, ...] = ()
    caching: Caching | None = None
    hit: bool = False

    @property
    def binding(self) -> Standing | None:
        """The account in the way, else the one of those that act with the least left."""
        if self.refusal is not None:
            named = (self.refusal.budget.name, self.refusal.group)
            return next(one for one in self.standing if (one.budget.name, one.group) == named)
        acting = [one for one in self.standing if one.budget.acts]
        return min(acting, key=lambda one: one.left, default=None)


def _merged(call: Call, parts: Parts) -> pipeline.Waits | None:
    """The server of all suites, without asking them."""
    if call.match is None or call.match.route.name != "merged":
        return None
    return merged.foretold(call, parts)


def _mirrored(call: Call, parts: Parts) -> pipeline.Waits | None:
    return mirroring.refusal(call, parts, None)


_UNASKED: Final[Mapping[pipeline.Stage, pipeline.Stage]] = {pipeline.merged: _merged, pipeline.mirrored: _mirrored}
"""What stands for stages that would ask a suite."""


def _stages() -> Iterator[tuple[str, pipeline.Stage]]:
    """Those before admission, without those that answer from the cache, join other calls or make some of their own."""
    before = takewhile(lambda stage: stage[0] != "admit", pipeline.STAGES)
    for name, stage in before:
        if name != "recall":
            yield name, _UNASKED.get(stage, stage)


async def rehearse(inbound: Imagined, caller: Caller, parts: Parts) -> Rehearsed:
    """Take a request as far as its admission."""
    call = Call(new_id(), inbound, parts.state.policy, parts.wall())
    try:
        for name, stage in _stages():
            call.stage = name
            if name == "identify" and caller.team is not None:
                call.team, call.key_id = caller.team, caller.key_id
                call.account = parts.keys.ring.account_of(caller.team.name, caller.key_id)
                if parts.settings.credential is Credential.CALLER:
                    call.gateway_key = STAND_IN
                continue
            passed = stage(call, parts)
            response = await passed if isinstance(passed, CoroutineType) else cast("pipeline.Passed", passed)
            if response is not None:
                return Rehearsed(call, answered=response.status)
    except ProxyError as error:
        return Rehearsed(call, error=error)
    caching = call.caching = caching_of(call, parts)
    hit = await _hit(call, caching, parts)
    if call.hold is None:
        return Rehearsed(call, caching=caching, hit=hit)
    accounts, facts, at_s = parts.books.accounts, call.facts_for_books, parts.wall()
    # What the cache answers costs nothing and is not admitted.
    refusal = None if hit else accounts.judge(facts, call.hold.credits, at_s)
    return Rehearsed(
        call,
        error=None if refusal is None else over_budget(refusal),
        refusal=refusal,
        standing=tuple(accounts.drawn_on(facts, at_s)),
        caching=caching,
        hit=hit,
    )


async def _hit(call: Call, caching: Caching, parts: Parts) -> bool:
    """Whether the cache has a fresh answer that the caller would take."""
    if not caching.key or caching.steer.no_store or caching.steer.no_cache:
        return False
    entry = await parts.cache.get(caching.key)
    return entry is not None and is_fresh(call, entry, parts)
