"""Admit: take the hold, then make the exchange that owns it. From here on the hold ends by itself."""

import time
from typing import Final

from aiohttp import web

from proxy.core.accounts import Why
from proxy.core.answers import Family
from proxy.core.holds import OpenHold
from proxy.core.ledger import Hold
from proxy.server.budgets import over_budget
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


async def admit(call: Call, parts: Parts) -> web.StreamResponse | None:
    """Commit the hold and set the source the answer is read from. Raises ProxyError `ledger_unavailable`."""
    assert call.out is not None
    assert call.match is not None
    if call.source is not None:
        return None  # joined: the one who fetches has been admitted
    if call.hold is not None:
        await _hold(call, call.hold, parts)
    exchange = Exchange(
        parts.upstream,
        call.out,
        family=FAMILIES.get(call.match.route.name),
        hold=call.hold,
        books=parts.books,
        among=parts.exchanges,
        wall=parts.wall,
        follow=_follower(call, parts),
    )
    if call.slot is not None:
        shared = Shared(exchange, parts.settings.spool_bytes, keeper(call, parts))
        call.shared = True
        call.source = shared.join()
        call.slot.fill(shared)
    else:
        call.source = DirectSource(exchange)
    call.inbound.on_gone(call.source.leave)
    return None


async def _hold(call: Call, hold: OpenHold, parts: Parts) -> None:
    """Take the hold; where only holds of running calls are in the way, wait for one to end, up to the team's bound."""
    assert call.team is not None
    began_s = time.monotonic()
    until_s = began_s + call.team.wait_max_s
    while True:
        ended = parts.books.next_ending()
        now_s = parts.wall()
        riders = [] if call.promised is None else [call.promised.promise(hold.id, now_s)]
        refusal = await parts.books.hold(Hold(hold.id, call.facts_for_books, hold.credits, now_s), riders)
        call.waited_s = time.monotonic() - began_s
        if refusal is None:
            return
        if refusal.why is not Why.BUSY or call.inbound.gone:
            raise over_budget(refusal)
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise over_budget(refusal)
        await parts.books.ending(ended, left_s)


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
                call.charge = parts.operations.polled(operation_id, exchange.meter) or call.charge
            return False

        return told
    return None
