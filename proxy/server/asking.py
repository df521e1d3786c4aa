"""What a call asks of the queue: whom it counts for, how much of what, which gates have to be open, and how long."""

from functools import lru_cache
from math import isfinite
from typing import Final

from proxy.core.facts import Facts
from proxy.core.gatename import UPSTREAM, GateName, Kind
from proxy.core.limits import Draw, draw_of
from proxy.core.rates import OURS
from proxy.core.turns import Waiter
from proxy.errors import ProxyError
from proxy.server.admitted import Admitted
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.server.routes import Draws

_RESERVATION, _ROUTE = Draws.RESERVATION, Kind.ROUTE
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

WAIT_HEADER: Final = "x-sluicegate-wait-max"
OUR_WAIT_S: Final = 30.0
"""Longest wait of the proxy's own questions; they are asked again later anyway."""


def waiter_of(call: Call, parts: Parts) -> Waiter:
    """The call as one who asks for a turn. Raises ProxyError for a header that is no number of seconds."""
    assert call.match is not None
    assert call.team is not None
    route, facts, credits_ = call.match.route, call.facts_for_books, call.hold.credits if call.hold is not None else 0
    member = parts.queue.member_of(call.credential)
    method = call.mcp.method if call.mcp is not None else None
    draw = draw_of((facts, member, method, _RESERVATION in route.draws, credits_ > 0))
    now_s = parts.queue.now_s()
    return Waiter(
        "",  # given with each turn it takes
        draw,
        now_s + _patience_s(call, call.team.wait_max_s),
        call.tokens,
        credits_,
        gates_of(call, member),
        now_s,
    )


WAY: Final = 2
OWN_WAY: Final = 3
"""Where in a call's gates stands that of its route and model, or its suite: of all teams, and of its team alone."""


def gates_of(call: Call, member: str) -> tuple[GateName, ...]:
    """What has to be open for the call: the gateway, its member, and its way, that of all and that of its team."""
    assert call.match is not None
    assert call.team is not None
    if call.mcp is None:
        return _gates(member, _ROUTE, f"{call.match.route.name}/{call.model or ''}", call.team.name)
    gates = _gates(member, Kind.SUITE, call.match.values["suite"], call.team.name)
    return (*gates, GateName(Kind.TOOLS, call.credential)) if call.mcp.method == "tools/call" else gates


@lru_cache(maxsize=1024)
def _gates(member: str, kind: Kind, way: str, team: str) -> tuple[GateName, ...]:
    """Names, which are the same whatever the policy says."""
    return UPSTREAM, GateName(Kind.MEMBER, member), GateName(kind, way), GateName(kind, way, team)


def _patience_s(call: Call, team_s: float) -> float:
    """The team's longest wait, or the shorter one that the caller asks for."""
    said = call.inbound.header(WAIT_HEADER)
    if said is None:
        return team_s
    try:
        asked_s = float(said)
    except ValueError:
        asked_s = -1.0
    if not isfinite(asked_s) or asked_s < 0:
        raise ProxyError("bad_request", "X-Sluicegate-Wait-Max is not a number of seconds, such as 1 or 0.5.")
    return min(asked_s, team_s)


async def our_turn(route: str, parts: Parts) -> Admitted:
    """A turn for a call of the proxy's own, which stands behind everybody's. Raises ProxyError."""
    now_s = parts.queue.now_s()
    member = parts.queue.member_of("")
    gates = UPSTREAM, GateName(Kind.MEMBER, member), GateName(Kind.ROUTE, f"{route}/")
    draw = Draw(Facts(OURS, "", route), member)
    waiter = Waiter(parts.new_id(), draw, now_s + OUR_WAIT_S, gates=gates, asked_s=now_s)
    return Admitted(parts.queue, await parts.queue.take(waiter, None, 0, lambda _: None))
