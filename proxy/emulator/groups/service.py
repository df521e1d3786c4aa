"""One running group service: who may ask, which endpoint answers, and the envelope around it."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
from aiohttp import web

from proxy.emulator.groups.endpoints import Ask
from proxy.emulator.groups.routes import ROUTES, Route
from proxy.emulator.groups.tenant import ACCOUNTS, Account, Refusal, Tenant
from proxy.emulator.journal import Journal, Seen
from proxy.emulator.shapes import problems

PREFIX: Final = "/v1/admin/member-groups/"
LISTS: Final = ("/v1/member-groups/", "/v1/member-groups/managed/")
SAFE: Final = ("GET", "HEAD", "OPTIONS")


class GroupService:
    """The double of the administrative service; it stands on a port of its own, as the real one is another host."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, enterprise: bool = True) -> None:
        self.host = host
        self.port = port
        self.tenant = Tenant(enterprise=enterprise)
        self.journal = Journal()
        self.failing: list[int] = []
        """Statuses the next requests are answered with, instead of what was asked for."""
        self._enterprise = enterprise
        self._patterns = [(_pattern(route.path), route) for route in ROUTES]
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self.host, self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def reset(self) -> None:
        self.tenant = Tenant(enterprise=self._enterprise)
        self.journal.clear()
        self.failing.clear()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers]
        seen = self.journal.open(request.method, request.raw_path, headers)
        seen.got(await request.read())
        try:
            status, value = 200, {"success": True, **self._answer(request, seen)}
        except Refusal as refusal:
            status, value = refusal.status, {"success": False, "message": refusal.message}
        seen.status = status
        seen.finished = True
        self.journal.ring()
        return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")

    def _answer(self, request: web.BaseRequest, seen: Seen) -> dict[str, Any]:
        if self.failing:
            raise Refusal(self.failing.pop(0), "failing as asked")
        path = request.raw_path.partition("?")[0]
        if path in LISTS and request.method == "GET":
            return {"data": self._listed(_session(request), managed=path.endswith("managed/"))}
        route, parts = self._found(request.method, path)
        caller = _administrator(request, self.url)
        body = _body(seen.body or b"", route) if route.fields else {}
        ask = Ask(caller, int(parts.get("group", 0)), int(parts.get("member", 0)), request.query, body)
        data = route.answer(self.tenant, ask)
        return {} if data is None else {"data": data}

    def _found(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        if not path.startswith(PREFIX):
            raise Refusal(404, "not found")
        rest, known = path.removeprefix(PREFIX), False
        for pattern, route in self._patterns:
            if match := pattern.fullmatch(rest):
                if route.method == method:
                    return route, match.groupdict()
                known = True
        raise Refusal(405, "method not allowed") if known else Refusal(404, "not found")

    def _listed(self, caller: Account, *, managed: bool) -> dict[str, Any]:
        groups = [
            group
            for group in self.tenant.groups.values()
            if (self.tenant.manages(caller, group.ident) if managed else not group.hidden)
        ]
        rows = [{"id": group.ident, "ko_name": group.ko_name, "en_name": group.en_name} for group in groups]
        return {"results": rows, "pagination": {"page": 1, "total_pages": 1, "total_items": len(rows)}}


@asynccontextmanager
async def running_groups(
    host: str = "127.0.0.1", port: int = 0, *, enterprise: bool = True
) -> AsyncIterator[GroupService]:
    """A group service on a real port for as long as the block lasts."""
    service = GroupService(host, port, enterprise=enterprise)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(path.replace("{group}", r"(?P<group>\d+)").replace("{member}", r"(?P<member>\d+)"))


def _session(request: web.BaseRequest) -> Account:
    account = ACCOUNTS.get(request.headers.get("x-access-token") or request.cookies.get("sessionId", ""))
    if account is None:
        raise Refusal(401, "no session or token, or it has expired")
    return account


def _administrator(request: web.BaseRequest, origin: str) -> Account:
    """The caller, when active and an administrator. A session is believed from our own pages only."""
    account = _session(request)
    by_session = "x-access-token" not in request.headers
    if by_session and request.method not in SAFE and request.headers.get("Origin") != origin:
        raise Refusal(403, "the Origin of the request is not this service")
    if not account.active or not account.administrator:
        raise Refusal(403, "the account is not an active administrator")
    return account


def _body(data: bytes, route: Route) -> dict[str, Any]:
    """The body where it fits the table of the endpoint; a misfit is 400, the one status named for it."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise Refusal(400, "the body is not JSON") from None
    if not isinstance(value, dict):
        raise Refusal(400, "the body is not an object")
    allowed = route.nulls & {name for name, given in value.items() if given is None}
    fields = [field for field in route.fields if field.name not in allowed]
    for item in problems(value, fields, ()):
        raise Refusal(400, f"{'.'.join(map(str, item['loc']))}: {item['msg']}")
    for name, most in route.counts:
        if not 1 <= len(value[name]) <= most:
            raise Refusal(400, f"{name}: 1 to {most} items")
    if value.get("member_id", 1) < 1:
        raise Refusal(400, "member_id: must be greater than 0")
    return value
