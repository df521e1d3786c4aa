"""A suite's answer in the form its caller takes: the one event as it came, or its JSON alone."""

import orjson

from proxy.core import jsonrpc
from proxy.core.headers import accepts
from proxy.core.sse import Event, Reader
from proxy.errors import UPSTREAM
from proxy.server.call import Call
from proxy.server.upstream import Answer

JSON = "application/json"
STREAM = "text/event-stream"


def takes_stream(call: Call) -> bool:
    """Whether the caller's `Accept` names event streams; one that names nothing gets JSON, which every client reads."""
    named = call.inbound.header("accept")
    json_ok, stream_ok = accepts(named)
    return stream_ok and (not json_ok or (named is not None and STREAM in named))


def adapted(call: Call, answer: Answer, body: bytes) -> tuple[bytes, str]:
    """Body and content type for the caller: JSON with the caller's own id, or one event around it."""
    message: bytes | None = body
    if answer.is_stream:
        reader = Reader(_Kept)
        message = jsonrpc.unwrap(_whole(event) for event in (*reader.feed(body), *reader.close()))
    told = None if message is None else _under_id(message, call.rpc_id)
    if told is None:
        sentence = "The tool suite's answer holds no JSON-RPC message."
        told = jsonrpc.error(call.rpc_id, UPSTREAM, sentence, {"reason": "upstream_broken"})
    json_ok, stream_ok = accepts(call.inbound.header("accept"))
    return (
        (told, JSON)
        if json_ok or not stream_ok
        else (b"event: message\ndata: " + told.replace(b"\n", b" ") + b"\n\n", STREAM)
    )


class _Kept:
    """Keeps the data of an event that the reader would not: this answer is here in full already."""

    def __init__(self) -> None:
        self.data = bytearray()

    def feed(self, piece: bytes) -> None:
        self.data += piece


def _whole(event: Event) -> Event:
    return event._replace(data=bytes(event.sink.data)) if isinstance(event.sink, _Kept) else event


def _under_id(message: bytes, rpc_id: bytes | None) -> bytes | None:
    try:
        tree = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    return jsonrpc.with_id(message, rpc_id) if isinstance(tree, dict) and "jsonrpc" in tree else None
