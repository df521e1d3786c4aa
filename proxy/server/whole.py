"""Answers that are all there when they go out: header and body as one write.

The library prepares an answer step by step, for what may still be added to it; nothing is added to ours.
"""

from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11
from multidict import CIMultiDict

_BODYLESS: Final = frozenset({204, 304})

_FIRST_LINES: Final[Mapping[int, str]] = {one.value: f"HTTP/1.1 {one.value} {one.phrase}" for one in HTTPStatus}


class Whole(web.Response):
    """The library's answer, for the usual case: HTTP/1.1, and a body.

    What the library sets up for an answer takes longer than to send it, so it is left until it is asked for.
    """

    _is_out = False

    def __init__(self, status: int, body: bytes, lines: Mapping[str, str]) -> None:
        # The first two are the library's own names, under which it and others read them.
        self._status, self._body = status, body
        self._lines: Final = lines

    def __repr__(self) -> str:
        return f"<whole answer: {self._status}>"

    @property
    def headers(self) -> CIMultiDict[str]:
        """The header lines, which stay as they are."""
        return CIMultiDict(self._lines)

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send all of it. Raises ValueError for a line break where none may be, and the library's own errors."""
        if request.version != HttpVersion11 or request.method == "HEAD" or self._status in _BODYLESS:
            super().__init__(status=self._status, body=self._body, headers=self._lines)
            return await super().prepare(request)
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        writer = request.writer
        await writer.write(self._all())
        # A caller that does not read is waited for, so that its next request is not answered into memory.
        await writer.drain()
        return writer

    def said(self) -> bytes | None:
        """All of it, on a connection that stays open unless the answer says otherwise; None where it has no body.

        Raises ValueError for a line break where none may be.
        """
        return None if self._status in _BODYLESS else self._all()

    def _all(self) -> bytes:
        body = self._body
        assert isinstance(body, bytes)
        self._is_out = True
        return head_of(self._status, self._lines, len(body), closes=self._keep_alive is False) + body

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send."""
        if not self._is_out:
            await super().write_eof(data)


def head_of(status: int, lines: Mapping[str, str], length: int, *, closes: bool = False) -> bytes:
    """Status line and header. Raises ValueError for a line break where none may be.

    length: of the body, in bytes.      closes: the connection takes no other request.
    """
    said = [_FIRST_LINES.get(status) or f"HTTP/1.1 {status} ", *map(": ".join, lines.items())]
    said.append(f"Content-Length: {length}")
    if closes:
        said.append("Connection: close")
    # Looked for where there may be none at all, which takes a fraction of counting those that belong there.
    text = "".join(said)
    if text.find("\r") >= 0 or text.find("\n") >= 0:
        raise ValueError("a header line of an answer has a line break in it")
    said.append("\r\n")
    return "\r\n".join(said).encode("utf-8", "surrogateescape")


def date_of(at_s: float) -> str:
    """An instant of the wall clock as `Date` has it."""
    return _date(int(at_s))


@lru_cache(maxsize=2)
def _date(at_s: int) -> str:
    return formatdate(at_s, usegmt=True)
