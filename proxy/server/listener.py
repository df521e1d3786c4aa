"""The data listener: callers' connections and their deadlines.

The library's server is used below its application layer: targets stay raw, nothing is routed, decompressed or logged by
it, and its error page is replaced. It has no deadline for a silent connection, half a head or a caller that does not
read; those live here, one timer each.

Two kinds of requests are not given to the library at all, where they come in one piece and nothing else on their
connection is being read or answered: one that is known by all its bytes is answered at once, and one whose head is
known by its bytes is served in a task of this connection's own. What comes meanwhile waits.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from aiohttp import ClientConnectionResetError, http_exceptions, web
from aiohttp.http import HttpVersion11, RawRequestMessage, StreamWriter
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import RequestHandler
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from proxy.errors import ProxyError
from proxy.server.whole import Whole

if TYPE_CHECKING:
    from proxy.server.heads import Sent

HEADERS_MAX: Final = 128
"""Header lines the parser takes; coding agents send some thirty."""

LINGER_S: Final = 5.0
"""How long a refused body is read and thrown away, so that its sender gets to read the refusal."""


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Bounds of one listener: seconds, bytes and connections."""

    head_s: float
    body_s: float
    body_idle_s: float
    write_s: float
    keepalive_s: float
    head_bytes: int
    connections: int
    connections_per_peer: int


class Begun(Protocol):
    """A request on its way that the library knows nothing of."""

    @property
    def request(self) -> web.BaseRequest:
        """One of the library's, for an answer that the library writes."""
        ...


Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Refusal = Callable[[ProxyError | None], web.Response]
Known = Callable[[bytes], Sequence[bytes]]
"""The whole answer to a request that is known by all its bytes; empty where it is not."""
Answering = Coroutine[None, None, web.StreamResponse]
Again = Callable[["Connection", bytes], tuple[Begun, Answering] | None]
"""A request whose head is known by its bytes, and what answers it; None where it is not."""


class Listener(web.Server):
    """Makes a protocol for each connection and counts them."""

    def __init__(
        self,
        handler: Handler,
        refuse: Refusal,
        limits: ListenerLimits,
        known: Known = lambda _sent: (),
        again: Again = lambda _connection, _sent: None,
    ) -> None:
        """handler: answers one request.

        refuse: makes the answer for what the parser did not take; None stands for a fault of our own.
        known:  asked first about a request that came in one piece.      again: asked next.
        """
        super().__init__(handler)
        self.known: Final = known
        self.again: Final = again
        self.refuse: Final = refuse
        self.limits: Final = limits
        self.peers: Final[Counter[str]] = Counter()
        self.closing = False

    def __call__(self) -> RequestHandler:
        """One protocol for one connection, as the event loop asks for it."""
        limits = self.limits
        return Connection(
            self,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.keepalive_s,
            access_log=None,
            auto_decompress=False,
            lingering_time=LINGER_S,
            max_line_size=limits.head_bytes,
            max_field_size=limits.head_bytes,
            max_headers=HEADERS_MAX,
            logger=_SILENT,
        )

    def close_idle(self) -> None:
        """Close the connections that wait for a next request."""
        for connection in self.connections:
            if isinstance(connection, Connection):
                connection.close_if_idle()


_SILENT: Final = logging.getLogger("proxy.server.inbound.silent")
"""The library logs request lines with what they hold; this logger has no way out."""
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


_LOCAL: Final = "local"
"""Whom a caller counts as that has no address."""

CHUNK_MAX: Final = 16 * 1024
"""Bytes of a request that is remembered whole."""

HELD_MAX: Final = 128 * 1024
"""Bytes that are taken of what comes while a request is answered that the library knows nothing of; as many as the
library takes of a body that nobody reads. A caller that has sent more is not seen leaving until its answer is out."""

SEND_BUFFER: Final = 256 * 1024
"""Bytes the kernel holds of an answer that is not read; by default it takes megabytes for every stuck caller."""


class Connection(RequestHandler):
    """One connection of a caller, with the deadlines the library lacks."""

    __slots__ = (
        "_between", "_counted", "_head_timer", "_held", "_listener", "_serving", "_whole", "_write_timer", "head",
        "limits", "on_lost", "peer",
    )  # fmt: skip

    def __init__(self, listener: Listener, **options: Any) -> None:
        super().__init__(listener, **options)
        self._listener = listener
        self.limits = listener.limits
        self.peer: str | None = None
        """Address of the caller, without the port."""
        self._serving: asyncio.Task[None] | None = None
        self._held = bytearray()
        self._counted = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._between = True
        self._whole: tuple[object, bytes] | None = None
        self.head: Sent | None = None
        """The last one that was known by its bytes: a connection sends the same again and again."""
        self.on_lost: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection in, or close it when there are too many."""
        peername = transport.get_extra_info("peername")
        self.peer = str(peername[0]) if isinstance(peername, tuple) else None
        peers, peer = self._listener.peers, self.peer or _LOCAL
        full = peers.total() >= self.limits.connections or peers[peer] >= self.limits.connections_per_peer
        super().connection_made(transport)
        if full or self._listener.closing:
            # The library keeps it as what it can do; other loops' transports are not of asyncio's own class.
            assert self.transport is not None
            self.transport.abort()
            return
        self._counted = True
        peers[peer] += 1
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count it out, stop the timers, tell whoever answers that the caller is gone."""
        self._stop_head_timer()
        self._stop_write_timer()
        if self._counted:
            self._counted = False
            peers, peer = self._listener.peers, self.peer or _LOCAL
            peers[peer] -= 1
            if peers[peer] <= 0:
                del peers[peer]
        if self.on_lost is not None:
            on_lost, self.on_lost = self.on_lost, None
            on_lost()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Answer what is known by its bytes at once; else start the clock with the first byte of a head."""
        if not data:
            super().data_received(data)
            return
        if self._serving is not None:
            self._hold(data)
            return
        idle, asked = self._idle, len(self._messages)
        free = idle and self._between and not (self._paused or self._close or self._force_close)
        if free and self.transport is not None and (self._answered(data) or self._served(data)):
            return
        if (end := _last_head(data) if idle or self._between else 0) > 0:
            # The parser takes back what it found in the same bytes as a fault, and what follows here is one.
            super().data_received(data[:end])
            super().data_received(data[end:])
        else:
            super().data_received(data)
        if self._head_timer is None and self._idle and self.transport is not None:
            # It was part of a head; most come whole and need no clock.
            self._await_head()
        self._between = self._between and self._one_request(data, asked)
        self._whole = (self._messages[-1][0], data) if self._between and len(data) <= CHUNK_MAX else None

    def _answered(self, data: bytes) -> bool:
        if not (answer := self._listener.known(data)):
            return False
        assert self.transport is not None
        self._stop_head_timer()
        self._listener.requests_count += 1
        self.transport.writelines(answer)
        # The library looks at this instant before it closes a connection that nobody uses.
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        return True

    def _served(self, data: bytes) -> bool:
        if (found := self._listener.again(self, data)) is None:
            return False
        self._stop_head_timer()
        self._listener.requests_count += 1
        self._serving = self._loop.create_task(self._serve(*found))
        return True

    async def _serve(self, begun: Begun, answering: Answering) -> None:
        """Answer a request that the library knows nothing of, then go on with what came meanwhile."""
        stays = False
        try:
            response = await answering
            if not self._sent_whole(response):
                if not response.prepared:
                    await response.prepare(begun.request)
                await response.write_eof()
            elif self._paused:
                # A caller that does not read is waited for, so that its next request is not answered into memory.
                await self._drain_helper()
            stays = response.keep_alive is not False
        except ConnectionError:
            # The caller is gone, or must not take what it has for a whole answer.
            pass
        except Exception:
            # As with the library: a fault behind all stages ends the connection, and nothing else.
            self.logger.exception("fault")
        finally:
            self._serving = None
            if not stays or self._close or self._force_close:
                self.force_close()
        if self._force_close:
            return
        # The library looks at this instant before it closes a connection that nobody uses.
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._held:
            held, self._held = bytes(self._held), bytearray()
            if len(held) >= HELD_MAX:
                self._resume_transport_reading()
            self.data_received(held)

    def _sent_whole(self, response: web.StreamResponse) -> bool:
        """Send an answer that is all there; False where it is of another kind. Raises ConnectionError."""
        if not isinstance(response, Whole) or (said := response.said()) is None:
            return False
        if (transport := self.transport) is None or transport.is_closing():
            raise ClientConnectionResetError("the caller is gone")
        transport.write(said)
        return True

    def _hold(self, data: bytes) -> None:
        """Keep what comes before its turn; a caller that sends on and on is read no further."""
        full = len(self._held) >= HELD_MAX
        self._held += data
        if not full and len(self._held) >= HELD_MAX:
            self._pause_transport_reading()

    def request(self, method: str, target: str, lines: Iterable[tuple[str, str]]) -> web.BaseRequest:
        """One of the library's for a request that it knows nothing of, without its body."""
        said = CIMultiDictProxy(CIMultiDict(lines))
        raw = tuple([(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in said.items()])
        message = RawRequestMessage(
            method, target, HttpVersion11, said, raw, False, None, False, False, URL("/")
        )  # fmt: skip
        task = asyncio.current_task()
        assert task is not None
        return web.BaseRequest(message, EMPTY_PAYLOAD, self, StreamWriter(self, self._loop), task, self._loop)

    def _process_keepalive(self) -> None:
        if self._serving is not None:
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        super()._process_keepalive()

    async def shutdown(self, timeout: float | None = LINGER_S) -> None:  # noqa: ASYNC109  (the library's signature)
        """Let what is being answered come to its end, for so long, then end it; the connection closes."""
        self._force_close = True
        if (serving := self._serving) is not None:
            await asyncio.wait([serving], timeout=timeout)
            serving.cancel()
        await super().shutdown(timeout)

    def _one_request(self, data: bytes, asked: int) -> bool:
        """Whether this was one request from its first byte to its last, so that the next byte begins another.

        asked: how many waited to be answered before it.
        """
        if len(self._messages) != asked + 1:
            return False
        message, content = self._messages[-1]
        if not isinstance(message, RawRequestMessage) or message.should_close:
            return False
        return content.is_eof() and len(data) == data.find(b"\r\n\r\n") + 4 + content.total_bytes

    def take_whole(self, request: web.BaseRequest) -> bytes | None:
        """All bytes of a request that begins to be answered, where it came in one piece."""
        whole = self._whole
        if whole is None or whole[0] is not request._message:  # noqa: SLF001
            return None
        self._whole = None
        return whole[1]

    @property
    def _idle(self) -> bool:
        """Whether nothing is being answered, and the library's loop over requests has come back to wait for the next.

        Between taking a request and beginning to answer it the library has neither a message nor a request in progress.
        One that never had a request is idle before it begins to wait, too.
        """
        if self._serving is not None:
            return False
        waiter = self._waiter
        return self._request_count == 0 or (waiter is not None and not waiter.done())

    def close_if_idle(self) -> None:
        """Close unless a request is being read or answered; one that is answered closes after its answer."""
        if self._idle:
            self.force_close()

    def _await_head(self) -> None:
        self._head_timer = self._loop.call_later(self.limits.head_s, self._head_overdue)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_overdue(self) -> None:
        self._head_timer = None
        if self._idle and self.transport is not None:
            self.transport.abort()

    def head_arrived(self) -> None:
        """A whole head is here; the clock stops."""
        self._stop_head_timer()

    def pause_writing(self) -> None:
        """The caller does not read; it has `write_s` to begin again."""
        super().pause_writing()
        self._write_timer = self._loop.call_later(self.limits.write_s, self._write_overdue)

    def resume_writing(self) -> None:
        """The caller reads again."""
        self._stop_write_timer()
        super().resume_writing()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _write_overdue(self) -> None:
        self._write_timer = None
        if self.transport is not None:
            # Closing would wait for the buffer that nobody reads.
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,  # noqa: ARG002  (the library's own signature)
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  (the library's own signature)
    ) -> web.StreamResponse:
        """Answer what the parser refused, without repeating a byte of it, and close."""
        self._stop_head_timer()
        if request.writer.output_size > 0:
            raise ConnectionResetError("part of an answer is out, so no other can follow")
        response = self._listener.refuse(_parse_refusal(exc) if isinstance(exc, _PARSE_ERRORS) else None)
        response.force_close()
        return response


def _last_head(data: bytes) -> int:
    """Where a head ends behind which no other request may come, if there is more behind it; else 0."""
    end = data.find(b"\r\n\r\n") + 4
    if not 4 <= end < len(data):
        return 0
    # `in` would first try the texts as numbers, which takes longer than the search.
    head = data[:end].lower()
    return end if head.find(b"close") >= 0 or head.find(b"http/1.0") >= 0 else 0


_PARSE_ERRORS: Final = (http_exceptions.HttpProcessingError,)


def _parse_refusal(error: BaseException) -> ProxyError:
    if isinstance(error, http_exceptions.LineTooLong):
        return ProxyError("headers_too_large", "The request line or a header line is too long; send less.")
    if isinstance(error, http_exceptions.BadHttpMessage) and "Too many headers" in str(error):
        return ProxyError("headers_too_large", f"More than {HEADERS_MAX} header lines; send fewer.")
    return ProxyError(
        "bad_request", "The request is not well-formed HTTP/1.1; the client or a hop before it breaks it."
    )
