"""Serves the pages, their twins and three files. Nothing here changes anything, so nothing can be forged."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final

import orjson
from aiohttp import web

from proxy.admin.call import OURS, Asked, Refused
from proxy.admin.page.frame import Page, document
from proxy.admin.page.markup import tag
from proxy.admin.page.table import VIEWS, View
from proxy.server.parts import Parts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

FILES: Final = {"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}

GUARDS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Header lines of every page: only our own files, in no frame, kept nowhere."""


def add_pages(app: web.Application, parts: Parts) -> None:
    """Put the pages under their paths."""
    for view in VIEWS:
        # The twin first: a team's name may end in anything, but a path that ends in .json is a twin.
        app.router.add_get(view.twin, _twin(view, parts))
        app.router.add_get(view.path, _page(view, parts))
    for name, kind in FILES.items():
        app.router.add_get(f"/page/{name}", _file(name, kind))


def _asked(request: web.Request) -> Asked:
    return Asked(dict(request.match_info), dict(request.query))


def _twin(view: View, parts: Parts) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        try:
            status, said = 200, await view.read(_asked(request), parts)
        except Refused as refused:
            status, said = refused.status, {"error": refused.message}
        headers = {**GUARDS, OURS: "admin"}
        return web.Response(status=status, body=orjson.dumps(said), content_type="application/json", headers=headers)

    return handle


def _page(view: View, parts: Parts) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        try:
            status, page = 200, view.show(await view.read(_asked(request), parts), parts.wall())
        except Refused as refused:
            status, page = refused.status, Page("Not there", f"{refused.message}.", tag("p"))
        twin = view.twin if "{" not in view.twin else f"{request.raw_path.partition('?')[0]}.json"
        query = f"?{request.query_string}" if request.query_string else ""
        whole = document(page, f"{twin}{query}")
        return web.Response(status=status, text=whole, content_type="text/html", charset="utf-8", headers=GUARDS)

    return handle


def _file(name: str, kind: str) -> Handler:
    body = files("proxy.admin.page").joinpath(name).read_bytes()

    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=GUARDS)

    return handle
