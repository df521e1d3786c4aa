"""One request as its caller sent it: raw target, raw header lines, the body on demand, whether the caller is there."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from aiohttp import http_exceptions, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, StreamWriter

from proxy.errors import ProxyError
from proxy.server.listener import Connection

if TYPE_CHECKING:
    from proxy.server.heads import Known


class Inbound:
    """One request as it came: raw target, raw header lines, and the body on demand.

    sent_whole: all of its bytes, where they came in one piece and not too many.
    """

    __slots__ = ("_connection", "_headers", "_on_gone", "_request", "body_read", "gone", "sent_whole")

    def __init__(self, request: web.BaseRequest) -> None:
        self._request: web.BaseRequest | None = request
        connection = request.protocol
        assert isinstance(connection, Connection)
        self._connection = connection
        self._headers: Mapping[str, str] | None = None
        self.gone = not connection.connected
        """True once the caller's connection is lost."""
        self._on_gone: Callable[[], None] | None = None
        self.body_read = False
        connection.head_arrived()
        self.sent_whole: bytes | None = connection.take_whole(request)
        connection.on_lost = self._lost

    @property
    def request(self) -> web.BaseRequest:
        """The library's own, which its answers are written to."""
        assert self._request is not None
        return self._request

    def writer(self) -> AbstractStreamWriter | None:
        """What an answer can be written to without the library's request; None where only that will do."""
        return None

    @property
    def stays_open(self) -> bool:
        """Whether its connection takes another request behind its answer, if nothing else comes between."""
        return self.request.version == HttpVersion11 and self.request.keep_alive

    @property
    def reads_to_the_end(self) -> bool:
        """Whether whoever answers it goes on until the answer is done, also behind a caller that left."""
        return True

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def target(self) -> str:
        """Path and query exactly as sent."""
        return self.request.raw_path

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return self.request.raw_headers

    @property
    def http_version(self) -> tuple[int, int]:
        return self.request.version[0], self.request.version[1]

    def header(self, name: str) -> str | None:
        """The first line of a header, by lower-case name."""
        return (self._headers if self._headers is not None else self.request.headers).get(name)

    @property
    def headers(self) -> Mapping[str, str]:
        """The first line of each header, by lower-case name."""
        if self._headers is None:
            lines: dict[str, str] = {}
            for line, value in self.request.headers.items():
                lines.setdefault(line.lower(), value)
            self._headers = lines
        return self._headers

    @headers.setter
    def headers(self, known: Mapping[str, str]) -> None:
        self._headers = known

    @property
    def header_lines(self) -> list[tuple[str, str]]:
        return list(self.request.headers.items())

    def on_gone(self, tell: Callable[[], None]) -> None:
        """Call `tell` when the caller leaves; at once if it has left."""
        self._on_gone = tell
        if self.gone:
            tell()

    @property
    def peer(self) -> str | None:
        """Address of the caller, without the port."""
        return self.request.remote

    def take_back(self) -> None:
        """The caller waits no more, although its connection is still there."""
        self._lost()

    def _lost(self) -> None:
        self.gone = True
        if self._on_gone is not None:
            self._on_gone()

    def finished(self) -> None:
        """The answer is out; what happens on the connection now is no matter of this request."""
        self._on_gone = None
        if self._connection.on_lost == self._lost:
            self._connection.on_lost = None

    def _continue(self) -> None:
        """Tell a caller that waits to be asked (`Expect: 100-continue`) to send its body."""
        if self.header("expect") is not None and self._connection.transport is not None:
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def body_here(self, bytes_max: int, too_large: Callable[[], ProxyError]) -> bytes | None:
        """The whole body, where it is here already; None where it is waited for. Raises ProxyError: too large.

        bytes_max: largest body taken; one byte more is refused before anything else happens with it.
        """
        if (whole := self.sent_whole) is not None:
            # So short that the library does not stop reading although nobody takes its copy.
            self.body_read = True
            whole = whole[whole.find(b"\r\n\r\n") + 4 :]
            if len(whole) > bytes_max:
                raise too_large()
            return whole
        length = self.request.content_length
        if length is not None and length > bytes_max:
            raise too_large()
        content = self.request.content
        if not content.is_eof():
            return None
        # It came in one go with its head, as most do.
        self.body_read = True
        read = content.read_nowait() if content.total_bytes else b""
        if len(read) > bytes_max:
            raise too_large()
        return read

    async def body(self, bytes_max: int, too_large: Callable[[], ProxyError]) -> bytes:
        """The whole body that is not here yet, counted as it arrives.

        Raises ProxyError: too large, too slow, or broken off.
        """
        content = self.request.content
        self._continue()
        pieces: list[bytes] = []
        count = 0
        loop = asyncio.get_running_loop()
        limits = self._connection.limits
        due_s = loop.time() + limits.body_s
        try:
            async with asyncio.timeout_at(min(due_s, loop.time() + limits.body_idle_s)) as patience:
                while piece := await content.readany():
                    count += len(piece)
                    if count > bytes_max:
                        raise too_large()
                    pieces.append(piece)
                    patience.reschedule(min(due_s, loop.time() + limits.body_idle_s))
        except TimeoutError as error:
            raise ProxyError(
                "request_timeout",
                f"The body did not arrive in time: at most {limits.body_idle_s:g} s between two pieces and "
                f"{limits.body_s:g} s in all.",
            ) from error
        except (web.RequestPayloadError, http_exceptions.HttpProcessingError) as error:
            raise ProxyError("bad_request", "The body is not what its header announced.") from error
        self.body_read = True
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Again(Inbound):
    """A whole request whose head came before byte for byte, so that the library has no part in it.

    known: what its head came to.
    """

    __slots__ = ("_body", "known")

    def __init__(self, connection: Connection, known: "Known", body: bytes, sent: bytes | None) -> None:
        """sent: all of its bytes, where they are not too many to be remembered."""
        self._connection, self.known, self._body = connection, known, body
        self._headers, self._request = known.headers, None
        self.gone, self._on_gone = False, None
        self.body_read, self.sent_whole = True, sent
        connection.on_lost = self._lost

    @property
    def method(self) -> str:
        return self.known.method

    @property
    def target(self) -> str:
        return self.known.target

    @property
    def peer(self) -> str | None:
        return self._connection.peer

    @property
    def request(self) -> web.BaseRequest:
        """One of the library's, made for an answer that the library writes."""
        if self._request is None:
            self._request = self._connection.request(self.known.method, self.known.target, self.known.lines)
        return self._request

    def writer(self) -> AbstractStreamWriter | None:
        return StreamWriter(self._connection, asyncio.get_running_loop())

    @property
    def header_lines(self) -> list[tuple[str, str]]:
        return list(self.known.lines)

    @property
    def stays_open(self) -> bool:
        return True

    def body_here(self, bytes_max: int, too_large: Callable[[], ProxyError]) -> bytes:
        """All of it. Raises ProxyError where it is too large."""
        if len(self._body) > bytes_max:
            raise too_large()
        body, self._body = self._body, b""
        return body


class Given(Inbound):
    """A request that no connection stands behind: it is all here, and its caller does not leave."""

    __slots__ = ("_method", "_target")

    def __init__(self, method: str, target: str, headers: Mapping[str, str]) -> None:
        self._method, self._target, self._headers = method, target, headers
        self.gone, self._on_gone = False, None
        self.body_read, self.sent_whole = True, None

    @property
    def method(self) -> str:
        return self._method

    @property
    def target(self) -> str:
        return self._target

    @property
    def reads_to_the_end(self) -> bool:
        """One of the proxy's own asks may be given up at any moment."""
        return False

    @property
    def peer(self) -> str | None:
        return None

    def finished(self) -> None:
        """There is no connection on which anything could follow."""
