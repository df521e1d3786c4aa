"""A stored answer on its way to a caller: the gateway's bytes again, at no charge."""

from aiohttp import web

from proxy.core.charges import Ending
from proxy.core.speech import WAV_HEADER
from proxy.mcp import answers as mcp_answers
from proxy.server import lists, replies
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.server.routes import Dialect
from proxy.stores.cache.contract import Entry
from proxy.units import Credits


def serve(call: Call, parts: Parts, entry: Entry) -> web.Response:
    """The answer. Raises ProxyError for a stored list that cannot be read."""
    headers, body = told(call, parts, entry)
    return replies.respond(call, parts, entry.status, body, headers)


def told(call: Call, parts: Parts, entry: Entry) -> tuple[dict[str, str], bytes]:
    """Header lines and body of the answer, and the call as it stands with it. Raises as `serve` does."""
    assert call.caching is not None
    age_s = max(0, int(parts.wall() - entry.stored_s))
    ttl_s = int(call.caching.decision.ttl_s) - age_s
    call.hit, call.ending = entry, Ending.HIT
    call.hold, call.held = None, Credits(0)
    call.cache_result = "stale" if ttl_s < 0 else "hit"
    # A stale answer says so by a time to live below zero (RFC 9211).
    call.cache_status = f"sluicegate; hit; ttl={ttl_s}"
    headers = {**replies.our_headers(call, parts, known_charge=True), **entry.headers, "age": str(age_s)}
    headers["request-id"] = call.id
    body = _body(call, parts, entry, headers)
    return headers, body


def _body(call: Call, parts: Parts, entry: Entry, headers: dict[str, str]) -> bytes:
    """The bytes for this caller: what is made of the gateway's for a single caller is never stored."""
    if entry.is_stream:
        headers |= {"cache-control": "no-cache", "x-accel-buffering": "no"}
        return call.taker.feed(entry.body) + call.taker.close() if call.taker is not None else entry.body
    if call.dialect is Dialect.MCP:
        body, headers["content-type"], _ = mcp_answers.adapted(call, parts, entry.body, streamed=False)
        return body
    if call.wav:
        headers["content-type"] = "audio/wav"
        return WAV_HEADER + entry.body
    return lists.adapted(call, entry.body)
