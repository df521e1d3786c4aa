"""Connections to the gateway: kept open between calls, each with the patience for its silence.

Of the library this uses the connecting, the protocol and the parser. What it would do for each call besides (a look at
its pool, a guard around the connection, a parser and a reader for the body) is done here once per connection, or not at
all for an answer that comes whole.
"""

import asyncio
import functools
import ssl
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from proxy.core.plainanswer import PlainAnswer, Reader

STREAM_LIMIT: Final = 64 * 1024
"""Bytes the library buffers of one answer before it stops reading from the gateway."""


class Patience:
    """How long we wait for the gateway's next byte: one timer a connection, which looks how long we have been waiting.

    The library's own timer is made anew with every piece that arrives, which a stream of events pays for each of them.
    """

    __slots__ = ("_end", "_loop", "_silence_s", "_timer", "since_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, silence_s: float) -> None:
        """silence_s: longest silence."""
        self._loop: Final = loop
        self._silence_s: Final = silence_s
        self._end: Callable[[Exception], object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.since_s: float | None = None
        """Since when we wait; None: what happens now is no silence of the gateway's."""

    def tells(self, end: Callable[[Exception], object]) -> None:
        """Who is told once, when a silence lasted longer."""
        self._end = end
        if self._timer is None:
            self._timer = self._loop.call_later(self._silence_s, self._look)

    def moved(self) -> None:
        """The gateway took some of what it is sent: where we wait for it, the wait begins anew."""
        if self.since_s is not None:
            self.since_s = time.monotonic()

    def rest(self) -> None:
        """No answer is waited for."""
        self._end = self.since_s = None

    def stop(self) -> None:
        """The connection is gone."""
        self.rest()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if (end := self._end) is None:
            return
        waited_s = 0.0 if self.since_s is None else time.monotonic() - self.since_s
        if waited_s < self._silence_s:
            self._timer = self._loop.call_later(self._silence_s - waited_s, self._look)
            return
        end(aiohttp.SocketTimeoutError("the gateway fell silent"))


class Line(ResponseHandler):
    """One connection. An answer that comes whole in its first piece is read at once; any other goes to the parser."""

    def __init__(self, loop: asyncio.AbstractEventLoop, silence_s: float, reader: Reader) -> None:
        super().__init__(loop)
        self.patience: Final = Patience(loop, silence_s)
        self._reader: Final = reader
        self._first = False  # what comes next is the first piece of an answer
        self._at_rest = False  # nobody waits for an answer
        self.connection: Connection
        """The library's guard of it, by which it is closed."""

    @property
    def usable(self) -> bool:
        """Whether a request may go out on it, after one before it was answered to its end."""
        transport = self.transport
        return transport is not None and not transport.is_closing() and not self.should_close

    def ask(self, request: bytes, *, streams: bool = False) -> None:
        """A request goes out, or the beginning of one. Raises ClientConnectionResetError.

        streams: its answer will hardly come whole.
        """
        if (transport := self.transport) is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the connection is gone")
        self._first, self._at_rest = True, False
        self.patience.tells(self.set_exception)
        self.patience.since_s = time.monotonic()
        transport.write(request)
        if streams:
            # While the gateway thinks, so that nobody waits for it.
            self._parse()

    async def say(self, piece: bytes | memoryview) -> None:
        """More of the request, as fast as the gateway takes it. Raises ClientConnectionResetError."""
        if (transport := self.transport) is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the connection is gone")
        transport.write(piece)
        await self._drain_helper()
        self.patience.moved()

    def answered(self) -> Coroutine[None, None, PlainAnswer | tuple[RawResponseMessage, StreamReader]]:
        """The next answer, or the next head and where its body is read. Raises the library's errors."""
        return self.read()

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer; what nobody asked for closes the connection."""
        if not data:
            # The library's own: whoever reads an answer asks its parser for what it may have kept back.
            super().data_received(data)
            return
        if self._at_rest:
            # The parser of the answer before might take them for the beginning of the next one.
            self.close()
            return
        if self._first:
            self._first = False
            if (answer := self._reader.plain(data)) is not None:
                # `answered` tells which of the two it is.
                self.feed_data(answer)  # type: ignore[arg-type]
                return
            self._parse()
        super().data_received(data)

    def _parse(self) -> None:
        """The parser reads what comes."""
        self._first = False
        self.set_response_params(read_until_eof=True, read_bufsize=STREAM_LIMIT)

    def rest(self) -> None:
        """Its answer was read to the end; the next bytes are those of another one, once it was asked for."""
        self._at_rest = True
        self.patience.rest()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is gone, for whatever reason."""
        self.patience.stop()
        super().connection_lost(exc)


class _Connector(aiohttp.TCPConnector):
    """The library's connecting, with our protocol. No limit: what limits calls are turns."""

    def __init__(self, silence_s: float, tls: ssl.SSLContext | None) -> None:
        super().__init__(limit=0, ssl=tls or True)
        self._factory = functools.partial(Line, self._loop, silence_s, Reader())  # type: ignore[assignment]


class Lines:
    """The connections to one gateway, those in use and those at rest."""

    def __init__(
        self, url: URL, *, connect_s: float, silence_s: float, keepalive_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        """Call it inside a running loop. silence_s: longest silence.  keepalive_s: how long one may be at rest."""
        self._loop: Final = asyncio.get_running_loop()
        self._connector: Final = _Connector(silence_s, tls)
        # The library asks a request where to connect to, and that is the same for all of ours.
        self._place: Final = aiohttp.ClientRequest("GET", url, loop=self._loop, ssl=tls or True)
        self._timeout: Final = aiohttp.ClientTimeout(total=None, connect=connect_s)
        self._keepalive_s: Final = keepalive_s
        self._resting: Final[deque[tuple[Line, float]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def host(self) -> str:
        """The Host header of every request."""
        return self._place.headers["Host"]

    def rested(self) -> Line | None:
        """The connection that was used last, if there is one that may be used again."""
        while self._resting:
            line, since_s = self._resting.pop()
            if line.usable and time.monotonic() - since_s < self._keepalive_s:
                return line
            line.connection.close()
        return None

    async def opened(self) -> Line:
        """A new connection. Raises ClientConnectorError and TimeoutError."""
        connection = await self._connector.connect(self._place, [], self._timeout)
        line = connection.protocol
        assert isinstance(line, Line)
        line.connection = connection
        return line

    def give_back(self, line: Line) -> None:
        """An answer was read to its end."""
        line.rest()
        if not line.usable:
            line.connection.close()
            return
        self._resting.append((line, time.monotonic()))
        if self._timer is None:
            self._timer = self._loop.call_later(self._keepalive_s, self._close_old)

    def _close_old(self) -> None:
        self._timer = None
        before_s = time.monotonic() - self._keepalive_s
        while self._resting and self._resting[0][1] <= before_s:
            self._resting.popleft()[0].connection.close()
        if self._resting:
            self._timer = self._loop.call_later(self._resting[0][1] - before_s, self._close_old)

    async def close(self) -> None:
        """Close every connection."""
        if self._timer is not None:
            self._timer.cancel()
        for line, _ in self._resting:
            # The library waits for those that are given back.
            line.connection.release()
        self._resting.clear()
        await self._connector.close()
        # The library closes TLS transports one turn of the loop later.
        await asyncio.sleep(0)
