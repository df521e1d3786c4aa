"""The gateway as our sending code sees it: one request out, one answer in, and three ways of failing.

Targets go out as they came: nothing is decoded, normalised, followed or repeated. What the library raises becomes one
of three faults here, because they cost differently: what was never sent is free, what broke or fell silent may be
charged.

Of the library this uses the connections, their pool and the parser. Its session would add cookies, redirects, proxies
and a second try, none of which may happen here, and takes three times as long for a call.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage, StreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from yarl import URL

from proxy.core.ledger import Ending
from proxy.server.departure import Departure

STREAM_LIMIT: Final = 64 * 1024
"""Bytes the library buffers of one answer before it stops reading from the gateway."""

PIECE: Final = 512 * 1024
"""Bodies above this go out in pieces of this size, so that one of 25 MB does not hold up every other call."""


class UpstreamFault(Exception):
    """The gateway gave no whole answer; `ending` says what that means for the books."""

    ending: Ending


class NeverSent(UpstreamFault):
    """No connection came about, so nothing was sent."""

    ending = Ending.NEVER_SENT


class TimedOut(UpstreamFault):
    """The gateway fell silent after the request was sent."""

    ending = Ending.TIMED_OUT


class Broke(UpstreamFault):
    """The connection or the answer broke after the request was sent."""

    ending = Ending.UPSTREAM_BROKE


class Abandoned(UpstreamFault):
    """We stopped reading: the caller left, and the bounds of reading on were met."""

    ending = Ending.CALLER_LEFT


class TooSlow(UpstreamFault):
    """Not the gateway's fault: this reader of a shared answer did not read, and others waited for it."""

    ending = Ending.CALLER_LEFT


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as the gateway gets it. target: path and query, already encoded, below the base URL."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Patience:
    """How long we wait for the gateway's next byte: one timer a call, which looks how long we have been waiting.

    The library's own timer is made anew with every piece that arrives, which a stream of events pays for each of them.
    """

    __slots__ = ("_end", "_loop", "_silence_s", "_timer", "since_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, silence_s: float, end: Callable[[Exception], object]) -> None:
        """silence_s: longest silence.      end: told once, when it lasted longer."""
        self._loop: Final = loop
        self._silence_s: Final = silence_s
        self._end = end
        self.since_s: float | None = None
        """Since when we wait; None: what happens now is no silence of the gateway's."""
        self._timer: asyncio.TimerHandle | None = loop.call_later(silence_s, self._look)

    def tells(self, end: Callable[[Exception], object]) -> None:
        """Somebody else is told from now on."""
        self._end = end

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        waited_s = 0.0 if self.since_s is None else time.monotonic() - self.since_s
        if waited_s < self._silence_s:
            self._timer = self._loop.call_later(self._silence_s - waited_s, self._look)
            return
        self._timer = None
        self._end(aiohttp.SocketTimeoutError("the gateway fell silent"))


class Answer:
    """An answer whose head has arrived; the body is read piece by piece."""

    __slots__ = (
        "_connection", "_content", "_patience", "_writing", "content_length", "content_type", "headers", "is_stream",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        message: RawResponseMessage,
        content: StreamReader,
        patience: Patience,
        writing: "asyncio.Future[None] | None" = None,
    ) -> None:
        """writing: what still sends the request's body, where the gateway answered before it had all of it."""
        self._connection = connection
        self._content = content
        self._patience = patience
        self._writing = writing
        self.status: Final = message.code
        self.headers: Final = tuple(message.headers.items())
        self.content_type: Final = message.headers.get("Content-Type", "")
        self.is_stream: Final = self.content_type.lower().startswith("text/event-stream")
        length = message.headers.get("Content-Length")
        # A length says nothing about what is left of a body once the library has opened its encoding.
        self.content_length: Final = None if length is None or "Content-Encoding" in message.headers else int(length)
        patience.tells(content.set_exception)
        content.on_eof(self._give_back)

    async def read(self) -> bytes:
        """What has arrived since the last call, at least one byte; `b""` at the end. Raises UpstreamFault."""
        self._patience.since_s = time.monotonic()
        try:
            return await self._content.readany()
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            raise TimedOut("the gateway fell silent in the middle of its answer") from error
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            raise Broke("the gateway's answer broke off") from error
        finally:
            self._patience.since_s = None

    def close(self) -> None:
        """Give the connection up, or back when the answer was read to its end."""
        if self._content.at_eof():
            self._give_back()
            return
        if self._content.exception() is None:
            # Whoever waits for the next piece has to hear that there will be none.
            self._content.set_exception(aiohttp.ClientConnectionError("the answer was given up"))
        self._give_up()

    def _give_back(self) -> None:
        self._patience.stop()
        if self._writing is not None and not self._writing.done():
            self._give_up()
        else:
            self._connection.release()

    def _give_up(self) -> None:
        self._patience.stop()
        if self._writing is not None:
            self._writing.cancel()
        self._connection.close()


class Upstream:
    """A pool of connections to one gateway."""

    def __init__(
        self, base: str, *, connect_s: float, read_s: float, keepalive_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        """Open the pool; call it inside a running loop.

        base:        scheme, host, port and path prefix, without a closing slash.
        connect_s:   longest time to connect, in seconds.
        read_s:      longest silence of the gateway, in seconds.
        keepalive_s: how long an idle connection is kept; shorter than the gateway keeps it.
        """
        url = URL(base, encoded=True)
        self._loop: Final = asyncio.get_running_loop()
        # The pool asks a request where to connect to, and that is the same for all of ours.
        self._place: Final = aiohttp.ClientRequest("GET", url, loop=self._loop, ssl=tls or True)
        self._host: Final = self._place.headers["Host"]
        self._prefix: Final = url.raw_path.rstrip("/")
        self._read_s: Final = read_s
        self._timeout: Final = aiohttp.ClientTimeout(total=None, connect=connect_s)
        # No limit: a pool that is full would make streams wait for each other. What limits us are turns.
        self._connector: Final = aiohttp.TCPConnector(limit=0, keepalive_timeout=keepalive_s, ssl=tls or True)

    async def send(self, out: Outgoing, written: Callable[[], None] | None = None) -> Answer:
        """Send a request and wait for the head of its answer. Raises UpstreamFault.

        written: told when the last byte is with the gateway, unless its answer begins before.
        """
        try:
            head = self._head(out)
            connection = await self._connector.connect(self._place, [], self._timeout)
        except (aiohttp.ClientConnectorError, TimeoutError, UnsafeHeader) as error:
            raise NeverSent("the gateway could not be reached") from error
        try:
            return await self._ask(connection, head, out.body, written)
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            connection.close()
            raise TimedOut("the gateway did not begin its answer in time") from error
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            connection.close()
            raise Broke("the gateway closed the connection before its answer began") from error
        except BaseException:
            connection.close()
            raise

    def _head(self, out: Outgoing) -> bytes:
        """Request line and headers. Raises UnsafeHeader."""
        lines = [f"{out.method} {self._prefix}{out.target} HTTP/1.1", f"host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in out.headers.items()]
        if out.body or out.method != "GET":
            lines.append(f"content-length: {len(out.body)}")
        text = "\r\n".join(lines)
        # Callers' headers were judged when they came; this is the last look before bytes that would mean two requests.
        if text.count("\r") != len(lines) - 1 or text.count("\n") != len(lines) - 1 or "\0" in text:
            raise UnsafeHeader
        return text.encode("utf-8", "surrogateescape") + b"\r\n\r\n"

    async def _ask(
        self, connection: Connection, head: bytes, body: bytes, written: Callable[[], None] | None
    ) -> Answer:
        """Send and wait for the head, on a connection that the caller of this closes when it fails."""
        protocol = connection.protocol
        assert protocol is not None
        protocol.set_response_params(read_until_eof=True, read_bufsize=STREAM_LIMIT)
        patience = Patience(self._loop, self._read_s, protocol.set_exception)
        writer = StreamWriter(protocol, self._loop)
        departure = Departure(written)
        writing = None
        try:
            if len(body) <= PIECE:
                await writer.write(head + body, drain=False)
                patience.since_s = time.monotonic()
                departure.begin(writer.transport)
            else:
                # The gateway may refuse a body before it has all of it, so both go on at once.
                writing = self._loop.create_task(_write(writer, head, body, patience, departure))
            while True:
                message, content = await protocol.read()
                if message.code >= 200 or message.code == 101:
                    patience.since_s = None
                    return Answer(connection, message, content, patience, writing)
        except BaseException:
            patience.stop()
            if writing is not None:
                writing.cancel()
            raise
        finally:
            departure.stop()

    async def close(self) -> None:
        """Close every connection."""
        await self._connector.close()
        # The library closes TLS transports one turn of the loop later.
        await asyncio.sleep(0)


class UnsafeHeader(ValueError):
    """A line break where none may be; nothing was sent."""


async def _write(writer: StreamWriter, head: bytes, body: bytes, patience: Patience, departure: Departure) -> None:
    """Send a large body. A connection that breaks meanwhile tells its reader, so nobody has to be told here."""
    with contextlib.suppress(aiohttp.ClientError, OSError):
        await writer.write(head)
        rest = memoryview(body)
        for at in range(0, len(rest), PIECE):
            await writer.write(rest[at : at + PIECE])
            await writer.drain()
        patience.since_s = time.monotonic()
        departure.begin(writer.transport)
