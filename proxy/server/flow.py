"""Answers that go out piece by piece.

The library begins one step by step, for what may still be added to it, and wants a request of its own for that, which
one whose head is known by its bytes does not have. Its caller waits for both before the first byte of a stream.
"""

from aiohttp import web

from proxy.server.inbound import Inbound
from proxy.server.whole import date_of


class Flow(web.StreamResponse):
    """The library's answer, which for the usual case is begun here."""

    def __repr__(self) -> str:
        return f"<flowing answer: {self.status}>"

    async def begin(self, inbound: Inbound, now_s: float) -> None:
        """Send the header, which has no length; what follows goes out in chunks. Raises as the library does.

        now_s: wall clock.
        """
        writer = inbound.writer()
        if writer is None or self.keep_alive is False:
            await self.prepare(inbound.request)
            return
        # The library's own names, by which it knows that the answer has begun, and whether another may follow.
        self._payload_writer, self._keep_alive = writer, True
        lines = self.headers
        lines["Date"] = date_of(now_s)
        lines["Transfer-Encoding"] = "chunked"
        writer.enable_chunking()
        await writer.write_headers(f"HTTP/1.1 {self.status} {self.reason}", lines)
        writer.send_headers()
