"""Answers that need no gateway: signs of life, a team's own figures, preflights."""

import orjson
from aiohttp import web

from proxy import __version__
from proxy.server import replies
from proxy.server.budgets import limits_of
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.server.routes import allowed_methods
from proxy.units import credit_text

_PREFLIGHT_S = "600"


def unkeyed(call: Call, parts: Parts) -> web.Response:
    """The routes that ask for no key: `/` and `/-/health`. They tell strangers nothing."""
    assert call.match is not None
    if call.match.route.name == "root":
        said = {
            "service": "sluicegate",
            "docs": "POST /v1/chat/completions, /v1/messages, /v1/responses, /v1/mcp/{suite}",
        }
        return replies.local_json(call, parts, 200, orjson.dumps(said))
    up = not parts.state.draining
    return replies.local_json(call, parts, 200 if up else 503, orjson.dumps({"status": "ok" if up else "draining"}))


def keyed(call: Call, parts: Parts) -> web.Response:
    """`/-/budget`: the team's own limits and figures."""
    assert call.team is not None
    books = parts.books.figures(call.team.name)
    said = {
        "team": call.team.name,
        "key": call.key_id,
        "version": __version__,
        "spent_credits": credit_text(books.spent),
        "held_credits": credit_text(books.held),
        "limits": limits_of(call.facts_for_books, parts.books.accounts, parts.wall()),
    }
    return replies.local_json(call, parts, 200, orjson.dumps(said))


def options(call: Call, parts: Parts) -> web.Response:
    """A preflight: 204, with CORS lines only for pages that may call."""
    methods = allowed_methods(call.inbound.target, segment=parts.settings.native_segment)
    headers = {"Allow": ", ".join((*methods, "OPTIONS"))}
    if call.inbound.header("origin") in parts.settings.cors_origins:
        headers |= {
            "Access-Control-Allow-Methods": ", ".join(methods),
            "Access-Control-Allow-Headers": call.inbound.header("access-control-request-headers") or "*",
            "Access-Control-Max-Age": _PREFLIGHT_S,
        }
    lines = replies.our_headers(call, parts, known_charge=False)
    return replies.respond(call, parts, 204, b"", {**lines, **headers})
