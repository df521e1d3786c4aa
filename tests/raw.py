"""HTTP written by hand on a socket, for what no client library would send."""

import asyncio
from dataclasses import dataclass

import orjson


@dataclass(frozen=True)
class RawReply:
    status: int
    head: str
    body: bytes

    @property
    def error(self) -> dict:
        return orjson.loads(self.body)["error"]

    def header(self, name: str) -> str | None:
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None


class Raw:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, address: tuple[str, int]) -> "Raw":
        return cls(*await asyncio.open_connection(*address))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self) -> RawReply:
        """Read one answer: its head, then a body by length, by chunks, or to the end."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        reply = RawReply(int(head.split(" ", 2)[1]), head.rstrip("\r\n"), b"")
        if (length := reply.header("content-length")) is not None:
            return RawReply(reply.status, reply.head, await self.reader.readexactly(int(length)))
        if reply.header("transfer-encoding") == "chunked":
            return RawReply(reply.status, reply.head, await self._chunks())
        if reply.status in (100, 204):
            return reply
        return RawReply(reply.status, reply.head, await self.reader.read())

    async def _chunks(self) -> bytes:
        body = b""
        while True:
            size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
            body += (await self.reader.readexactly(size + 2))[:-2]
            if not size:
                return body

    async def closed(self) -> bool:
        """Wait for the other side to close; True when nothing came before."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True
        finally:
            self.close()

    def close(self) -> None:
        self.writer.transport.abort()
        self.writer.close()


async def exchange(address: tuple[str, int], data: bytes) -> RawReply:
    """Send bytes on a new connection and read one answer."""
    raw = await Raw.open(address)
    try:
        await raw.send(data)
        return await raw.reply()
    finally:
        raw.close()


def request(method: str, target: str, *lines: str, body: bytes = b"", host: str = "127.0.0.1") -> bytes:
    """A well-formed request; a Content-Length is added when there is a body."""
    head = [f"{method} {target} HTTP/1.1", f"Host: {host}", *lines]
    if body:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body
