"""Decide: may this team make this call, and what could it cost at most?"""

from aiohttp import web

from proxy.config.settings import Auth
from proxy.core.pricing import CALL_PRICE, FLAT_CEILING
from proxy.errors import ProxyError
from proxy.server import local, owning
from proxy.server.call import Call
from proxy.server.exchange import OpenHold
from proxy.server.parts import Parts
from proxy.server.routes import Draws


async def decide(call: Call, parts: Parts) -> web.StreamResponse | None:
    """Set the hold a spending call needs. Raises ProxyError; answers the routes that are about the team itself."""
    assert call.match is not None
    assert call.team is not None
    route = call.match.route
    if route.upstream is None:
        return local.keyed(call, parts)
    if route.name == "credits" and not call.team.sees_balance(open_auth=parts.settings.auth is Auth.OPEN):
        raise ProxyError(
            "balance_hidden",
            "The gateway's balance is not shown to this team. GET /-/budget shows the team's own limits.",
        )
    owning.check(call, parts)
    is_call = call.mcp is not None and call.mcp.method == "tools/call"
    if is_call:
        call.hold = OpenHold(parts.new_id(), CALL_PRICE, is_call=True, input_bytes=0)
    elif Draws.RESERVATION in route.draws:
        call.hold = OpenHold(
            parts.new_id(), FLAT_CEILING, is_call=False, input_bytes=call.facts.text_bytes if call.facts else 0
        )
    if call.hold is not None:
        call.held = call.hold.credits
    return None
