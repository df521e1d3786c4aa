"""The gateway as our sending code sees it: one request out, one answer in, and three ways of failing.

Targets go out as they came: nothing is decoded, normalised or followed. What the library raises becomes one of three
faults here, because they cost differently: what was never sent is free, what broke or fell silent may be charged.
"""

import asyncio
import io
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from yarl import URL

from proxy.core.ledger import Ending

STREAM_LIMIT: Final = 64 * 1024
"""Bytes the library buffers of one answer before it stops reading from the gateway."""

LARGE_BODY: Final = 512 * 1024
"""Bodies above this go out in pieces, so that one of 25 MB does not hold up every other call."""


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


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as the gateway gets it. target: path and query, already encoded, below the base URL."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Answer:
    """An answer whose head has arrived; the body is read piece by piece."""

    __slots__ = ("_response", "content_length", "content_type", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status: Final = response.status
        self.headers: Final = tuple(response.headers.items())
        self.content_type: Final = response.headers.get("Content-Type", "")
        self.content_length: Final = response.content_length if "Content-Encoding" not in response.headers else None

    @property
    def is_stream(self) -> bool:
        """Whether the body is a stream of events."""
        return self.content_type.lower().startswith("text/event-stream")

    async def read(self) -> bytes:
        """What has arrived since the last call, at least one byte; `b""` at the end. Raises UpstreamFault."""
        try:
            return await self._response.content.readany()
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            raise TimedOut("the gateway fell silent in the middle of its answer") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Broke("the gateway's answer broke off") from error

    def close(self) -> None:
        """Give the connection up, or back when the answer was read to its end."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


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
        self._base: Final = base
        # No limit: a pool that is full would make streams wait for each other. What limits us are turns.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=keepalive_s, ssl=tls or True)
        self._session: Final = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, connect=connect_s, sock_read=read_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=STREAM_LIMIT,
            trust_env=False,
        )

    async def send(self, out: Outgoing) -> Answer:
        """Send a request and wait for the head of its answer. Raises UpstreamFault."""
        body = io.BytesIO(out.body) if len(out.body) > LARGE_BODY else out.body or None
        try:
            response = await self._session.request(
                out.method,
                URL(self._base + out.target, encoded=True),
                data=body,
                headers=out.headers,
                allow_redirects=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NeverSent("the gateway could not be reached") from error
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            raise TimedOut("the gateway did not begin its answer in time") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Broke("the gateway closed the connection before its answer began") from error
        return Answer(response)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()
        # The library closes TLS transports one turn of the loop later.
        await asyncio.sleep(0)
