"""The member-group service behind the admin listener: relayed with the caller's own rights, every change on record.

Our token never goes this way. A caller shows an `x-access-token` or the cookie `sessionId`, as the service itself wants
it. Paths get their last slash, and what is no JSON becomes JSON, in the form of the service's own failures.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
import orjson
from aiohttp import web
from yarl import URL

from proxy import __version__
from proxy.config.settings import TenantRelay
from proxy.config.values import BaseUrl
from proxy.server.parts import Parts

PATHS: Final = re.compile(r"/v1(?:/admin)?/member-groups(?:/[A-Za-z0-9_-]+)*/?")
"""All paths of the service; anything else could leave them by dots or encoded slashes."""

PREFIXES: Final = ("/v1/admin/member-groups", "/v1/member-groups")
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE"})
SESSION_ID: Final = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{1,4096}")
"""What a cookie value may hold (RFC 6265)."""

TIMEOUT: Final = aiohttp.ClientTimeout(total=None, connect=10, sock_read=120)
"""Seconds."""

TEXT_MAX: Final = 500
"""Characters of a foreign error page that are repeated."""

SESSION: Final = web.AppKey("tenant_session", aiohttp.ClientSession)


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the caller, always JSON."""

    status: int
    body: bytes
    retry_after: str | None = None


class Refused(Exception):
    """The relay itself says no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.answer: Final = failure(status, message)


def add_relay(app: web.Application, parts: Parts) -> None:
    """Serve the service's paths, where its address is known and the relay is on."""
    base, mode = parts.settings.tenant_url, parts.settings.tenant_relay
    if base is None or mode is TenantRelay.OFF:
        return
    app.cleanup_ctx.append(_session)
    relay = Relay(parts, base, mode)
    for prefix in PREFIXES:
        app.router.add_route("*", f"{prefix}{{rest:.*}}", relay.handle)


async def _session(app: web.Application) -> AsyncIterator[None]:
    headers = {"User-Agent": f"sluicegate/{__version__}", "Accept": "application/json"}
    async with aiohttp.ClientSession(timeout=TIMEOUT, headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session:
        app[SESSION] = session
        yield


class Relay:
    """The way to one service."""

    def __init__(self, parts: Parts, base: BaseUrl, mode: TenantRelay) -> None:
        self._parts: Final = parts
        self._base: Final = base
        self._mode: Final = mode

    async def handle(self, request: web.Request) -> web.Response:
        """The answer, and a line in the log where the caller meant to change something."""
        body = await request.read()
        answer = failure(500, "the relay broke off")
        try:
            credentials = self._credentials(request)
            answer = await self._asked(request, self._target(request), body, credentials)
        except Refused as refused:
            answer = refused.answer
        finally:
            if request.method not in SAFE:
                self._note(request, body, answer.status)
        headers = {} if answer.retry_after is None else {"Retry-After": answer.retry_after}
        return web.Response(status=answer.status, body=answer.body, content_type="application/json", headers=headers)

    def _credentials(self, request: web.Request) -> Mapping[str, str]:
        """The caller's own, as the service takes it. A session comes with the service's Origin, as its pages' do."""
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.host:
            # The service trusts Origin against forged requests; we speak for pages of ours only.
            raise Refused(403, "the Origin of the request is not this listener")
        if token := request.headers.get("x-access-token"):
            return {"x-access-token": token}
        if SESSION_ID.fullmatch(session := request.cookies.get("sessionId", "")):
            return {"Cookie": f"sessionId={session}", "Origin": f"{self._base.scheme}://{self._base.authority}"}
        raise Refused(401, "send your own x-access-token, or the cookie sessionId")

    def _target(self, request: web.Request) -> str:
        """Path and query for the service."""
        path, mark, query = request.raw_path.partition("?")
        if not PATHS.fullmatch(path):
            raise Refused(404, f"only {' and '.join(PREFIXES)} and what is below are relayed")
        if request.method not in METHODS:
            raise Refused(405, f"{request.method} is no method of the service")
        if self._mode is TenantRelay.READ and request.method not in SAFE:
            raise Refused(403, "this listener relays reads only; tenant_relay says so")
        if self._parts.instance in request.headers.get("Via", ""):
            raise Refused(508, "the request came from here; --tenant-url points at this listener")
        return f"{path.rstrip('/')}/{mark}{query}"

    async def _asked(self, request: web.Request, target: str, body: bytes, credentials: Mapping[str, str]) -> Answer:
        headers = {**credentials, "Via": f"1.1 {self._parts.instance}"}
        if body:
            headers["Content-Type"] = "application/json"
        url = URL(f"{self._base}{target}", encoded=True)
        send = request.app[SESSION].request
        try:
            async with send(
                request.method,
                url,
                data=body or None,
                headers=headers,
                allow_redirects=False,
                middlewares=(_sent_once,),
            ) as response:
                raw = await response.read()
        except _Broken as broken:
            raise Refused(*broken.args) from broken
        except TimeoutError as error:
            raise Refused(504, "the member-group service did not answer in time") from error
        except aiohttp.ClientError as error:
            raise Refused(502, "the member-group service broke off its answer") from error
        return _plain(request.method, response.status, raw, response.headers.get("Retry-After"))

    def _note(self, request: web.Request, body: bytes, status: int) -> None:
        self._parts.log.note(
            # So that it stays on record where only warnings are kept.
            "warning",
            "audit",
            who=_who(request),
            what=f"{request.method} {request.raw_path}",
            status=status,
            body=body[:TEXT_MAX].decode("utf-8", "replace"),
        )


class _Broken(Exception):
    """Status and sentence for the caller."""


async def _sent_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep the library from sending a DELETE a second time, which it does when it sees these errors itself."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise _Broken(502, "the member-group service cannot be reached; nothing was sent") from error
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Broken(502, "the member-group service gave no answer; the change may have been made") from error


def _plain(method: str, status: int, raw: bytes, retry_after: str | None) -> Answer:
    """The service's answer where it is JSON; else the same told as JSON."""
    if 300 <= status < 400:
        return failure(502, "the member-group service answers with a redirect; check --tenant-url")
    if method == "HEAD":
        return Answer(status, b"", retry_after)
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        if status < 400:
            return failure(502, "the member-group service answered with something else than JSON")
        text = " ".join(raw[: 4 * TEXT_MAX].decode("utf-8", "replace").split())
        return failure(status, text[:TEXT_MAX] or "no reason given", retry_after)
    return Answer(status, raw, retry_after)


def failure(status: int, message: str, retry_after: str | None = None) -> Answer:
    return Answer(status, orjson.dumps({"success": False, "message": message}), retry_after)


def _who(request: web.Request) -> str:
    """A name for the credential that is not the credential."""
    shown = request.headers.get("x-access-token") or request.cookies.get("sessionId", "")
    return hashlib.sha256(shown.encode()).hexdigest()[:16] if shown else "nobody"
