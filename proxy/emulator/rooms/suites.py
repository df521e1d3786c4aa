"""Tool suites over stateless streamable HTTP: one JSON-RPC request in, one event named `message` out."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from proxy.emulator.answers import Answer, Family, event, event_answer, json_answer, refused
from proxy.emulator.assumptions import LISTS_WRAPPED, PAUSE_S, RPC_VERSIONS
from proxy.emulator.messages import (
    BAD_RPC,
    SUITE_ACCEPT,
    SUITE_APP_ONLY,
    SUITE_DISABLED,
    SUITE_PAUSED,
    SUITE_UNKNOWN,
)
from proxy.emulator.tools import SUITES, Access, Suite, ToolError, call_tool
from proxy.emulator.world import Call, World

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
ACCEPTED: Final = ("application/json", "text/event-stream")


Method = Callable[[Suite, Mapping[str, Any]], dict[str, Any]]


class RpcError(Exception):
    """A JSON-RPC error inside a 200."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def listed(_world: World, _call: Call) -> Answer:
    """Suites this key can use; those switched off or meant for the app are left out."""
    entries = [
        {"name": suite.name, "description": suite.description}
        for suite in SUITES.values()
        if suite.access is Access.OPEN
    ]
    return json_answer({"object": "list", "data": entries} if LISTS_WRAPPED else entries)


def rpc(world: World, call: Call) -> Answer:
    _check_accept(call.headers.get("Accept"))
    suite = _suite(world, call.parts["suite"])
    request = _request(call)
    ident, method, params = request["id"], request["method"], request.get("params") or {}
    calls = None
    if method == "tools/call":
        world.reserve_tool(call, suite.name)
        world.suite_answered(suite.name)
        calls = f"mcp:{suite.name}"
    try:
        reply = {"jsonrpc": "2.0", "id": ident, "result": _method(method)(suite, params)}
    except RpcError as error:
        reply = {"jsonrpc": "2.0", "id": ident, "error": {"code": error.code, "message": error.message}}
    return event_answer([event(reply, "message")], Family.SUITE, calls=calls)


def _check_accept(accept: str | None) -> None:
    """Both types must be named; without the header the gateway adds both."""
    if accept is None:
        return
    named = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    if not named.issuperset(ACCEPTED):
        raise refused(SUITE_ACCEPT)


def _suite(world: World, name: str) -> Suite:
    suite = SUITES.get(name)
    if suite is None:
        raise refused(SUITE_UNKNOWN, suite=name)
    if suite.access is Access.APP_ONLY:
        raise refused(SUITE_APP_ONLY, suite=name)
    if suite.access is Access.DISABLED:
        raise refused(SUITE_DISABLED, suite=name)
    left_s = world.paused_for_s(name)
    if left_s > 0:
        raise paused(name, left_s)
    return suite


def paused(suite: str, seconds: int = PAUSE_S) -> Any:
    return refused(SUITE_PAUSED, headers=(("Retry-After", str(seconds)),), suite=suite, n=seconds)


def _request(call: Call) -> dict[str, Any]:
    """The body as one JSON-RPC request with an id; anything else is 400."""
    version = call.headers.get("MCP-Protocol-Version")
    if version is not None and version not in RPC_VERSIONS:
        raise refused(BAD_RPC, why=f"unsupported protocol version {version}")
    try:
        request = orjson.loads(call.body)
    except orjson.JSONDecodeError:
        raise refused(BAD_RPC, why="the body is not JSON") from None
    if not isinstance(request, dict):
        raise refused(BAD_RPC, why="the body is not one object")
    if request.get("jsonrpc") != "2.0" or not isinstance(request.get("method"), str):
        raise refused(BAD_RPC, why="jsonrpc must be 2.0 and method a string")
    ident = request.get("id")
    if isinstance(ident, bool) or not isinstance(ident, int | str):
        raise refused(BAD_RPC, why="id must be a string or an integer")
    if not isinstance(request.get("params") or {}, dict):
        raise refused(BAD_RPC, why="params must be an object")
    return request


def _method(name: str) -> Method:
    if name not in METHODS:
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {name}")
    return METHODS[name]


def _initialize(suite: Suite, params: Mapping[str, Any]) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in RPC_VERSIONS else RPC_VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": suite.name, "version": "1.0.0"},
    }


def _list_tools(suite: Suite, _params: Mapping[str, Any]) -> dict[str, Any]:
    return {"tools": [tool.listed() for tool in suite.tools.values()]}


def _call_tool(suite: Suite, params: Mapping[str, Any]) -> dict[str, Any]:
    tool = suite.tools.get(str(params.get("name")))
    if tool is None:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {params.get('name')}")
    arguments = params.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "arguments must be an object")
    try:
        text, failed = call_tool(tool, arguments), False
    except ToolError as error:
        text, failed = str(error), True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


METHODS: Final[Mapping[str, Method]] = {
    "initialize": _initialize,
    "ping": lambda _suite, _params: {},
    "tools/list": _list_tools,
    "tools/call": _call_tool,
}
