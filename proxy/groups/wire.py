"""One call of the member-group service: the token on it, the envelope around it, and when it is tried again.

A call is repeated only where that is safe: when nothing was sent, when the service said to come back, and for reads.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import aiohttp
import orjson
from yarl import URL

from proxy import __version__
from proxy.config.secret import Secret
from proxy.config.values import BaseUrl
from proxy.groups.faults import Busy, Failing, GroupsFault, NotSent, Unanswered, Unreadable, fault_of

TRIES: Final = 4
PAUSE_S: Final = 0.5
"""Before the first repetition; doubled for each further one."""

PAUSE_S_MAX: Final = 60.0
"""A longer Retry-After is cut to this."""

AT_ONCE: Final = 4
"""Calls in flight; an administrative service is not built for crowds."""

TIMEOUT: Final = aiohttp.ClientTimeout(total=None, connect=10, sock_read=120)
"""Seconds. A bulk call over 500 groups may take its time."""

SENTENCE_MAX: Final = 200
"""Characters of a foreign error page that are repeated."""

Pause = Callable[[float], Awaitable[None]]
PAUSE: Final[Pause] = asyncio.sleep


class Wire:
    """The service at one address with one token."""

    def __init__(self, session: aiohttp.ClientSession, base: BaseUrl, token: Secret, pause: Pause) -> None:
        self._session: Final = session
        self._base: Final = str(base)
        self._token: Final = token
        self._pause: Final = pause
        self._places: Final = asyncio.Semaphore(AT_ONCE)
        self.calls = 0
        """Requests sent so far."""

    async def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str] | None = None
    ) -> Any:
        """The `data` of a successful answer, None where there is none. Raises a `GroupsFault` otherwise."""
        url = URL(self._base + path, encoded=True).with_query(query or {})
        async with self._places:
            for tried in range(TRIES - 1):
                try:
                    return await self._once(method, url, body)
                except GroupsFault as fault:
                    if not _may_repeat(method, fault):
                        raise
                    asked_s = fault.retry_after_s
                await self._pause(PAUSE_S * 2**tried if asked_s is None else min(asked_s, PAUSE_S_MAX))
            return await self._once(method, url, body)

    async def _once(self, method: str, url: URL, body: Mapping[str, Any] | None) -> Any:
        headers = {"x-access-token": self._token.reveal(), "Accept": "application/json"}
        data = None
        if body is not None:
            data = orjson.dumps(body)
            headers["Content-Type"] = "application/json"
        self.calls += 1
        where = f"{method} {url.raw_path}"
        with _as_faults(where):
            # A redirect would carry the token to wherever it points.
            async with self._session.request(
                method, url, data=data, headers=headers, allow_redirects=False, middlewares=(_sent_once,)
            ) as response:
                raw = await response.read()
        return _data(response.status, raw, response.headers.get("Retry-After"), where)


@asynccontextmanager
async def connected(base: BaseUrl, token: Secret, pause: Pause = PAUSE) -> AsyncIterator[Wire]:
    """A wire for as long as the block lasts."""
    connector = aiohttp.TCPConnector(limit=AT_ONCE, keepalive_timeout=15)
    headers = {"User-Agent": f"sluicegate/{__version__}"}
    async with aiohttp.ClientSession(
        connector=connector, timeout=TIMEOUT, headers=headers, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        yield Wire(session, base, token, pause)


async def _sent_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Turn what breaks into a fault where it breaks: the library itself sends a DELETE twice when it sees its own."""
    with _as_faults(f"{request.method} {request.url.raw_path}"):
        return await handler(request)


@contextmanager
def _as_faults(where: str) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotSent(f"the service cannot be reached ({_cause(error)})") from error
    except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
        raise Unanswered(f"{where} got no whole answer ({_cause(error)})") from error


def _may_repeat(method: str, fault: GroupsFault) -> bool:
    if isinstance(fault, NotSent | Busy):
        return True
    return method == "GET" and isinstance(fault, Unanswered | Failing)


def _data(status: int, raw: bytes, retry_after: str | None, where: str) -> Any:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = None
    if 200 <= status < 300:
        if isinstance(value, dict) and value.get("success") is True:
            return value.get("data")
        raise Unreadable(f"{where} was answered with {status} and without the service's envelope; check --tenant-url")
    wait_s = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
    # Only these say that a wait helps.
    raise fault_of(status, f"{where}: {_sentence(value, raw)}", wait_s if status in (429, 503) else None)


def _sentence(value: Any, raw: bytes) -> str:
    """What an error says, wherever it says it; the form of failures is not documented."""
    if isinstance(value, dict):
        for name in ("message", "detail", "error"):
            if isinstance(said := value.get(name), str):
                return said[:SENTENCE_MAX]
    text = " ".join(raw[: 4 * SENTENCE_MAX].decode("utf-8", "replace").split())
    return text[:SENTENCE_MAX] or "no reason given"


def _cause(error: BaseException) -> str:
    return type(error).__name__ if isinstance(error, TimeoutError) else str(error) or type(error).__name__
