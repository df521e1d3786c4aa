"""The gateway as our sending code sees it: one request out, one answer in, and three ways of failing.

Targets go out as they came: nothing is decoded, normalised, followed or repeated. What the library raises becomes one
of three faults here, because they cost differently: what was never sent is free, what broke or fell silent may be
charged.

Of the library this uses connections and the parser (`lines.py`). Its session would add cookies, redirects, proxies and
a second try, none of which may happen here, and takes three times as long for a call.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import aiohttp
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from yarl import URL

from proxy.core.charges import Ending
from proxy.core.plainanswer import PlainAnswer
from proxy.core.tuples import maker
from proxy.server.departure import Departures
from proxy.server.lines import Line, Lines

PIECE: Final = 512 * 1024
"""Bodies above this go out in pieces of this size, so that one of 25 MB does not hold up every other call."""


EVENTS: Final = "text/event-stream"


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


class Headers(NamedTuple):
    """Header lines of a request that are the same for every call of its kind.

    values:  by lower-case name.
    text:    as they go out.
    streams: events alone are asked for.
    """

    values: Mapping[str, str]
    text: str
    streams: bool


def headers_of(values: Mapping[str, str]) -> Headers:
    """The header lines of these names and values."""
    text = "".join([f"{name}: {value}\r\n" for name, value in values.items()])
    # Callers' headers were judged when they came; this is the last look before bytes that would mean two requests.
    whole = text.count("\r") == text.count("\n") == len(values) and "\0" not in text
    return Headers(values, text if whole else _UNSAFE, values.get("accept") == EVENTS)


_UNSAFE: Final = "\0"
"""Stands for lines with a break in them, which are not sent."""


class Outgoing(NamedTuple):
    """A request as the gateway gets it. target: path and query, already encoded, below the base URL."""

    method: str
    target: str
    headers: Headers
    body: bytes
    request_id: str

    @property
    def all_headers(self) -> dict[str, str]:
        """All that is said of it but host and length, by lower-case name."""
        return {**self.headers.values, "x-request-id": self.request_id}


outgoing: Final[Callable[[tuple[str, str, Headers, bytes, str]], Outgoing]] = maker(Outgoing)
"""A request of all its values, in order."""


class Answer:
    """An answer whose head has arrived; the body is read piece by piece."""

    __slots__ = ("content_length", "content_type", "headers", "is_stream", "status")

    def __init__(
        self, status: int, headers: tuple[tuple[str, str], ...], content_type: str, content_length: int | None
    ) -> None:
        self.status, self.headers, self.content_type, self.content_length = (
            status,
            headers,
            content_type,
            content_length,
        )
        self.is_stream = content_type.lower().startswith(EVENTS)

    async def read(self) -> bytes:
        """What has arrived since the last call, at least one byte; `b""` at the end. Raises UpstreamFault."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the connection up, or back when the answer was read to its end."""
        raise NotImplementedError


class Whole(Answer):
    """One that came whole, so that its connection is at rest already."""

    __slots__ = ("_body",)

    def __init__(self, answer: PlainAnswer) -> None:
        # Not by way of the class above, as nearly every answer is one of these.
        self.status, self.headers, self.content_type, self._body = answer
        self.is_stream, self.content_length = self.content_type.lower().startswith(EVENTS), len(self._body)

    async def read(self) -> bytes:
        """All of it, once."""
        body, self._body = self._body, b""
        return body

    def close(self) -> None:
        """Nothing is left to give back."""


class Coming(Answer):
    """One whose body is still on its way."""

    __slots__ = ("_content", "_line", "_lines", "_writing")

    def __init__(
        self,
        line: Line,
        message: RawResponseMessage,
        content: StreamReader,
        lines: Lines,
        writing: "asyncio.Future[None] | None" = None,
    ) -> None:
        """writing: what still sends the request's body, where the gateway answered before it had all of it."""
        length = message.headers.get("Content-Length")
        super().__init__(
            message.code,
            tuple(message.headers.items()),
            message.headers.get("Content-Type", ""),
            # A length says nothing about what is left of a body once the library has opened its encoding.
            None if length is None or "Content-Encoding" in message.headers else int(length),
        )
        self._line: Line | None = line
        self._content = content
        self._lines = lines
        self._writing = writing
        line.patience.tells(content.set_exception)
        content.on_eof(self._give_back)

    async def read(self) -> bytes:
        """What has arrived since the last call, at least one byte; `b""` at the end. Raises UpstreamFault."""
        if self._line is not None:
            self._line.patience.since_s = time.monotonic()
        try:
            return await self._content.readany()
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            raise TimedOut("the gateway fell silent in the middle of its answer") from error
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            raise Broke("the gateway's answer broke off") from error
        finally:
            # The connection is another call's as soon as the last byte has arrived here.
            if self._line is not None:
                self._line.patience.since_s = None

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
        if self._writing is not None and not self._writing.done():
            self._give_up()
        elif (line := self._line) is not None:
            self._line = None
            self._lines.give_back(line)

    def _give_up(self) -> None:
        if (line := self._line) is not None:
            self._line = None
            if self._writing is not None:
                self._writing.cancel()
            line.connection.close()


class Upstream:
    """The gateway, and the connections to it."""

    def __init__(
        self, base: str, *, connect_s: float, read_s: float, keepalive_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        """Call it inside a running loop.

        base:        scheme, host, port and path prefix, without a closing slash.
        connect_s:   longest time to connect, in seconds.
        read_s:      longest silence of the gateway, in seconds.
        keepalive_s: how long an idle connection is kept; shorter than the gateway keeps it.
        """
        url = URL(base, encoded=True)
        self._loop: Final = asyncio.get_running_loop()
        self._lines: Final = Lines(url, connect_s=connect_s, silence_s=read_s, keepalive_s=keepalive_s, tls=tls)
        self._departures: Final = Departures()
        self._host: Final = self._lines.host
        self._prefix: Final = url.raw_path.rstrip("/")

    async def send(self, out: Outgoing, written: Callable[[], None] | None = None) -> Answer:
        """Send a request and wait for the head of its answer. Raises UpstreamFault.

        written: told when the last byte is with the gateway, unless its answer begins before.
        """
        try:
            head = self._head(out)
            if (line := self._lines.rested()) is None:
                line = await self._lines.opened()
        except (aiohttp.ClientConnectorError, TimeoutError, UnsafeHeader) as error:
            raise NeverSent("the gateway could not be reached") from error
        transport, body, writing = line.transport, out.body, None
        try:
            if len(body) <= PIECE:
                line.ask(head + body, streams=out.headers.streams)
                if written is not None:
                    self._departures.begin(transport, written)
            else:
                line.ask(head)
                # The gateway may refuse a body before it has all of it, so both go on at once.
                writing = self._loop.create_task(self._write(line, body, written))
            while True:
                answer = await line.answered()
                if isinstance(answer, PlainAnswer):
                    return self._whole(line, answer, writing)
                message, content = answer
                if message.code >= 200 or message.code == 101:
                    line.patience.since_s = None
                    return Coming(line, message, content, self._lines, writing)
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            _give_up(line, writing)
            raise TimedOut("the gateway did not begin its answer in time") from error
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            _give_up(line, writing)
            raise Broke("the gateway closed the connection before its answer began") from error
        except BaseException:
            _give_up(line, writing)
            raise
        finally:
            self._departures.stop(transport)

    def _whole(self, line: Line, answer: PlainAnswer, writing: "asyncio.Task[None] | None") -> Whole:
        """An answer that is all there; its connection is another call's, unless it is still being written on."""
        if writing is not None and not writing.done():
            _give_up(line, writing)
        else:
            self._lines.give_back(line)
        return Whole(answer)

    def _head(self, out: Outgoing) -> bytes:
        """Request line and headers. Raises UnsafeHeader."""
        method, target, headers, body, request_id = out
        said = (
            f"{method} {self._prefix}{target} HTTP/1.1\r\nhost: {self._host}\r\n"
            f"{headers.text}x-request-id: {request_id}\r\n"
        )
        if body or method != "GET":
            said += f"content-length: {len(body)}\r\n"
        own = method + target + request_id
        if headers.text == _UNSAFE or "\r" in own or "\n" in own or "\0" in own:
            raise UnsafeHeader
        return (said + "\r\n").encode("utf-8", "surrogateescape")

    async def _write(self, line: Line, body: bytes, written: Callable[[], None] | None) -> None:
        """Send a large body. A connection that breaks meanwhile tells its reader, so nobody has to be told here."""
        with contextlib.suppress(aiohttp.ClientError, OSError):
            rest = memoryview(body)
            for at in range(0, len(rest), PIECE):
                await line.say(rest[at : at + PIECE])
            if written is not None:
                self._departures.begin(line.transport, written)

    async def close(self) -> None:
        """Close every connection."""
        self._departures.close()
        await self._lines.close()


def _give_up(line: Line, writing: "asyncio.Task[None] | None") -> None:
    """Close a connection, and write no more of a body on it."""
    if writing is not None:
        writing.cancel()
    line.connection.close()


class UnsafeHeader(ValueError):
    """A line break where none may be; nothing was sent."""
