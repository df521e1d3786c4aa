"""Decide: may this team make this call, and what could it cost at most?"""

from typing import Final
from urllib.parse import unquote

from aiohttp import web

from proxy.config.settings import Auth
from proxy.core import chatbot
from proxy.core.holds import OpenHold, open_hold
from proxy.core.limits import drawn
from proxy.core.prices import FLAT, FREE
from proxy.core.pricing import RESPONSES_OUTPUT_MAX, Asked, Estimate, Unit, asked, at_most, covers
from proxy.errors import ProxyError
from proxy.server import local, owning
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.units import Credits


def decide(call: Call, parts: Parts) -> web.StreamResponse | None:
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
    _check_permission(call)
    _set_hold(call, parts)
    return None


def _check_permission(call: Call) -> None:
    """May this team use this model, suite, tool, chatbot? Judged on the requested id. Raises ProxyError."""
    assert call.match is not None
    assert call.team is not None
    team, values = call.team, call.match.values
    if call.match.route.name == "chatbot":
        if not team.may_use_chatbot(chatbot.checked(values["id"])):
            raise ProxyError("chatbot_not_allowed", f"The team {team.name} may not use this chatbot.")
    elif call.model is not None and not team.may_use_model(call.model):
        raise ProxyError("model_not_allowed", f"The team {team.name} may not use the model {call.model[:200]}.")
    elif "model" in values and not team.may_use_model(unquote(values["model"])):
        raise ProxyError("model_not_allowed", f"The team {team.name} may not use this model.")
    if "suite" in values:
        suite = unquote(values["suite"])
        if not team.may_use_suite(suite):
            raise ProxyError("suite_not_allowed", f"The team {team.name} may not use this tool suite.")
        if call.mcp is not None and call.mcp.tool is not None and not team.may_use_tool(suite, call.mcp.tool):
            raise ProxyError("tool_not_allowed", f"The team {team.name} may not use the tool {call.mcp.tool[:200]}.")


# fmt: off
_UNITS: Final = {
    # route       what its price counts   kind of price rule
    "chat":      (Unit.TOKENS,            "models"),
    "native":    (Unit.TOKENS,            "models"),
    "responses": (Unit.TOKENS,            "models"),
    "chatbot":   (Unit.CALL,              "chatbots"),
    "speech":    (Unit.SPEECH,            "models"),
    "music":     (Unit.CALL,              "models"),
    "images":    (Unit.IMAGES,            "models"),
    "videos":    (Unit.VIDEO,             "models"),
}
# fmt: on


_PER_UNIT: Final = (Unit.CALL, Unit.IMAGES, Unit.VIDEO)
_IMAGES, _TOKENS, _LEARNED = Unit.IMAGES, Unit.TOKENS, Estimate.LEARNED


def _set_hold(call: Call, parts: Parts) -> None:
    """The hold a spending call needs. Raises ProxyError `unpriced_model`."""
    assert call.match is not None
    name, policy = call.match.route.name, call.policy
    if call.mcp is not None:
        if call.mcp.method == "tools/call":
            price = policy.prices.find("suites", unquote(call.match.values["suite"])) or FREE
            call.asked = Asked(Unit.CALL)
            call.hold = OpenHold(_hold_id(call, parts), price.per_call, is_call=True, input_bytes=0, price=price)
    elif name in _UNITS:
        unit, kind = _UNITS[name]
        named = call.match.values["id"] if kind == "chatbots" else call.model
        price_or_none = policy.prices.find(kind, named)
        if price_or_none is None and not policy.prices and not policy.budgets:
            price_or_none = FLAT
        elif price_or_none is not None and not covers(price_or_none, unit):
            # What other routes cost says nothing of this one, and must not make it free.
            price_or_none = None
        default = RESPONSES_OUTPUT_MAX if name == "responses" else None
        chained = owning.parent_tokens(call, parts) if name == "responses" else 0
        what = asked(unit, call.facts, default_output=default, parent_tokens=chained)
        if unit is _IMAGES and call.facts is not None:
            # `n` is the name of image SDKs, and the gateway reads it only where it was renamed.
            renamed = call.match.route.path == "images/generations"
            what = what._replace(n=max(call.facts.n if renamed else 1, call.facts.pictures))
        if policy.estimate is _LEARNED and unit is _TOKENS:
            what = what._replace(density=parts.densities.of(name, call.model))
        call.asked = what
        most, call.tokens = at_most(what, price_or_none or FREE, policy.estimate)
        if price_or_none is None:
            most = _unpriced(call)
        reasons = call.facts is not None and call.facts.reasons
        hold_id, per_unit = _hold_id(call, parts), unit in _PER_UNIT
        call.hold = open_hold((hold_id, most, False, what.text_bytes, price_or_none, per_unit, reasons))
    if call.hold is not None:
        call.held = call.hold.credits


def _hold_id(call: Call, parts: Parts) -> str:
    """Who has the id of a call finds its hold and its charge by it."""
    return parts.new_id() if call.named else call.id


def _priced_as(call: Call) -> str:
    """What a price would have to be for, as a policy names it."""
    assert call.match is not None
    if call.match.route.name == "chatbot":
        return f"chatbots: {call.match.values['id']}"
    return (call.model or "this call")[:200]


def _unpriced(call: Call) -> Credits:
    """What a call without a price holds: what the policy says, nothing where no budget counts it."""
    if call.policy.unpriced_hold is not None:
        return call.policy.unpriced_hold
    counting = drawn(call.policy.budgets, call.facts_for_books)
    if counting:
        raise ProxyError(
            "unpriced_model",
            f"There is no price for {_priced_as(call)}, and the budget {counting[0].name} counts it. "
            "Whoever keeps the policies can add a price.",
        )
    return Credits(0)
