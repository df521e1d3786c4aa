"""MCP calls that never reach a suite: notifications, answers, `ping`, the newer revision's probe, batches.

Suites are stateless and of the older era. A notification they refuse would end a client's session, and a probe they
cannot read would draw on the limits for nothing.
"""

from aiohttp import web

from proxy.core import jsonrpc
from proxy.mcp import newer
from proxy.server import replies
from proxy.server.call import Call
from proxy.server.parts import Parts


def answer(call: Call, parts: Parts) -> web.Response | None:
    """The answer to what stays here; None for what goes to the suite."""
    said = call.mcp
    assert said is not None
    if said.is_batch:
        body = jsonrpc.error(
            None, jsonrpc.INVALID_REQUEST, "Batches are not taken; send one JSON-RPC message a request."
        )
        return replies.local_json(call, parts, 400, body)
    if said.id is None or said.is_response:
        parts.cancelling.take_back(call, parts.wall())
        # 202 without a body: a notification gets no answer, and an answer neither.
        return replies.local_json(call, parts, 202, b"")
    if newer.bridged(call):
        if (here := newer.answer(call, parts)) is not None:
            return here
    elif newer.asks_newer(call):
        return replies.local_json(call, parts, 400, jsonrpc.unsupported_version(said.id, said.version))
    if said.method == "ping":
        return replies.local_json(call, parts, 200, jsonrpc.result(said.id, {}))
    parts.cancelling.began(call)
    return None
