"""Answers that are all there when they go out: header and body as one write.

The library prepares an answer step by step, for what may still be added to it; nothing is added to ours.
"""

from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11

_BODYLESS: Final = frozenset({204, 304})


class Whole(web.Response):
    """The library's answer, for the usual case: HTTP/1.1, and a body."""

    _is_out = False

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send all of it. Raises ValueError for a line break where none may be, and the library's own errors."""
        if request.version != HttpVersion11 or request.method == "HEAD" or self.status in _BODYLESS:
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
        return None if self.status in _BODYLESS else self._all()

    def _all(self) -> bytes:
        body = self.body or b""
        assert isinstance(body, bytes)
        lines = [*self.headers.items(), ("Content-Length", str(len(body)))]
        if self._keep_alive is False:
            lines.append(("Connection", "close"))
        self._is_out = True
        return head_of(self.status, self.reason or "", lines) + body

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send."""
        if not self._is_out:
            await super().write_eof(data)


def head_of(status: int, reason: str, lines: Iterable[tuple[str, str]]) -> bytes:
    """Status line and header. Raises ValueError for a line break where none may be."""
    said = [f"HTTP/1.1 {status} {reason}", *[f"{name}: {value}" for name, value in lines]]
    text = "\r\n".join(said)
    if text.count("\r") != len(said) - 1 or text.count("\n") != len(said) - 1:
        raise ValueError("a header line of an answer has a line break in it")
    return text.encode("utf-8", "surrogateescape") + b"\r\n\r\n"


def date_of(at_s: float) -> str:
    """An instant of the wall clock as `Date` has it."""
    return _date(int(at_s))


@lru_cache(maxsize=2)
def _date(at_s: int) -> str:
    return formatdate(at_s, usegmt=True)
