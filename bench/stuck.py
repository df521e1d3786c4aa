"""Callers that hold a server up: silent, half a head, a body byte by byte, and a stream that nobody reads."""

import asyncio
import socket
from functools import partial
from typing import Final, cast

from bench.load import Target, question

ENDLESS: Final = question(stream="events=1000 every_ms=0 hold_s=0 bytes=8000")
"""A stream of 8 MB: more than all buffers on its way hold."""


class Stuck(asyncio.Protocol):
    """One connection that says so much and reads nothing."""

    def __init__(self, said: bytes, slow: bytes = b"") -> None:
        """said: at once. slow: then, a byte every half second."""
        self._said: Final = said
        self._slow: Final = slow
        self._at = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.pause_reading()
        self.transport.write(self._said)
        if self._slow:
            self._drip()

    def _drip(self) -> None:
        if not self.transport.is_closing() and self._at < len(self._slow):
            self.transport.write(self._slow[self._at : self._at + 1])
            self._at += 1
            asyncio.get_running_loop().call_later(0.5, self._drip)


def _same(protocol: Stuck) -> Stuck:
    return protocol


async def stick(target: Target, each: int) -> list[Stuck]:
    """So many of each kind; they stay until their transports are closed."""
    whole = target.post(question())
    head, _, body = whole.partition(b"\r\n\r\n")
    made: list[Stuck] = []
    for _ in range(each):
        for protocol in (
            Stuck(b""),
            Stuck(head[:40]),
            Stuck(head + b"\r\n\r\n", slow=body),
            Stuck(target.post(ENDLESS)),
        ):
            sock = socket.socket()
            sock.setblocking(False)
            # Small, so that what is not read stays with the server.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(sock, ("127.0.0.1", target.port))
            await loop.create_connection(partial(_same, protocol), sock=sock)
            made.append(protocol)
    return made
