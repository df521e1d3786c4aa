"""A stream on its way to its caller: byte for byte, as it comes, and never looking complete when it is not.

When the gateway breaks off, one error event of the route's family is added, then the stream ends.
"""

import asyncio
import time
from typing import Final

from aiohttp import web

from proxy.core.charges import Ending
from proxy.server import owning, replies
from proxy.server.call import Call
from proxy.server.flow import Flow
from proxy.server.parts import Parts
from proxy.server.upstream import Answer, TooSlow, UpstreamFault

HEARTBEAT: Final = b": heartbeat\n\n"
STOPPED_SENTENCE: Final = "The proxy was stopped before the answer came to its end."
BROKE_SENTENCE: Final = "The gateway's answer broke off before its end."


def open_response(call: Call, answer: Answer, parts: Parts) -> Flow:
    """An answer that is written piece by piece, with its head ready."""
    headers = {
        **replies.our_headers(call, parts, known_charge=False),
        **replies.passed_headers(call, answer),
    }
    response = Flow(status=answer.status, headers=headers)
    call.status = answer.status
    if call.promised is not None:
        call.promised.response = response
    if parts.state.draining or not call.inbound.stays_open:
        # A caller of HTTP/1.0 knows the end of what has no length by that.
        response.force_close()
    return response


async def write(call: Call, response: web.StreamResponse, piece: bytes) -> None:
    """Write, or only count, when the caller is gone: the exchange is read on for its usage."""
    if call.promised is not None:
        call.promised.recording.add(piece)
    if call.inbound.gone or not piece:
        return
    try:
        await response.write(piece)
        call.sent_bytes += len(piece)
    except ConnectionError:
        assert call.source is not None
        call.source.leave()


async def stream(call: Call, answer: Answer, parts: Parts, *, begun: bytes = b"") -> web.StreamResponse:
    """Pass a stream on; raises ConnectionResetError once its caller has left and it was read to its end.

    begun: what of it goes out first, where its beginning was read already.
    """
    assert call.source is not None
    assert call.match is not None
    response = open_response(call, answer, parts)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Buffering"] = "no"
    route = call.match.route.name
    parts.metrics.change("streams_in_flight", route, by=1)
    broke = None
    beats = _Heartbeat(call, call.policy.heartbeat_s) if call.policy.heartbeat_s is not None else None
    read = call.source.read if beats is None else beats.read
    try:
        await response.begin(call.inbound, parts.wall())
        if begun:
            await write(call, response, begun)
        while piece := await read():
            if call.first_byte_s is None:
                call.first_byte_s = time.monotonic() - call.began_s
            if owning.new_id(call) is not None:
                await owning.give(call, parts)
            await write(call, response, call.taker.feed(piece) if call.taker else piece)
            if call.inbound.gone and call.shared:
                break
    except UpstreamFault as fault:
        broke = fault
    except ConnectionError:
        call.source.leave()
        await _read_on(call, response)
    finally:
        if beats is not None:
            beats.stop()
        parts.metrics.change("streams_in_flight", route, by=-1)
    return await _close_stream(call, response, broke, parts)


async def _read_on(call: Call, response: web.StreamResponse) -> None:
    """The caller left before the first byte: read the answer for its usage all the same."""
    assert call.source is not None
    if call.shared:
        return
    try:
        while piece := await call.source.read():
            await write(call, response, call.taker.feed(piece) if call.taker else piece)
    except UpstreamFault:
        pass


async def _close_stream(
    call: Call, response: web.StreamResponse, broke: UpstreamFault | None, parts: Parts
) -> web.StreamResponse:
    """End the stream so that it does not look complete when it is not."""
    assert call.source is not None
    assert call.match is not None
    meter = call.source.exchange.meter
    if isinstance(broke, TooSlow):
        # The answer may have come to its end for others: here it must not look as if it had.
        raise ConnectionResetError("the caller reads too slowly") from broke
    if call.taker is not None:
        await write(call, response, call.taker.close())
    if call.inbound.gone:
        parts.metrics.count("stream_aborts_total", call.match.route.name, "client")
        raise ConnectionResetError("the caller left")
    if meter is not None and not meter.terminal:
        side = "proxy" if call.source.exchange.ending is Ending.PROXY_STOPPED else "upstream"
        parts.metrics.count("stream_aborts_total", call.match.route.name, side)
        stopped = call.source.exchange.ending is Ending.PROXY_STOPPED
        sentence = STOPPED_SENTENCE if stopped else BROKE_SENTENCE
        await write(call, response, meter.ending(sentence, rpc_id=call.rpc_id or b"null"))
    elif broke is not None and meter is None:
        raise ConnectionResetError("the gateway broke off in the middle of an answer") from broke
    if not call.inbound.gone:
        await response.write_eof()
    return response


class _Heartbeat:
    """Reads the pieces of an answer, and a comment line in silences between two events."""

    def __init__(self, call: Call, every_s: float) -> None:
        self._call: Final = call
        self._every_s: Final = every_s
        self._pending: asyncio.Task[bytes] | None = None

    async def read(self) -> bytes:
        assert self._call.source is not None
        while True:
            self._pending = self._pending or asyncio.get_running_loop().create_task(self._call.source.read())
            await asyncio.wait([self._pending], timeout=self._every_s)
            if self._pending.done():
                done, self._pending = self._pending, None
                return done.result()
            if _between_events(self._call):
                return HEARTBEAT

    def stop(self) -> None:
        if self._pending is not None:
            self._pending.cancel()


def _between_events(call: Call) -> bool:
    meter = call.source.exchange.meter if call.source is not None else None
    # In a shared exchange the meter runs ahead of this reader, so its place says nothing about ours.
    return meter is not None and not call.shared and meter.at_boundary
