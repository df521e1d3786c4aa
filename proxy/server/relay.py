"""Relay: the gateway's answer goes to the caller, streams byte for byte, with the meter alongside in the exchange.

A stream that breaks off must not look complete: one error event of its family is added, then it ends.
"""

from collections.abc import Coroutine
from typing import Final

from aiohttp import web

from proxy.core.charges import Ending
from proxy.core.media import BINARY, is_media
from proxy.core.policy import Storms
from proxy.core.speech import WAV_HEADER
from proxy.errors import ProxyError
from proxy.mcp import answers as mcp_answers
from proxy.server import hits, lists, owning, pressure, replies, streams
from proxy.server.admit import again, hold_anew, once_more
from proxy.server.call import Call
from proxy.server.known import NAMES_MAX
from proxy.server.parts import Parts
from proxy.server.recall import Anew, may_begin_anew
from proxy.server.receive import shutting_down
from proxy.server.routes import Dialect
from proxy.server.send import MAY_BE_CHARGED, refused, send
from proxy.server.upstream import Answer, TooSlow, UpstreamFault

WHOLE_MAX: Final = 4 * 1024 * 1024
"""Bytes of a JSON answer that are gathered, so that its cost can stand in the header; longer ones flow through."""

_MCP: Final = Dialect.MCP
"""Bound once: looking a member up in its enum takes as long as a call."""

ERROR_MAX: Final = 64 * 1024
"""Bytes of an error answer that are read."""

_BODYLESS: Final = frozenset({204, 205})
"""Statuses of answers that may have no body (RFC 9110, 15.3.5 and 15.3.6), whatever a gateway sends behind them."""


def relay(call: Call, parts: Parts) -> Coroutine[None, None, web.StreamResponse]:
    """Pass the answer on; always the last stage. Raises ProxyError as long as nothing is out."""
    assert call.source is not None
    answer = call.source.exchange.answer
    assert answer is not None, "its head was waited for"
    if answer.status != 401 and call.gateway_key is None:
        parts.state.key_refused = False
    pressure.answered(call, answer.status, parts)
    if answer.status >= 600:
        raise _nonsense(call, f"status {answer.status}, which does not exist")
    if answer.status >= 400:
        return _error(call, answer, parts)
    if answer.status >= 300:
        call.source.end(Ending.GATEWAY_REFUSED)
        raise ProxyError(
            "upstream_redirect",
            f"The gateway answered {answer.status}, a redirect, which is never followed. Whoever runs the proxy should "
            "check --upstream.",
        )
    if answer.status < 200 or (answer.status == 206 and call.match is not None and call.match.route.name != "download"):
        raise _nonsense(call, f"status {answer.status}, which answers nothing that was asked")
    bodyless = answer.status in _BODYLESS
    if answer.is_stream and not bodyless and (call.dialect is not Dialect.MCP or mcp_answers.passes_through(call)):
        return streams.stream(call, answer, parts)
    if call.match is not None and call.match.route.name in BINARY:
        if bodyless or not is_media(answer.content_type) or answer.content_length == 0:
            raise _nonsense(call, "something that is neither sound nor film")
        return _long(call, answer, _in_front(call), parts)
    return _whole(call, answer, parts)


def _nonsense(call: Call, what: str) -> ProxyError:
    """The answer cannot be what was asked for; the call may have been charged all the same."""
    if call.source is not None:
        call.source.end(Ending.UPSTREAM_BROKE)
    paid = MAY_BE_CHARGED if call.hold is not None else ""
    return ProxyError("upstream_broken", f"The gateway answered with {what}.{paid}")


def _in_front(call: Call) -> list[bytes]:
    """What goes in front of the gateway's bytes: nothing, or the header that makes raw samples a WAV file."""
    return [WAV_HEADER] if call.wav else []


async def _error(call: Call, answer: Answer, parts: Parts) -> web.StreamResponse:
    body = await _gather_error(call)
    if answer.status >= 500 and call.stale is not None:
        return hits.serve(call, parts, call.stale)
    if call.taker is not None and answer.status in (400, 422) and b"stream_options" in body:
        return await _without_asking(call, parts)
    parts.metrics.count("upstream_errors_total", call.match.route.name if call.match else "_none", str(answer.status))
    if answer.status == 429:
        if call.policy.storms is Storms.HOLD and may_begin_anew(call, parts):
            raise Anew
        if not call.joined and pressure.sent_back(call, answer, parts):
            return await _once_more(call, parts)
    pressure.refused(call, answer, answer.content_type, body, parts)
    if answer.status == 401 and call.gateway_key is None:
        parts.state.key_refused = True
        parts.state.gateway_key = parts.reread_key() or parts.state.gateway_key
        parts.log.mask(parts.state.gateway_key)
        parts.log.note("error", "gateway_key_refused", id=call.id)
        raise pressure.key_refused()
    return replies.gateway_error(call, answer, body, parts)


async def _without_asking(call: Call, parts: Parts) -> web.StreamResponse:
    """The model refuses what we added to the request: remember it, and send what the caller sent."""
    assert call.out is not None
    if call.model is not None and len(parts.state.no_stream_usage) < NAMES_MAX:
        parts.state.no_stream_usage.add(call.model)
    if call.source is not None and call.shared:
        call.source.leave()
    # What is fetched now is another request than the one whose place was claimed.
    call.taker, call.source, call.slot, call.shared, call.caching = None, None, None, False, None
    call.out = call.out._replace(body=call.body)
    hold_anew(call, parts)
    await again(call, parts, first=True)
    return await send(call, parts) or await relay(call, parts)


async def _once_more(call: Call, parts: Parts) -> web.StreamResponse:
    """The gateway had no room: the call waits at the head of its lane, and is sent again."""
    await once_more(call, parts)
    return await send(call, parts) or await relay(call, parts)


async def _gather_error(call: Call) -> bytes:
    assert call.source is not None
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := await call.source.read():
            pieces.append(piece)
            size += len(piece)
            if size >= ERROR_MAX:
                break
    except UpstreamFault:
        # The status is known and decides; a sentence cut short is better than none.
        pass
    call.source.end(None)
    return b"".join(pieces)[:ERROR_MAX]


async def _whole(call: Call, answer: Answer, parts: Parts) -> web.StreamResponse:
    """Gather an answer and send it with its cost in the header."""
    assert call.source is not None
    gathered: list[bytes] = []
    size = 0
    # It is read for its usage all the same; a suite's message goes on in an answer of our own.
    unsent = answer.status in _BODYLESS and call.dialect is not Dialect.MCP
    progress = mcp_answers.progress_of(call) if answer.is_stream else None
    try:
        while piece := await call.source.read():
            if unsent:
                continue
            gathered.append(piece)
            if progress is not None and (begun := progress.feed(piece)):
                call.taker = progress
                return await streams.stream(call, answer, parts, begun=begun)
            size += len(piece)
            if size > WHOLE_MAX and call.dialect is not Dialect.MCP:
                await owning.give(call, parts)
                return await _long(call, answer, gathered, parts)
    except UpstreamFault as fault:
        meter = call.source.exchange.meter
        if meter is None or not meter.terminal or not gathered or isinstance(fault, TooSlow):
            if may_begin_anew(call, parts):
                raise Anew from fault
            raise refused(call, parts, fault) from fault
        # The connection broke behind a whole answer: what it says was said, and an id in it must not be lost.
    exchange, status = call.source.exchange, answer.status
    if call.joined and not call.source.kept:
        # Nobody may be given this answer but the one who asked for it, so those who waited ask for themselves.
        if parts.state.draining:
            raise shutting_down()
        call.alone = True
        raise Anew
    if call.shared and call.source.kept:
        call.cache_status = f"{call.cache_status}; stored; fwd-status={answer.status}"
    if owning.new_id(call) is not None:
        await owning.give(call, parts)
    body = gathered[0] if len(gathered) == 1 else b"".join(gathered)
    if call.dialect is _MCP:
        body, content_type, status = mcp_answers.adapted(call, parts, body, streamed=answer.is_stream)
    elif exchange.meter is not None and not exchange.meter.terminal:
        raise ProxyError(
            "upstream_broken",
            f"The gateway answered {answer.status} with something that is not the JSON object its document promises. "
            "The call may have been charged.",
        )
    else:
        body, content_type = lists.adapted(call, body), answer.content_type
    headers = replies.our_headers(call, parts, known_charge=True)
    headers |= replies.passed_headers(call, answer)
    headers["content-type"] = content_type
    return replies.respond(call, parts, status, body, headers)


async def _long(call: Call, answer: Answer, gathered: list[bytes], parts: Parts) -> web.StreamResponse:
    """Pass an answer too long to gather piece by piece; a break shows as a broken connection."""
    assert call.source is not None
    response = streams.open_response(call, answer, parts)
    if call.wav:
        response.headers["content-type"] = "audio/wav"
    if answer.content_length is not None:
        response.content_length = answer.content_length + (len(WAV_HEADER) if call.wav else 0)
    await response.prepare(call.inbound.request)
    for piece in gathered:
        await streams.write(call, response, piece)
    try:
        while piece := await call.source.read():
            await streams.write(call, response, piece)
    except UpstreamFault as fault:
        raise ConnectionResetError("the gateway broke off in the middle of an answer") from fault
    if not call.inbound.gone:
        await response.write_eof()
    return response
