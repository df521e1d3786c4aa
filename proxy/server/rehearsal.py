"""A call taken through the stages up to admission, and judged by the accounts, without sending or booking anything.

These are the stages that real calls pass, so what is told here is what the real call meets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from proxy.config.settings import Credential
from proxy.core.accounts import Refusal, Standing
from proxy.core.policy import Team
from proxy.errors import ProxyError
from proxy.server import pipeline
from proxy.server.budgets import over_budget
from proxy.server.call import Call
from proxy.server.ids import new_id
from proxy.server.imagined import Imagined
from proxy.server.parts import Parts
from proxy.server.recall import key_of

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
    shares:   the call is deterministic, so it would join an identical one in flight.
    """

    call: Call
    answered: int | None = None
    error: ProxyError | None = None
    refusal: Refusal | None = None
    standing: tuple[Standing, ...] = ()
    shares: bool = False

    @property
    def binding(self) -> Standing | None:
        """The account in the way, else the one of those that act with the least left."""
        if self.refusal is not None:
            named = (self.refusal.budget.name, self.refusal.group)
            return next(one for one in self.standing if (one.budget.name, one.group) == named)
        acting = [one for one in self.standing if one.budget.acts]
        return min(acting, key=lambda one: one.left, default=None)


def _stages() -> Iterator[tuple[str, pipeline.Stage]]:
    """Those before the first that has effects."""
    return takewhile(lambda stage: stage[0] != "recall", pipeline.STAGES)


async def rehearse(inbound: Imagined, caller: Caller, parts: Parts) -> Rehearsed:
    """Take a request as far as its admission."""
    call = Call(new_id(), inbound, parts.state.policy, parts.wall())
    try:
        for name, stage in _stages():
            call.stage = name
            if name == "identify" and caller.team is not None:
                call.team, call.key_id = caller.team, caller.key_id
                if parts.settings.credential is Credential.CALLER:
                    call.gateway_key = STAND_IN
                continue
            response = await stage(call, parts)
            if response is not None:
                return Rehearsed(call, answered=response.status)
    except ProxyError as error:
        return Rehearsed(call, error=error)
    shares = key_of(call) is not None
    if call.hold is None:
        return Rehearsed(call, shares=shares)
    accounts, facts, at_s = parts.books.accounts, call.facts_for_books, parts.wall()
    refusal = accounts.judge(facts, call.hold.credits, at_s)
    return Rehearsed(
        call,
        error=None if refusal is None else over_budget(refusal),
        refusal=refusal,
        standing=tuple(accounts.drawn_on(facts, at_s)),
        shares=shares,
    )
