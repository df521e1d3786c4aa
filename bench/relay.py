"""What the library alone costs: a relay without any of the product, and a server that answers fixed bytes.

`python -m bench.relay PORT GATEWAY_PORT` relays with aiohttp's own server and client on uvloop; without the second port
every request gets the same bytes. Both are as quick as the library allows: below its application layer, no log, no
limits.
"""

import asyncio
import sys
from typing import Final

import aiohttp
import uvloop
from aiohttp import web

from bench.gateway import COMPLETION

HOP_BY_HOP: Final = frozenset({"host", "content-length", "connection", "transfer-encoding", "keep-alive"})
PASSED: Final = ("Content-Type", "Cache-Control")


async def fixed(request: web.BaseRequest) -> web.StreamResponse:
    """The same answer to everything, once the request was read."""
    await request.read()
    return web.Response(body=COMPLETION, content_type="application/json")


class Relay:
    """Passes requests on and answers back, as they come."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session: Final = session
        self._base: Final = base

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Relay one request."""
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        body = await request.read()
        async with self._session.request(
            request.method, self._base + request.raw_path, data=body, headers=headers, allow_redirects=False
        ) as answer:
            passed = {name: answer.headers[name] for name in PASSED if name in answer.headers}
            if answer.content_length is not None:
                return web.Response(status=answer.status, body=await answer.read(), headers=passed)
            response = web.StreamResponse(status=answer.status, headers=passed)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response


async def serve(port: int, gateway_port: int | None) -> None:
    """Answer on a port of the loopback until killed."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=None)
    ) as session:
        handler = fixed if gateway_port is None else Relay(session, f"http://127.0.0.1:{gateway_port}").answer
        server = await asyncio.get_running_loop().create_server(
            web.Server(handler, access_log=None), "127.0.0.1", port, backlog=4096
        )
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))
