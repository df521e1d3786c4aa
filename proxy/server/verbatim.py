"""Requests known by all their bytes: the shortest road to a stored answer, on which nothing is parsed again.

A repeat of a request that was answered from memory is decided as any other: whose key it is, under which policy, and
whether the answer is still fresh, are asked each time. Only what follows from the bytes alone is remembered. Whatever
does not fit is not answered here, and goes through all stages.
"""

from collections.abc import Mapping, Sequence
from email.utils import formatdate
from functools import lru_cache

from proxy.errors import ProxyError
from proxy.server import hits, identify, recall, record
from proxy.server.call import Call
from proxy.server.ids import request_id
from proxy.server.inbound import Given
from proxy.server.parts import Parts


def answer(sent: bytes, parts: Parts) -> Sequence[bytes]:
    """The whole answer to a request, as head and body; nothing where it is not known or has to go all the way."""
    seen = parts.repeats.get(sent)
    if seen is None or parts.state.draining:
        return ()
    inbound = Given(seen.method, seen.target, seen.headers)
    call = Call(request_id(inbound.header("x-request-id")), inbound, parts.state.policy, parts.wall())
    call.head, call.match, call.stage = seen.head, seen.match, "recall"
    try:
        identify.identified(call, parts)
    except ProxyError:
        return ()
    assert call.team is not None
    call.place = (call.team.name, call.gateway_key, seen.target, seen.shaping, seen.digest)
    entry = recall.remembered(call, parts)
    if entry is None or entry.status != 200:
        return ()
    headers, body = hits.told(call, parts, entry)
    head = _head(headers, len(body), call.at_s)
    call.status, call.sent_bytes = entry.status, len(body)
    record.began(parts)
    record.record(call, parts)
    return head, body


def _head(headers: Mapping[str, str], length: int, at_s: float) -> bytes:
    """Status line and header as the library writes them. Raises ValueError for a line break where none may be."""
    lines = ["HTTP/1.1 200 OK", *[f"{name}: {value}" for name, value in headers.items()]]
    lines += [f"Content-Length: {length}", f"Date: {_date(int(at_s))}"]
    text = "\r\n".join(lines)
    if text.count("\r") != len(lines) - 1 or text.count("\n") != len(lines) - 1:
        raise ValueError("a header line of a stored answer has a line break in it")
    return text.encode() + b"\r\n\r\n"


@lru_cache(maxsize=2)
def _date(at_s: int) -> str:
    return formatdate(at_s, usegmt=True)
