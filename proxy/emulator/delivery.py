"""Performing a script on a connection: the only place of the emulator that writes to callers."""

import asyncio
import socket
import struct
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import assert_never

from aiohttp import web

from proxy.emulator.journal import Journal, Seen
from proxy.emulator.script import Close, End, Gate, Hang, Head, Pause, Raw, Reset, Script, Send


class Gates:
    """Named gates that hold answers back. A gate opens once and stays open until the reset."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._open: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.waiting: Counter[str] = Counter()

    def open(self, name: str) -> None:
        self._open[name].set()

    def reset(self) -> None:
        """Let everyone through and close all gates again."""
        for event in self._open.values():
            event.set()
        self._open.clear()

    async def wait(self, name: str) -> None:
        self.waiting[name] += 1
        self._ring()
        try:
            await self._open[name].wait()
        finally:
            self.waiting[name] -= 1


class Gone(web.StreamResponse):
    """Stands for an answer that was never begun: the server must not write one of its own."""

    async def prepare(self, request: web.BaseRequest) -> None:
        raise ConnectionResetError(f"{request.method} was answered past HTTP")


async def deliver(
    request: web.BaseRequest, script: Script, seen: Seen, gates: Gates, journal: Journal
) -> web.StreamResponse:
    """Perform the script; the journal learns what reached the socket and who left early."""
    response: web.StreamResponse = Gone()
    try:
        for step in script:
            match step:
                case Head():
                    seen.status = step.status
                    response = await _begun(request, step)
                case Send():
                    await response.write(step.data)
                    seen.answered_bytes += len(step.data)
                case Raw():
                    _transport(request).write(step.data)
                    seen.answered_bytes += len(step.data)
                case Pause():
                    await asyncio.sleep(step.seconds)
                case Gate():
                    await gates.wait(step.name)
                case Hang():
                    await asyncio.Event().wait()
                case Reset():
                    _reset(_transport(request))
                case Close():
                    _transport(request).close()
                case End():
                    await response.write_eof()
                case _:
                    assert_never(step)
            journal.ring()
    except ConnectionError:
        seen.caller_gone = True
    else:
        seen.finished = True
    finally:
        journal.ring()
    return response


async def _begun(request: web.BaseRequest, head: Head) -> web.StreamResponse:
    response = web.StreamResponse(status=head.status)
    response.headers["Server"] = "emulated-gateway"
    for name, value in head.headers:
        response.headers.add(name, value)
    if head.length is not None:
        response.content_length = head.length
    elif request.version >= (1, 1):
        response.enable_chunked_encoding()
    await response.prepare(request)
    return response


def _transport(request: web.BaseRequest) -> asyncio.Transport:
    if request.transport is None or request.transport.is_closing():
        raise ConnectionResetError("the caller has gone")
    return request.transport


def _reset(transport: asyncio.Transport) -> None:
    """Close with RST, so that the caller sees a fault of the network and not an early end."""
    if (sock := transport.get_extra_info("socket")) is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
