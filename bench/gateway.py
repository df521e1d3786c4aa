"""A gateway that is never the limit: one protocol, answers made beforehand, no rule of the real one.

The text of the request shapes a stream, so that any proxy carries the wish: `events=200 every_ms=20 hold_s=0 bytes=0`
anywhere in the body means 200 events, 20 ms apart (0: as fast as the peer reads), then that long until the end, each
event filled up with so many bytes. Every event carries `at=` and the monotonic clock in nanoseconds, which on the same
machine tells how long it was on its way.
"""

import asyncio
import json
import re
import sys
import time
from typing import Final, cast

import uvloop

SHAPE: Final = re.compile(rb"events=(\d+) every_ms=(\d+) hold_s=(\d+) bytes=(\d+)")
STREAMED: Final = re.compile(rb'"stream"\s*:\s*true')
LENGTH: Final = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)
KEPT: Final = 64 * 1024
"""Bytes of a body that are kept to look for its wishes; of more, only the number is of interest."""

USAGE: Final = b'"usage":{"prompt_tokens":57,"completion_tokens":150,"total_tokens":207}'
COMPLETION: Final = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"' + b"The mill stands by the river, and the river turns it. " * 12 + b'"'
    b'},"finish_reason":"stop","logprobs":null}],' + USAGE + b"}"
)
ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(COMPLETION) + COMPLETION
)
HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
EVENT: Final = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":'
    b'[{"index":0,"delta":{"content":" at=%020d%b"},"finish_reason":null}]}\n\n'
)
LAST: Final = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":'
    b'[{"index":0,"delta":{},"finish_reason":"stop"}],' + USAGE + b"}\n\n"
)


SUITES, TOOLS = 10, 40
"""Suites, and tools of each."""


def _json_answer(value: object) -> bytes:
    body = json.dumps(value, separators=(",", ":")).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


SUITE_LIST: Final = _json_answer({"data": [{"name": f"suite-{number}"} for number in range(SUITES)]})
TOOL_LIST: Final = _json_answer(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "tools": [
                {
                    "name": f"tool_{number}",
                    "description": "Looks a mill up by the name of its river, and says how many stones it has.",
                    "inputSchema": {
                        "type": "object",
                        "properties": {
                            "river": {"type": "string", "description": "The river's name, as on the map."},
                            "stones": {"type": "integer", "minimum": 1},
                        },
                        "required": ["river"],
                    },
                }
                for number in range(TOOLS)
            ]
        },
    }
)


def chunk(data: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


END: Final = chunk(LAST) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


class Gateway(asyncio.Protocol):
    """One connection; requests on it come one after another."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._head = b""
        self._fixed = ANSWER
        self._body = bytearray()
        self._missing: int | None = None
        self._chunked = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._stream: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not of asyncio's class.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        if self._stream is not None:
            self._stream.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._missing is None and not self._chunked:
            data = self._begin(self._head + data)
        if self._missing is None and not self._chunked:
            return
        if len(self._body) < KEPT:
            self._body += data
        elif self._chunked:
            self._body[:] = self._body[: KEPT - 8] + data[-8:]
        if self._chunked:
            over = self._body.endswith(b"0\r\n\r\n")
        else:
            assert self._missing is not None
            self._missing -= len(data)
            over = self._missing <= 0
        if over:
            self._answer()

    def _begin(self, data: bytes) -> bytes:
        """Read a head; what of its body has come."""
        head, found, rest = data.partition(b"\r\n\r\n")
        if not found:
            self._head = data
            return b""
        self._head = b""
        line = head.partition(b"\r\n")[0]
        self._fixed = ANSWER if b"/mcp/" not in line else SUITE_LIST if line.startswith(b"GET") else TOOL_LIST
        length = LENGTH.search(head)
        self._chunked = CHUNKED.search(head) is not None
        self._missing = None if self._chunked else int(length[1]) if length else 0
        return rest

    def _answer(self) -> None:
        body, self._body, self._missing, self._chunked = bytes(self._body), bytearray(), None, False
        if STREAMED.search(body) is None:
            self._transport.write(self._fixed)
            return
        shape = SHAPE.search(body)
        events, every_ms, hold_s, filled = (int(word) for word in shape.groups()) if shape else (20, 0, 0, 0)
        self._stream = self._loop.create_task(self._tell(events, every_ms / 1000, hold_s, b"." * filled))

    async def _tell(self, events: int, every_s: float, hold_s: float, filling: bytes) -> None:
        self._transport.write(HEAD)
        for _ in range(events):
            self._transport.write(chunk(EVENT % (time.monotonic_ns(), filling)))
            await asyncio.sleep(every_s)
            await self._writable.wait()
        if hold_s:
            await asyncio.sleep(hold_s)
        self._transport.write(END)


async def serve(port: int) -> None:
    """Answer on a port of the loopback until killed."""
    server = await asyncio.get_running_loop().create_server(Gateway, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
