"""A suite's answer in the form its caller takes: the one event as it came, or its JSON alone."""

from proxy.core import jsonrpc
from proxy.core.headers import accepts
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
    rpc_id = call.mcp.id if call.mcp is not None and call.mcp.id is not None else b"null"
    message = jsonrpc.unwrap(body) if answer.is_stream else body
    told = None if message is None else jsonrpc.with_id(message, rpc_id)
    if told is None:
        told = jsonrpc.error(rpc_id, UPSTREAM, "The tool suite's answer holds no JSON-RPC message.", {"reason": "upstream_broken"})
    json_ok, _ = accepts(call.inbound.header("accept"))
    return (told, JSON) if json_ok else (b"event: message\ndata: " + told.replace(b"\n", b" ") + b"\n\n", STREAM)
