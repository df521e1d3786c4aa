"""Send: open the exchange and wait for the head of its answer."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from proxy.errors import ProxyError
from proxy.server import pressure, replies
from proxy.server.admit import once_more
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.server.recall import Anew, may_begin_anew
from proxy.server.upstream import Abandoned, Answer, Broke, NeverSent, TimedOut, TooSlow, UpstreamFault

MAY_BE_CHARGED: Final = " The call may have been charged."

_REASONS: Final[Mapping[type[UpstreamFault], tuple[str, str]]] = {
    NeverSent: ("upstream_unreachable", "The gateway could not be reached; nothing was sent. Try again in a moment."),
    TimedOut: ("upstream_timeout", f"The gateway did not answer in time.{MAY_BE_CHARGED}"),
    Broke: ("upstream_broken", f"The gateway's answer broke off.{MAY_BE_CHARGED}"),
    TooSlow: ("upstream_broken", "The answer is shared with other callers, and this one read it too slowly."),
    Abandoned: ("upstream_broken", "The answer was given up because its caller had left."),
}


async def send(call: Call, parts: Parts) -> web.StreamResponse | None:
    """Raises ProxyError for a gateway that gave no answer."""
    assert call.source is not None
    try:
        try:
            answer = await call.source.head()
        except NeverSent as fault:
            answer = await _tried_again(call, fault, parts)
    except UpstreamFault as fault:
        if call.taken_back:
            # It was given up while its hold was written, and is not sent any more.
            return replies.taken_back(call, parts)
        if may_begin_anew(call, parts):
            raise Anew from fault
        raise refused(call, parts, fault) from fault
    call.upstream_status = answer.status
    return None


async def _tried_again(call: Call, why: NeverSent, parts: Parts) -> Answer:
    """The answer's head of a call of which nothing was sent: it is tried once more, as long as it may wait."""
    may_wait = call.waiter is not None and parts.queue.now_s() < call.waiter.deadline_s
    if call.joined or call.unsent or not may_wait or call.inbound.gone or parts.state.draining:
        raise why
    call.unsent = True
    await once_more(call, parts)
    assert call.source is not None
    return await call.source.head()


def refused(call: Call, parts: Parts, fault: UpstreamFault) -> ProxyError:
    """Our error for a fault of the gateway."""
    reason, sentence = _REASONS[type(fault)]
    if isinstance(fault, Abandoned) and parts.state.draining:
        reason, sentence = (
            "draining",
            f"The proxy was stopped while the call was running.{MAY_BE_CHARGED}",
        )
    if isinstance(fault, NeverSent):
        pressure.failed(call, parts)
    if not isinstance(fault, Abandoned):
        # What was given up here is no failure of the gateway.
        parts.metrics.count("upstream_errors_total", call.match.route.name if call.match else "_none", reason)
    # Calls that hold nothing, such as lists, cost nothing.
    return ProxyError(reason, sentence if call.hold is not None else sentence.removesuffix(MAY_BE_CHARGED))
