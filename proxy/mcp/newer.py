"""A bridge for clients of the revision 2026-07-28 to suites of the older era, where the policy wants one."""

from urllib.parse import unquote

from aiohttp import web

from proxy import __version__
from proxy.core import jsonrpc
from proxy.core.newer import GONE, SERVER_INFO, SUPPORTED, is_newer, lifted, problem, status_of
from proxy.core.policy import McpNewer
from proxy.server import replies
from proxy.server.call import Call
from proxy.server.parts import Parts


def bridged(call: Call) -> bool:
    """Whether a request is of the newer revision and the policy has it served."""
    return call.policy.mcp_newer is McpNewer.BRIDGE and asks_newer(call)


def asks_newer(call: Call) -> bool:
    """Whether a request says, in body or header, that it is of the newer revision."""
    assert call.mcp is not None
    named = call.mcp.version or call.inbound.header("mcp-protocol-version")
    return call.mcp.method == "server/discover" or is_newer(named)


def takes_back_by_leaving(call: Call) -> bool:
    """Whether a caller that closes its connection has cancelled the call, as only this revision says."""
    return call.mcp is not None and bridged(call)


def answer(call: Call, parts: Parts) -> web.Response | None:
    """The answer to what is wrong, or to what this proxy knows itself; None for what goes to a suite."""
    said = call.mcp
    assert said is not None
    assert call.match is not None
    wrong = problem(call.body, call.inbound.header_lines)
    if wrong is not None:
        return told(call, parts, jsonrpc.error(said.id, wrong.code, wrong.message, wrong.data))
    if said.method == "server/discover":
        suite = call.match.values.get("suite")
        info = {"name": unquote(suite) if suite else "sluicegate", "version": __version__}
        found = {
            "supportedVersions": SUPPORTED,
            "capabilities": {"tools": {"listChanged": False}, "logging": {}},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {SERVER_INFO: info},
        }
        return told(call, parts, jsonrpc.result(said.id, found))
    if said.method in GONE or (said.method or "").startswith("subscriptions/"):
        sentence = f"Method not found: {said.method}"
        return told(call, parts, jsonrpc.error(said.id, jsonrpc.METHOD_NOT_FOUND, sentence))
    return None


def told(call: Call, parts: Parts, message: bytes) -> web.Response:
    """An answer of our own with the status that goes with it."""
    return replies.local_json(call, parts, status_of(message), message)


def lift(call: Call, message: bytes, kept_s: float) -> tuple[bytes, int]:
    """A suite's answer and its status, for the revision of the caller. kept_s: how long the answer is kept here."""
    if not bridged(call) or call.mcp is None:
        return message, 200
    return lifted(message, call.mcp.method, kept_s), status_of(message)
