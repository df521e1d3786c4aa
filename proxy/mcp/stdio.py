"""A bridge for clients that speak MCP over standard input and output: each line is one POST to the proxy, and back.

The proxy keeps no session, so neither does this: a proxy that is restarted is found again with the next line, and a
call that was on its way then is answered with one error.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, BinaryIO, Final

import aiohttp
import orjson

from proxy.core import jsonrpc
from proxy.core.mirrored import repeated
from proxy.core.newer import mirroring
from proxy.core.splice import members
from proxy.core.sse import Event, Reader
from proxy.core.toollist import CALL, LIST, Definition, definitions, page_of
from proxy.errors import UPSTREAM

AT_ONCE: Final = 64
"""Requests under way at once; further lines wait in the pipe."""

AWAY_S: Final = 15.0
"""How long a proxy that does not listen is tried for: a restart takes seconds."""

TRY_EVERY_S: Final = 0.2

LAST_WORDS_S: Final = 30.0
"""How long answers are waited for once the input has ended."""

TOOLS_MAX: Final = 10_000
"""Tools whose marks are remembered; a client is given some hundreds."""

LINE_MAX: Final = 64 * 1024 * 1024
"""Bytes of one line; the proxy takes less."""

Say = Callable[[bytes], None]


async def bridge(url: str, headers: dict[str, str], lines: AsyncIterator[bytes], say: Say) -> None:
    """Answer every line until there are no more. say: writes one message, without the end of its line."""
    # A connection for each request: after a restart of the proxy a kept one would look open, and lose what is sent.
    connector = aiohttp.TCPConnector(force_close=True, limit=AT_ONCE)
    patience = aiohttp.ClientTimeout(total=None, sock_connect=5.0)
    async with aiohttp.ClientSession(connector=connector, timeout=patience, headers=headers) as session:
        await _Bridge(session, url, say).run(lines)


class _Bridge:
    def __init__(self, session: aiohttp.ClientSession, url: str, say: Say) -> None:
        self._session: Final = session
        self._url: Final = url
        self._say: Final = say
        self._running: Final[dict[bytes, asyncio.Task[None]]] = {}
        self._others: Final[set[asyncio.Task[None]]] = set()
        self._room: Final = asyncio.Semaphore(AT_ONCE)
        self._listed: Final[dict[str, Definition]] = {}

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        async for line in lines:
            if line.strip():
                await self._take(line.strip())
        under_way = [*self._running.values(), *self._others]
        if under_way:
            _, late = await asyncio.wait(under_way, timeout=LAST_WORDS_S)
            for task in late:
                task.cancel()

    async def _take(self, line: bytes) -> None:
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            self._say(jsonrpc.error(None, jsonrpc.PARSE_ERROR, "The line is no JSON."))
            return
        if not isinstance(message, dict):
            self._say(jsonrpc.error(None, jsonrpc.INVALID_REQUEST, "One JSON-RPC message a line; no batches."))
            return
        if message.get("method") == "notifications/cancelled":
            self._cancel(message.get("params"))
            return
        await self._room.acquire()
        asks = "method" in message and message.get("id") is not None
        if asks:
            task = asyncio.ensure_future(self._ask(line, message))
            name = orjson.dumps(message["id"])
            self._running[name] = task
            task.add_done_callback(lambda done: self._over(name, done))
        else:
            task = asyncio.ensure_future(self._tell(line))
            self._others.add(task)
            task.add_done_callback(self._others.discard)
        task.add_done_callback(lambda _: self._room.release())

    def _over(self, name: bytes, task: asyncio.Task[None]) -> None:
        if self._running.get(name) is task:
            del self._running[name]

    def _cancel(self, params: Any) -> None:
        """Let go of the connection: a call that waits for its turn leaves the queue, one that was sent is counted."""
        wanted = params.get("requestId") if isinstance(params, dict) else None
        if (task := self._running.get(orjson.dumps(wanted))) is not None:
            task.cancel()

    async def _tell(self, line: bytes) -> None:
        """What needs no answer: notifications, and answers to questions that nobody asked."""
        try:
            async with self._session.post(self._url, data=line) as answer:
                await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass

    def _header(self, message: dict[str, Any]) -> dict[str, str]:
        """What the newer revision has HTTP clients repeat, of which a client of lines knows nothing."""
        lines = mirroring(message)
        if not lines or message["method"] != CALL:
            return lines
        params = message["params"]
        known = self._listed.get(str(params.get("name")))
        return lines | ({} if known is None else repeated(known.mirrors, params.get("arguments")))

    def _learn(self, answer: bytes) -> None:
        page = page_of(answer)
        if page is not None and len(self._listed) < TOOLS_MAX:
            self._listed.update(definitions(page.tools))

    async def _ask(self, line: bytes, asked: dict[str, Any]) -> None:
        # As it was written: a decoder would round an endless number.
        written = members(line)["id"]
        name, answered = line[written.start : written.end], False
        try:
            async for message in self._messages(line, name, self._header(asked)):
                tree = orjson.loads(message)
                if asked["method"] == LIST:
                    self._learn(message)
                answered = answered or (isinstance(tree, dict) and "method" not in tree)
                self._say(message)
            said = "The answer ended before it was whole. The call may have been charged."
        except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError):
            said = f"Nothing listens at {self._url}. Nothing was sent; start the proxy and try again."
        except (aiohttp.ClientError, OSError, TimeoutError):
            said = "The proxy's answer broke off. The call may have been charged."
        if not answered:
            self._say(jsonrpc.error(name, UPSTREAM, said, {"reason": "proxy_unreachable"}))

    async def _messages(self, line: bytes, name: bytes, header: dict[str, str]) -> AsyncIterator[bytes]:
        """Every message of the answer, each in one line."""
        async with await self._post(line, header) as answer:
            if answer.content_type == "text/event-stream":
                reader = Reader(_Long)
                async for piece in answer.content.iter_any():
                    for event in reader.feed(piece):
                        if data := _data(event):
                            yield data
                return
            body = await answer.read()
        try:
            tree = orjson.loads(body)
        except orjson.JSONDecodeError:
            tree = None
        if isinstance(tree, dict) and "jsonrpc" in tree:
            # Refusals that nobody could give an id are still the answer to this line.
            told = body if tree.get("id") is not None else jsonrpc.with_id(body, name)
            yield told.replace(b"\n", b" ").replace(b"\r", b" ")
            return
        error = tree.get("error") if isinstance(tree, dict) else None
        sentence = error.get("message") if isinstance(error, dict) else None
        said = str(sentence or f"The proxy answered {answer.status}.")
        yield jsonrpc.error(name, UPSTREAM, said, {"status": answer.status})

    async def _post(self, line: bytes, header: dict[str, str]) -> aiohttp.ClientResponse:
        """The answer's head; tries again only while nothing was sent."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + AWAY_S
        while True:
            try:
                return await self._session.post(self._url, data=line, headers=header, allow_redirects=False)
            except aiohttp.ClientConnectorError:
                if loop.time() >= until_s:
                    raise
                await asyncio.sleep(TRY_EVERY_S)


class _Long:
    """Keeps the data of a long event: a client of lines needs all of it."""

    def __init__(self) -> None:
        self.data = bytearray()

    def feed(self, piece: bytes) -> None:
        self.data += piece


def _data(event: Event) -> bytes:
    data = bytes(event.sink.data) if isinstance(event.sink, _Long) else event.data
    return data.replace(b"\n", b" ")


async def lines_of(stream: BinaryIO) -> AsyncIterator[bytes]:
    """The lines of a file or pipe, read by a thread that does not keep the process alive."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue(AT_ONCE)

    def read() -> None:
        try:
            while line := stream.readline(LINE_MAX):
                asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(queue.put(b""), loop).result()
        except (RuntimeError, asyncio.CancelledError):
            return  # The loop has ended: nobody reads any more.

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while line := await queue.get():
        yield line
