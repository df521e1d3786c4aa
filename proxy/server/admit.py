"""Admit: take turn and hold, then make the exchange that owns both. From here on they end by themselves."""

from collections.abc import Coroutine
from typing import Final

from aiohttp import web

from proxy.core.answers import Family
from proxy.mcp import newer as mcp_newer
from proxy.server import pressure
from proxy.server.admitted import Admitted
from proxy.server.asking import waiter_of
from proxy.server.call import Call
from proxy.server.exchange import Exchange, Follow
from proxy.server.parts import Parts
from proxy.server.recall import keeper
from proxy.server.sources import DirectSource, Shared

FAMILIES: Final = {
    "chat": Family.CHAT,
    "native": Family.MESSAGES,
    "responses": Family.RESPONSES,
    "response": Family.RESPONSES,
    "cancel": Family.RESPONSES,
    "chatbot": Family.CHAT,
    "images": Family.MEDIA,
    "image": Family.MEDIA,
    "videos": Family.MEDIA,
    "video": Family.MEDIA,
    "mcp": Family.MCP,
}
"""Wire format of the answers that carry usage, by route."""


_BEGINS: Final = {"responses": "response", "images": "image", "videos": "video"}
"""Routes whose work may go on at the gateway after their answer, and what kind of operation it is then."""

_TELLS: Final = frozenset({"response", "cancel", "image", "video"})
"""Routes whose answers tell how an operation stands."""


def admit(call: Call, parts: Parts) -> web.StreamResponse | Coroutine[None, None, None] | None:
    """Take turn and hold, and set the source the answer is read from. Raises ProxyError.

    Answers what the gateway refused a moment ago.
    """
    if call.source is not None:
        return None  # joined: the one who fetches has been admitted
    if (answer := pressure.guard(call, parts)) is not None:
        return answer
    return again(call, parts, first=False)


async def again(call: Call, parts: Parts, *, first: bool) -> None:
    """Admit; `first`: before all others in its lane, as a call does that was admitted before and sent back."""
    assert call.out is not None
    assert call.match is not None
    waiter = call.waiter = call.waiter or waiter_of(call, parts)
    hold, promised = call.hold, call.promised
    # Each turn has a row of its own, also the second one of a call that was sent back, whose hold is another one too.
    waiter.id = parts.new_id() if hold is None else hold.id
    riders = () if promised is None or hold is None else (promised.promise(hold.id, parts.wall()),)
    queue = parts.queue
    try:
        # Up to the bound of team and caller.
        turn = await queue.take(waiter, hold, len(call.body), call.inbound.on_gone, first=first, riders=riders)
    finally:
        call.waited_s = queue.now_s() - waiter.asked_s
    exchange = Exchange(parts.exchanges, call.out, FAMILIES.get(call.match.route.name), hold, Admitted(queue, turn))
    exchange.follow = _follower(call, parts)
    if call.slot is not None:
        alone = call.inbound.reads_to_the_end and call.mcp is None and call.policy.heartbeat_s is None
        shared = Shared(exchange, parts.settings.spool_bytes, keeper(call, parts), alone, call.slot.leave)
        call.shared = True
        call.source = shared.join()
        call.slot.fill(shared)
    else:
        call.source = DirectSource(exchange, cancels=mcp_newer.takes_back_by_leaving(call))
    call.inbound.on_gone(call.source.leave)


async def once_more(call: Call, parts: Parts) -> None:
    """Admit a call again that the gateway did not take, before all others in its lane and with a hold of its own."""
    offers = call.slot is not None and call.caching is not None
    if call.source is not None and call.shared:
        call.source.leave()
    call.source, call.shared, call.upstream_status = None, False, 0
    call.slot = parts.in_flight.claim(call.caching.key) if offers and call.caching is not None else None
    hold_anew(call, parts)
    await again(call, parts, first=True)


def hold_anew(call: Call, parts: Parts) -> None:
    """What the gateway did not take was let go, and is counted so; the next attempt has a hold of its own."""
    if call.hold is not None:
        parts.metrics.count("reservations_total", "released")
        call.hold = call.hold._replace(id=parts.new_id())


def _follower(call: Call, parts: Parts) -> Follow | None:
    """Who looks at the exchange's end for work that goes on at the gateway, or has ended there."""
    assert call.match is not None
    assert call.team is not None
    team, name = call.team.name, call.match.route.name
    begins = name in _BEGINS and (name != "responses" or (call.facts is not None and call.facts.background))
    if begins:
        model = call.model
        return lambda exchange: parts.operations.take_over(team, _BEGINS[name], model, exchange)
    if name in _TELLS:
        operation_id = call.match.values["id"]

        def told(exchange: Exchange) -> bool:
            if exchange.meter is not None:
                call.work = parts.operations.polled(operation_id, exchange.meter)
                call.charge = call.charge if call.work is None else call.work.charge
            return False

        return told
    return None
