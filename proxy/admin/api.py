"""The admin listener: health, readiness, metrics, and the way to the member-group service. Never on the data port."""

import asyncio
import base64
import hmac
import traceback
from collections.abc import Awaitable, Callable
from typing import Final

import orjson
from aiohttp import web

from proxy.admin.call import OURS, Asked, Refused, Row
from proxy.admin.gauges import bring
from proxy.admin.page.serve import add_pages
from proxy.admin.relay import add_relay
from proxy.admin.table import CALLS
from proxy.core.head import host_allowed
from proxy.server.parts import Parts
from proxy.server.reload import reload
from proxy.server.waits import told

PARTS: Final = web.AppKey("parts", Parts)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Probes carry no token; what they tell is one word."""

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
AUDITED_MAX: Final = 500
"""Bytes of a body that go on record."""


def make_app(parts: Parts) -> web.Application:
    """The admin application for one proxy."""
    app = web.Application(middlewares=[_guard])
    app[PARTS] = parts
    app.router.add_get("/healthz", _health)
    app.router.add_get("/readyz", _ready)
    app.router.add_get("/metrics", _metrics)
    app.router.add_post("/api/reload", _reload)
    for row in CALLS:
        app.router.add_route(row.method, row.path, _served(row))
    app.router.add_get("/api/queue", _queue)
    add_pages(app, parts)
    add_relay(app, parts)
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The admin token, where one is set, and only hosts of ours: a web page must not read this through a browser."""
    parts = request.app[PARTS]
    token = parts.settings.admin_token
    if request.path not in OPEN_PATHS:
        host = request.headers.get("Host", "")
        if not host_allowed(host, parts.allowed_hosts | {parts.settings.admin_listen.host}, any_ip=parts.any_ip_host):
            return _json(403, {"error": "the Host header names no host of this listener; allow it with --allowed-host"})
        if request.method not in SAFE and request.path.startswith("/api/") and "Origin" in request.headers:
            return _json(403, {"error": "web pages may not change anything here"})
        if token is not None and not hmac.compare_digest(_shown(request).encode(), token.reveal().encode()):
            refusal = _json(401, {"error": "send the admin token as Authorization: Bearer TOKEN"})
            refusal.headers["WWW-Authenticate"] = 'Basic realm="sluicegate admin, the token as password"'
            return refusal
    try:
        return await handler(request)
    except web.HTTPException as refused:
        return _json(refused.status, {"error": refused.reason})


def _shown(request: web.Request) -> str:
    """The token a request shows. Browsers send it as a password, and from then on unasked: so only for reading."""
    kind, _, shown = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "basic" and request.method in SAFE:
        try:
            return base64.b64decode(shown, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return shown.strip() if kind.lower() == "bearer" else ""


def _json(status: int, said: object) -> web.Response:
    headers = {OURS: "admin"}
    return web.Response(status=status, body=orjson.dumps(said), content_type="application/json", headers=headers)


async def _health(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _ready(request: web.Request) -> web.Response:
    parts = request.app[PARTS]
    reasons = [
        word
        for word, holds in (
            ("draining", parts.state.draining),
            ("gateway_key_refused", parts.state.key_refused),
            ("ledger_unavailable", not parts.books.available),
        )
        if holds
    ]
    return web.Response(status=503 if reasons else 200, text=", ".join(reasons or ["ready"]) + "\n")


def _served(row: Row) -> Handler:
    """A call of the table over HTTP; what changes something is on record, whatever came of it."""

    async def handle(request: web.Request) -> web.StreamResponse:
        parts = request.app[PARTS]
        raw = await request.read()
        try:
            asked = _asked(request, raw)
            row.refuse_unknown(asked.body)
            status, said = 200, await row.answer(asked, parts)
        except Refused as refused:
            status, said = refused.status, {"error": refused.message}
        except Exception as fault:  # noqa: BLE001  (what changed something goes on record, whatever came of it)
            where = traceback.extract_tb(fault.__traceback__)[-1]
            place = f"{where.name}:{where.lineno}"
            parts.log.note("error", "fault", stage="admin", kind=type(fault).__name__, place=place)
            status, said = 500, {"error": "a fault of the proxy; its log says where"}
        if row.changes:
            what = f"{row.method} {request.raw_path}"
            body = raw[:AUDITED_MAX].decode("utf-8", "replace")
            parts.log.note("warning", "audit", who=_who(parts), what=what, status=status, body=body)
        return _json(status, said)

    return handle


def _asked(request: web.Request, raw: bytes) -> Asked:
    try:
        body = orjson.loads(raw) if raw else {}
    except orjson.JSONDecodeError as error:
        raise Refused(400, "the body is not JSON") from error
    if not isinstance(body, dict):
        raise Refused(400, "the body is not a JSON object")
    return Asked(dict(request.match_info), dict(request.query), body)


def _who(parts: Parts) -> str:
    return "loopback" if parts.settings.admin_token is None else "admin token"


async def _reload(request: web.Request) -> web.Response:
    """Read the policies again; 422 with everything that is wrong, and the old ones stay."""
    problems = await reload(request.app[PARTS])
    return _json(422 if problems else 200, {"problems": problems})


async def _queue(request: web.Request) -> web.Response:
    """Who waits, for what, and what is taken of each rate."""
    queue = request.app[PARTS].queue
    return _json(200, told(queue.scheduler, queue.now_s(), queue.waiting_bytes))


async def _metrics(request: web.Request) -> web.Response:
    # In a thread: thousands of lines take a quarter of a second, and streams must not wait for them.
    parts = request.app[PARTS]
    bring(parts)
    body, content_type = await asyncio.to_thread(parts.metrics.render, request.headers.get("Accept", ""))
    return web.Response(body=body, headers={"Content-Type": content_type})
