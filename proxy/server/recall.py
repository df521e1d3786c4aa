"""Recall: an answer that need not be fetched, because it is stored, or because the same call is on its way already."""

import time
from collections.abc import Coroutine
from functools import cache
from hashlib import sha256
from math import inf
from operator import attrgetter
from typing import Final

import orjson
from aiohttp import web

from proxy.core import deterministic
from proxy.core.body import LARGE
from proxy.core.cachekey import key_of
from proxy.core.deterministic import Decision
from proxy.core.media import BINARY, is_media
from proxy.core.policy import CacheScope, Steering
from proxy.core.steering import FREE, steer
from proxy.core.toollist import LIST, Definition, asked
from proxy.errors import ProxyError
from proxy.mcp import answers as mcp_answers
from proxy.server import hits
from proxy.server.cache import Caching, Road
from proxy.server.call import Call
from proxy.server.exchange import Exchange
from proxy.server.parts import Parts
from proxy.server.sources import Keep, not_kept
from proxy.stores.cache.contract import Entry, entry_of
from proxy.units import Credits

Place = tuple[str, str | None, str, tuple[str | None, ...], int]
"""Team, gateway key of the caller, target, header lines that shape an answer, hash of the body as it came.

The interpreter's hash is quick and finds a request; that it is the same one is known by the SHA-256 of its body.
"""


_HONOUR, _OFF, _TEAM = Steering.HONOUR, CacheScope.OFF, CacheScope.TEAM
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

LIST_AGE_MAX_S: Final = 10.0
"""How long a call that costs nothing may run before identical ones are sent by themselves."""


class Anew(Exception):
    """The call that this one joined gave it nothing, so it goes through recall and admission by itself."""


def recall(call: Call, parts: Parts) -> web.StreamResponse | Coroutine[None, None, web.StreamResponse | None] | None:
    """Answer from the cache, or join an identical call in flight; neither costs this caller anything.

    Raises ProxyError `not_in_cache` where the caller wants nothing fetched.
    """
    caching = call.caching = call.caching or caching_of(call, parts)
    if call.promised is not None:
        # A call with an idempotency key asks for an outcome of its own.
        caching = call.caching = Caching(Decision(False, "idempotency-key"), steer=caching.steer)
    wanted = caching.steer
    if caching.key and not wanted.no_store:
        call.cache_result = "miss"
        call.cache_status = "sluicegate; fwd=" + ("request" if wanted.no_cache else "uri-miss")
        if not call.anew and not wanted.no_cache:
            entry = parts.cache.at_once(caching.key)
            if entry is None and parts.cache.may_have(caching.key):
                return _look(call, parts)
            if entry is not None and (hit := _given(call, entry, parts)) is not None:
                return hit
    else:
        why_not = "no-store" if caching.decision.may else caching.decision.detail
        call.cache_status = f"sluicegate; fwd=bypass; detail={why_not}"
    return _fetch(call, parts)


async def _look(call: Call, parts: Parts) -> web.StreamResponse | None:
    """What the file has, which is waited for."""
    assert call.caching is not None
    began_s = time.monotonic()
    entry = await parts.cache.get(call.caching.key)
    parts.metrics.observe("cache_operation_duration_seconds", "get", value=time.monotonic() - began_s)
    if entry is not None and (hit := _given(call, entry, parts)) is not None:
        return hit
    fetched = _fetch(call, parts)
    return None if fetched is None else await fetched


def _given(call: Call, entry: Entry, parts: Parts) -> web.StreamResponse | None:
    """A stored answer, where it is fresh."""
    if is_fresh(call, entry, parts):
        _remember(call, parts)
        return hits.serve(call, parts, entry)
    call.cache_status = "sluicegate; fwd=stale"
    return None


def _fetch(call: Call, parts: Parts) -> Coroutine[None, None, web.StreamResponse | None] | None:
    """Nothing is stored: join an identical call, or claim the place of one. Raises ProxyError `not_in_cache`."""
    assert call.caching is not None
    if call.caching.steer.only_if_cached:
        raise ProxyError("not_in_cache", "Cache-Control: only-if-cached, and this answer is not stored or too old.")
    if call.cache_result != "miss" or call.alone:
        return None
    if not call.caching.steer.no_cache and parts.in_flight.has(call.caching.key):
        return _join(call, parts)
    call.slot = parts.in_flight.claim(call.caching.key)
    return None


def is_fresh(call: Call, entry: Entry, parts: Parts) -> bool:
    """Whether a stored answer may be given; one that is too old is kept at hand for when the gateway fails."""
    assert call.caching is not None
    decision, wanted = call.caching.decision, call.caching.steer
    age_s = parts.wall() - entry.stored_s
    if age_s < decision.ttl_s + decision.stale_if_error_s:
        call.stale = entry
    return age_s < decision.ttl_s and (wanted.max_age_s is None or age_s <= wanted.max_age_s)


async def _join(call: Call, parts: Parts) -> web.StreamResponse | None:
    """Join an identical call, or claim the place of one; the answer where it came while this call was on its way."""
    assert call.caching is not None
    # What costs nothing is asked again rather than waited for, where the gateway seems to have forgotten it.
    age_max_s = LIST_AGE_MAX_S if call.hold is None else inf
    source = await parts.in_flight.join(call.caching.key, age_max_s)
    if source is None:
        # The call that it waited for may have come to its end, and its answer into memory.
        entry = None if call.anew else parts.cache.at_once(call.caching.key)
        if entry is not None and is_fresh(call, entry, parts):
            return hits.serve(call, parts, entry)
        call.slot = parts.in_flight.claim(call.caching.key)
        return None
    call.source, call.shared, call.joined = source, True, True
    call.spare, call.hold, call.held = call.hold, None, Credits(0)
    call.cache_result = "collapsed"
    call.cache_status = "sluicegate; fwd=uri-miss; collapsed"
    call.inbound.on_gone(source.leave)
    return None


def may_begin_anew(call: Call, parts: Parts) -> bool:
    """Whether a call that joined another in vain goes on by itself: once, and not when the proxy stops."""
    return call.joined and not call.anew and not parts.state.draining


def begin_anew(call: Call) -> None:
    """Forget the call that was joined."""
    if call.source is not None:
        call.source.leave()
    call.source, call.slot, call.shared, call.joined = None, None, False, False
    call.anew = True
    if call.spare is not None:
        call.hold, call.spare = call.spare, None
        call.held = call.hold.credits


def caching_of(call: Call, parts: Parts) -> Caching:
    """Whether this call's answer may be kept and given, by the policy, and under which key."""
    assert call.team is not None
    assert call.match is not None
    team, facts = call.team, call.facts_for_books
    decoded, call.decoded = call.decoded, None
    obeys = team.cache_control is _HONOUR
    wanted = steer(call.inbound.header("cache-control")) if obeys else FREE
    if team.cache is _OFF or call.out is None:
        return Caching(Decision(False, "policy" if call.out is not None else "route"), steer=wanted)
    definition = None if call.mcp is None else _definition(call, parts)
    decision = deterministic.decide(facts, call.facts, call.policy.cache, definition)
    if not decision.may:
        return Caching(decision, steer=wanted)
    is_list = call.mcp is not None and call.mcp.method == LIST
    # Every team may be given the whole list of a suite, since what it may not use is left out when it is given.
    scope = team.name if team.cache is _TEAM and not is_list else ""
    credential = "" if call.gateway_key is None else sha256(call.gateway_key.encode()).hexdigest()
    out = call.out
    key = key_of(
        parts.cache.secret,
        scope=(scope, credential, parts.cache.gateway),
        route=facts.route,
        target=out.target,
        headers=out.headers.values,
        streamed=call.facts is not None and call.facts.stream,
        body=out.body if call.mcp is None else _asked_of_suite(call, parts),
        # What was made of the body since it was judged is decoded by itself.
        tree=decoded[1] if decoded is not None and decoded[0] is out.body else None,
        as_it_is=len(out.body) > LARGE,
    )
    return Caching(decision, key, wanted, scope)


def _remember(call: Call, parts: Parts) -> None:
    """Know a request again that was answered from the cache, by its bytes."""
    assert call.match is not None
    same_route = call.facts_for_books.route == call.match.route.name
    if call.place is not None and call.taker is None and same_route and call.facts is not None:
        assert call.caching is not None
        parts.cache.remember(call.place, Road(call.policy, call.facts, call.caching, sha256(call.came).digest()))


def _definition(call: Call, parts: Parts) -> Definition | None:
    if call.mcp is None or call.mcp.tool is None:
        return None
    return parts.toolbox.definition(call.credential, call.facts_for_books.suite or "", call.mcp.tool)


def _asked_of_suite(call: Call, parts: Parts) -> bytes:
    """What of an MCP call its answer depends on: not its id, but what the tool is."""
    assert call.mcp is not None
    known = _definition(call, parts)
    said = orjson.dumps([call.mcp.method, None if known is None else known.digest])
    return b'{"params":' + asked(call.body) + b',"of":' + said + b"}"


def keeper(call: Call, parts: Parts) -> Keep:
    """Stores the answer to a call, when it is one to be stored."""
    route, model = call.route, call.model
    if call.caching is None or not call.caching.key or route is None:
        return not_kept
    decision, key, _, scope = call.caching

    def keep(exchange: Exchange, body: bytes) -> bool:
        answer = exchange.answer
        if answer is None:
            return False
        streamed = call.facts is not None and call.facts.stream
        kept, meter = body, exchange.meter
        headers = {}
        for name, value in answer.headers:
            if (low := name.lower()) in KEPT_HEADERS:
                headers[low] = value
        if call.mcp is not None:
            message = mcp_answers.kept(body, meter, call.mcp.method, streamed=answer.is_stream)
            if message is None:
                return False
            kept, headers["content-type"] = message, mcp_answers.JSON
        if route.name in BINARY and not is_media(answer.content_type):
            return False
        # What has a meter was read by it.
        is_json = meter is None and answer.content_type.lower().startswith("application/json")
        if not deterministic.keepable(route.name, answer.status, meter, kept, is_json=is_json, streamed=streamed):
            return False
        now_s = parts.wall()
        until_s = now_s + decision.ttl_s + decision.stale_if_error_s
        counts = () if meter is None else zip(_COUNTED, _counts(meter.usage), strict=True)
        used = {name: count for name, count in counts if count}
        paid = exchange.charge.credits
        began_s = time.monotonic()
        # In the order of the fields, as their names would take as long again as all the rest of it.
        parts.cache.keep(
            entry_of((key, scope, route.name, model or "", answer.status, headers, kept, now_s, until_s, paid, used))
        )
        parts.metrics.time("cache_operation_duration_seconds", _PUT, time.monotonic() - began_s, "")
        return True

    return keep


KEPT_HEADERS: Final = frozenset({"content-type", "content-disposition", "x-model", "x-music-structure"})
"""What of an answer's header is true of its stored bytes; figures of limits and charges are of their moment."""

_PUT: Final = ("put",)
_COUNTED: Final = ("input", "output", "reasoning", "cache_read", "cache_write")
_counts: Final = attrgetter(*_COUNTED)


# --- the short way ---

_QUICK: Final = frozenset({"chat", "native", "responses", "native-count"})
_STEERING: Final = frozenset({"cache-control", "idempotency-key"})
_SHAPING: Final = ("anthropic-version", "anthropic-beta", "partner-version", "partner-beta")


@cache
def _shaping(segment: str) -> tuple[str, ...]:
    """Header lines that change what is asked, beside the body."""
    return tuple(dict.fromkeys((*_SHAPING, f"{segment}-version", f"{segment}-beta")))


def at_once(call: Call, parts: Parts) -> web.StreamResponse | None:
    """Answer a request that came before byte for byte, under the same policy, from memory: nothing is parsed for it."""
    # Whatever becomes of the call, its bytes are not kept beside its body for as long as it takes.
    sent, call.inbound.sent_whole = call.inbound.sent_whole, None
    if call.match is None or call.match.route.name not in _QUICK or call.team is None or len(call.body) > LARGE:
        return None
    headers = call.inbound.headers
    if not _STEERING.isdisjoint(headers):
        return None
    call.place = (
        call.team.name,
        call.gateway_key,
        call.inbound.target,
        tuple([headers.get(name) for name in _shaping(parts.settings.native_segment)]),
        hash(call.body),
    )
    call.came = call.body
    if parts.cache.road(call.place, call.policy) is None:
        return None
    digest = sha256(call.body).digest()
    entry = remembered(call, digest, parts)
    if entry is None:
        return None
    parts.repeats.keep(sent, call, digest)
    return hits.serve(call, parts, entry)


def remembered(call: Call, digest: bytes, parts: Parts) -> Entry | None:
    """The fresh answer in memory to a request whose place was found before under this policy.

    digest: SHA-256 of its body.
    """
    road = parts.cache.road(call.place, call.policy)
    if road is None or road.digest != digest or (entry := parts.cache.at_once(road.caching.key)) is None:
        return None
    if parts.wall() - entry.stored_s >= road.caching.decision.ttl_s:
        return None
    call.judged(road.facts)
    call.caching = road.caching
    return entry
