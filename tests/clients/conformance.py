"""The suite that the official conformance runner asks for, as far as a stateless server of tools can have it."""

import base64
from typing import Any, Final

import orjson
from aiohttp import web

PNG: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 24).decode()
WAV: Final = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt ").decode()
TEXT: Final = {"type": "text", "text": "This is a simple text response for testing."}
IMAGE: Final = {"type": "image", "data": PNG, "mimeType": "image/png"}
RESOURCE: Final = {
    "type": "resource",
    "resource": {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    },
}
SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}

# fmt: off
RESULTS: Final[dict[str, dict[str, Any]]] = {
    "test_simple_text":            {"content": [TEXT]},
    "test_image_content":          {"content": [IMAGE]},
    "test_audio_content":          {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]},
    "test_embedded_resource":      {"content": [RESOURCE]},
    "test_multiple_content_types": {"content": [{"type": "text", "text": "Multiple content types test:"}, IMAGE, RESOURCE]},
    "test_error_handling":         {"content": [{"type": "text", "text": "This tool intentionally returns an error for testing"}], "isError": True},
    "test_tool_with_progress":     {"content": [TEXT]},
    "test_tool_with_logging":      {"content": [TEXT]},
    "json_schema_2020_12_tool":    {"content": [TEXT]},
    "test_logging_tool":           {"content": [TEXT]},
    "test_streaming_elicitation":  {"content": [TEXT]},
    "test_marked_argument":        {"content": [TEXT]},
}
SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "json_schema_2020_12_tool": SCHEMA,
    "test_marked_argument": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
}
# fmt: on
LOGGED: Final = ("Tool execution started", "Tool processing data", "Tool execution completed")


def tools() -> list[dict[str, Any]]:
    plain = {"type": "object", "properties": {}}
    return [
        {
            "name": name,
            "description": name.replace("_", " "),
            "inputSchema": SCHEMAS.get(name, plain),
        }
        for name in RESULTS
    ]


async def rpc(request: web.Request) -> web.Response:
    """One JSON-RPC request; what comes before its answer goes out as events of the same stream."""
    body = orjson.loads(await request.read())
    if "id" not in body:
        return web.Response(status=202)
    before: list[dict[str, Any]] = []
    params = body.get("params") or {}
    match body["method"]:
        case "initialize":
            info = {"name": "fixture", "version": "1"}
            version = params.get("protocolVersion", "2025-11-25")
            said: dict[str, Any] = {
                "result": {"protocolVersion": version, "capabilities": {"tools": {}, "logging": {}}, "serverInfo": info}
            }
        case "ping" | "logging/setLevel":
            said = {"result": {}}
        case "tools/list":
            said = {"result": {"tools": tools()}}
        case "tools/call" if params.get("name") in RESULTS:
            before, said = _before(params), {"result": RESULTS[params["name"]]}
        case method:
            said = {"error": {"code": -32601, "message": f"Method not found: {method}"}}
    messages = [*before, {"jsonrpc": "2.0", "id": body["id"], **said}]
    stream = b"".join(b"event: message\ndata: " + orjson.dumps(message) + b"\n\n" for message in messages)
    return web.Response(body=stream, content_type="text/event-stream")


def _before(params: dict[str, Any]) -> list[dict[str, Any]]:
    if params["name"] == "test_streaming_elicitation":
        # A question to the client within the call, of which a later revision has none.
        return [{"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Well?"}}]
    if params["name"] in ("test_tool_with_logging", "test_logging_tool"):
        return [_notified("message", level="info", data=text) for text in LOGGED]
    token = (params.get("_meta") or {}).get("progressToken")
    if params["name"] == "test_tool_with_progress" and token is not None:
        return [_notified("progress", progressToken=token, progress=done, total=100) for done in (0, 50, 100)]
    return []


def _notified(what: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"notifications/{what}", "params": params}


def app() -> web.Application:
    served = web.Application()
    served.router.add_post("/v1/gateway/mcp/fixture/", rpc)
    return served
