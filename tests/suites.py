"""A gateway that has tool suites and nothing else, for what the emulated one never does: new tools, bad lists, progress."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def call(name: str, number: Any = 1, /, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def listing(number: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": params}


@dataclass
class Suites:
    """tools: by suite.      raw: bodies to be sent as they are, by suite, once each; statuses: what refuses every call.

    slow: answers by suite, once each, piece by piece; an event among the pieces is waited for.
    progress: what the answer to each call says before its result.
    left: suites whose caller has gone before the end of a slow answer.
    asked, headers: suite, body and header of every POST, in order.      result: of every call, with its number added where counted.
    """

    url: str = ""
    tools: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    raw: dict[str, list[bytes]] = field(default_factory=dict)
    slow: dict[str, list[Sequence[bytes | asyncio.Event]]] = field(default_factory=dict)
    progress: Sequence[float] = ()
    left: list[str] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    pages: int = 0
    result: dict[str, Any] = field(default_factory=lambda: {"content": []})
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        return [f"{suite} {body['method']}" for suite, body in self.asked]

    async def list_suites(self, _request: web.Request) -> web.Response:
        entries = [{"name": name, "description": name} for name in self.tools]
        return web.json_response({"object": "list", "data": entries})

    async def rpc(self, request: web.Request) -> web.StreamResponse:
        suite, body = request.match_info["suite"], orjson.loads(await request.read())
        self.asked.append((suite, body))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if suite in self.statuses:
            return web.json_response({"detail": "down"}, status=self.statuses[suite])
        if self.raw.get(suite):
            return _stream(self.raw[suite].pop(0))
        if self.slow.get(suite):
            return await self._slowly(request, suite, self.slow[suite].pop(0))
        result = self._listed(suite, body) if body["method"] == "tools/list" else self.result
        said = [*self._progressed(body), {"jsonrpc": "2.0", "id": body["id"], "result": result}]
        return _stream(b"".join(b"event: message\ndata: " + orjson.dumps(one) + b"\n\n" for one in said))

    def _progressed(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        token = body.get("params", {}).get("_meta", {}).get("progressToken")
        steps = self.progress if body["method"] == "tools/call" else ()
        params = [{"progressToken": token, "progress": step} for step in steps]
        return [{"jsonrpc": "2.0", "method": "notifications/progress", "params": one} for one in params]

    async def _slowly(
        self, request: web.Request, suite: str, pieces: Sequence[bytes | asyncio.Event]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            for piece in pieces:
                if isinstance(piece, bytes):
                    await response.write(piece)
                else:
                    await piece.wait()
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.append(suite)
            raise
        await response.write_eof()
        return response

    def _listed(self, suite: str, body: dict[str, Any]) -> dict[str, Any]:
        tools = self.tools[suite]
        if not self.pages:
            return {"tools": tools}
        at = int(body.get("params", {}).get("cursor", "0"))
        more = {"nextCursor": str(at + self.pages)} if at + self.pages < len(tools) else {}
        return {"tools": tools[at : at + self.pages], **more}


def _stream(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="text/event-stream")


@asynccontextmanager
async def suites(**tools: list[dict[str, Any]]) -> AsyncIterator[Suites]:
    """The gateway, on a port of the system's choosing."""
    gateway = Suites(tools=dict(tools))
    app = web.Application()
    app.router.add_get("/v1/gateway/mcp/", gateway.list_suites)
    app.router.add_post("/v1/gateway/mcp/{suite}/", gateway.rpc)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    gateway.url = f"http://127.0.0.1:{site.port}"
    try:
        yield gateway
    finally:
        await runner.cleanup()
