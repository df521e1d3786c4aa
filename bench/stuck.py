"""Callers that hold a server up: silent, half a head, a body byte by byte, and a stream that nobody reads."""

import asyncio
import socket
from types import TracebackType
from typing import Final, Self

from bench.load import Target, question

ENDLESS: Final = question(stream="events=1000 every_ms=0 hold_s=0 bytes=8000")
"""A stream of 8 MB: more than all buffers on its way hold."""


class Stuck:
    """Connections of all four kinds, bare sockets so that nothing reads from them; gone at the end of the block."""

    def __init__(self, target: Target, each: int) -> None:
        """each: how many of every kind."""
        self._target: Final = target
        self._each: Final = each
        self._sockets: Final[list[socket.socket]] = []
        self._slow: Final[list[socket.socket]] = []
        self._dripping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        whole = self._target.post(question())
        head, _, body = whole.partition(b"\r\n\r\n")
        slow = head + b"\r\n\r\n"
        for _ in range(self._each):
            for said in (b"", head[:40], slow, self._target.post(ENDLESS)):
                connected = await self._connected()
                connected.send(said)
                if said is slow:
                    self._slow.append(connected)
        self._dripping = asyncio.get_running_loop().create_task(self._drip(body))
        return self

    async def _connected(self) -> socket.socket:
        sock = socket.socket()
        self._sockets.append(sock)
        sock.setblocking(False)
        # Small, so that what is not read stays with the server.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self._target.port))
        return sock

    async def _drip(self, body: bytes) -> None:
        for at in range(len(body) - 1):
            await asyncio.sleep(0.5)
            for sock in list(self._slow):
                try:
                    sock.send(body[at : at + 1])
                except OSError:
                    self._slow.remove(sock)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._dripping is not None:
            self._dripping.cancel()
        for sock in self._sockets:
            sock.close()
