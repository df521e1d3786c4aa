"""Requests known by all their bytes: the shortest road to a stored answer, on which nothing is parsed again.

A repeat of a request that was answered from memory is decided as any other: whose key it is, under which policy, and
whether the answer is still fresh, are asked each time. Only what follows from the bytes alone is remembered. Whatever
does not fit is not answered here, and goes through all stages.
"""

from collections.abc import Sequence

from proxy.errors import ProxyError
from proxy.server import hits, identify, recall, record
from proxy.server.call import Call
from proxy.server.ids import request_id
from proxy.server.inbound import Given
from proxy.server.parts import Parts
from proxy.server.whole import date_of, head_of


def answer(sent: bytes, parts: Parts) -> Sequence[bytes]:
    """The whole answer to a request, as head and body; nothing where it is not known or has to go all the way."""
    seen = parts.repeats.get(sent)
    if seen is None or parts.state.draining:
        return ()
    inbound = Given(seen.method, seen.target, seen.headers)
    call = Call(request_id(inbound.header("x-request-id")), inbound, parts.state.policy, parts.wall())
    call.head, call.stage = seen.head, "recall"
    call.led(seen.match)
    try:
        identify.identified(call, parts)
    except ProxyError:
        return ()
    assert call.team is not None
    call.place = (call.team.name, call.gateway_key, seen.target, seen.shaping, seen.hash)
    entry = recall.remembered(call, seen.digest, parts)
    if entry is None or entry.status != 200:
        return ()
    headers, body = hits.told(call, parts, entry)
    headers["Date"] = date_of(call.at_s)
    head = head_of(200, headers, len(body))
    call.status, call.sent_bytes = entry.status, len(body)
    record.began(parts)
    record.soon(call, parts)
    return head, body
