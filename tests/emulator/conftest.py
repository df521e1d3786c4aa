"""A caller of the emulated gateway: every test here speaks HTTP to a real port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest
from yarl import URL

from proxy.emulator.clock import HandClock
from proxy.emulator.gateway import Gateway, running
from proxy.emulator.options import Options

BOTH = "application/json, text/event-stream"


def pytest_configure(config):
    config.addinivalue_line("markers", "fact(id): this test shows the fact of docs/gateway-facts.md with this id")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self):
        return orjson.loads(self.body)

    @property
    def detail(self):
        return self.json["detail"]

    @property
    def refusal(self):
        """Status and sentence, as the documentation lists them."""
        return self.status, self.detail

    @property
    def events(self):
        """The JSON of all events of a stream, without the end mark."""
        found = [line.removeprefix(b"data: ") for line in self.body.split(b"\n") if line.startswith(b"data: ")]
        return [orjson.loads(data) for data in found if data != b"[DONE]"]


class Api:
    """One emulated gateway with a clock that stands still, and a caller with a key."""

    alpha, alpha_again, beta = "sk-emu-alpha-1", "sk-emu-alpha-2", "sk-emu-beta-1"
    segment = "partner"

    def __init__(self, gateway: Gateway, session: aiohttp.ClientSession, clock: HandClock) -> None:
        self.gateway, self.session, self.clock = gateway, session, clock

    @staticmethod
    @asynccontextmanager
    async def on(**options: Any) -> AsyncIterator["Api"]:
        """Another emulator, with these options."""
        clock = HandClock(1000.0)
        async with (
            running(Options(**options), clock) as gateway,
            aiohttp.ClientSession(auto_decompress=False) as session,
        ):
            yield Api(gateway, session, clock)

    async def call(self, method, path, *, key=alpha, headers=None, **rest) -> Reply:
        given = {"Authorization": f"Bearer {key}"} if key else {}
        url = URL(self.gateway.url + (path if path.startswith("/") else f"/v1/gateway/{path}"), encoded=True)
        everything = {**given, **(headers or {})}
        async with self.session.request(method, url, headers=everything, allow_redirects=False, **rest) as response:
            return Reply(response.status, response.headers, await response.read())

    async def get(self, path, **rest) -> Reply:
        return await self.call("GET", path, **rest)

    async def post(self, path, body, **rest) -> Reply:
        return await self.call("POST", path, json=body, **rest)

    async def chat(self, said="hello", *, key=alpha, headers=None, **fields) -> Reply:
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": said}], **fields}
        return await self.post("chat/completions/", body, key=key, headers=headers)

    async def native(self, said="hello", *, key=alpha, headers=None, **fields) -> Reply:
        given = {"partner-version": "2023-06-01", **(headers or {})}
        messages = [{"role": "user", "content": said}]
        body = {"model": "claude-sonnet-x", "max_tokens": 8000, "messages": messages, **fields}
        return await self.post("partner/v1/messages/", body, key=key, headers=given)

    async def respond(self, said="hello", *, key=alpha, **fields) -> Reply:
        body = {"model": "gpt-4o", "input": [{"role": "user", "content": said}], **fields}
        return await self.post("responses/", body, key=key)

    async def rpc(self, suite, method, params=None, *, ident: Any = 1, key=alpha, headers=None) -> Reply:
        body = {"jsonrpc": "2.0", "id": ident, "method": method, **({"params": params} if params is not None else {})}
        return await self.post(f"mcp/{suite}/", body, key=key, headers={"Accept": BOTH, **(headers or {})})

    async def add(self, a=1, b=2, **rest) -> Reply:
        return await self.rpc("calc", "tools/call", {"name": "add", "arguments": {"a": a, "b": b}}, **rest)

    async def raw(self, data: bytes) -> bytes:
        """What a socket gets back for these very bytes, until the server closes."""
        reader, writer = await asyncio.open_connection(self.gateway.options.host, self.gateway.port)
        writer.write(data)
        try:
            return await reader.read()
        finally:
            writer.close()


@pytest.fixture
async def api():
    async with Api.on() as caller:
        yield caller


@pytest.fixture
def emulated():
    """`async with emulated(credits=Decimal(1)) as api:` is an emulator with options."""
    return Api.on
