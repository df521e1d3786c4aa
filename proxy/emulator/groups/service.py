"""One running group service: who may ask, which endpoint answers, and the envelope around it."""

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import orjson
from aiohttp import web

from proxy.emulator.groups import openapi
from proxy.emulator.groups.accounts import ACCOUNTS, SESSIONS, Account, account_of
from proxy.emulator.groups.endpoints import Ask
from proxy.emulator.groups.openapi import LISTS_PREFIX, PREFIX
from proxy.emulator.groups.records import NORTH, PEOPLE, Refusal
from proxy.emulator.groups.routes import LISTS, ROUTES, Route
from proxy.emulator.groups.tenant import Tenant
from proxy.emulator.journal import Journal, Seen
from proxy.emulator.shapes import problems

SAFE: Final = ("GET", "HEAD", "OPTIONS")
FIRST_NEW_ID: Final = 1001


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is not the service's own: of something in between, or of a service in trouble."""

    status: int
    body: bytes = b'{"success":false,"message":"failing as asked"}'
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outage:
    """From request number `first` on, connections close without an answer. `acted`: the first is carried out before."""

    first: int
    acted: bool = False


class GroupService:
    """The double of the administrative service; it stands on a port of its own, as the real one is another host."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        enterprise: bool = True,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """wall: Unix seconds, for the end of tokens."""
        self.host = host
        self.port = port
        self.journal = Journal()
        self.failing: list[Failure] = []
        """What the next requests are answered with, instead of what they asked for."""
        self.outage: Outage | None = None
        self.tenants: dict[str, Tenant] = {}
        self._wall = wall
        self._enterprise = enterprise
        self._tables = ((PREFIX, _patterns(ROUTES), _administrator), (LISTS_PREFIX, _patterns(LISTS), _anybody))
        self._runner: web.ServerRunner | None = None
        self.reset()

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def tenant(self) -> Tenant:
        """The tenant of the first accounts."""
        return self.tenants[NORTH]

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self.host, self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def reset(self) -> None:
        new_ids = count(FIRST_NEW_ID)
        self.tenants = {name: Tenant(name, new_ids, enterprise=self._enterprise) for name in PEOPLE}
        self.journal.clear()
        self.failing.clear()
        self.outage = None

    def break_after(self, requests: int, *, acted: bool = False) -> None:
        """Answer so many more requests, then none."""
        self.outage = Outage((self.journal[-1].number if self.journal else 0) + requests + 1, acted)

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers]
        seen = self.journal.open(request.method, request.raw_path, headers)
        data = await request.read()
        seen.got(data)
        outage = self.outage
        if outage is None or seen.number < outage.first:
            answer = self._answer(request, data)
            self._note(seen, answer.status)
            return answer
        if outage.acted and seen.number == outage.first:
            self._answer(request, data)
        if request.transport is not None:
            request.transport.abort()
        self._note(seen, None)
        return web.Response()

    def _note(self, seen: Seen, status: int | None) -> None:
        seen.status = status
        seen.finished = True
        self.journal.ring()

    def _answer(self, request: web.BaseRequest, data: bytes) -> web.Response:
        if self.failing:
            failure = self.failing.pop(0)
            return web.Response(
                status=failure.status,
                body=failure.body,
                content_type=failure.content_type,
                headers=failure.headers,
            )
        if request.method == "GET" and request.path == openapi.PATH:
            return _json(openapi.document(), 200, {})
        try:
            value = {"success": True, **self._data(request, data)}
        except Refusal as refusal:
            value = {"success": False, "message": refusal.message}
            return _json(value, refusal.status, refusal.headers)
        return _json(value, 200, {})

    def _data(self, request: web.BaseRequest, data: bytes) -> dict[str, Any]:
        account, by_session = self._account(request)
        route, parts, judge = self._found(request.method, request.raw_path.partition("?")[0])
        judge(account)
        if by_session and request.method not in SAFE and request.headers.get("Origin") != self.url:
            raise Refusal(403, "the Origin of the request is not this service")
        body = _body(data, route) if route.fields else {}
        ask = Ask(account, int(parts.get("group", 0)), int(parts.get("member", 0)), request.query, body)
        answered = route.answer(self.tenants[account.tenant], ask)
        return {} if answered is None else {"data": answered}

    def _account(self, request: web.BaseRequest) -> tuple[Account, bool]:
        """Who calls, and whether by a session: its cookie is believed from our own pages only."""
        token = request.headers.get("x-access-token")
        name = SESSIONS.get(request.cookies.get("sessionId", ""))
        account = ACCOUNTS[name] if name else None
        if token is not None:
            account = account_of(token, self._wall())
        if account is None:
            raise Refusal(401, "no session or token, or it has expired")
        return account, token is None

    def _found(self, method: str, path: str) -> tuple[Route, Mapping[str, str], Callable[[Account], None]]:
        allowed = []
        for prefix, patterns, judge in self._tables:
            for pattern, route in patterns:
                if path.startswith(prefix) and (match := pattern.fullmatch(path.removeprefix(prefix))):
                    if route.method == method:
                        return route, match.groupdict(), judge
                    allowed.append(route.method)
        if allowed:
            raise Refusal(405, "method not allowed", {"Allow": ", ".join(allowed)})
        raise Refusal(404, "not found")


@asynccontextmanager
async def running_groups(host: str = "127.0.0.1", port: int = 0, **options: Any) -> AsyncIterator[GroupService]:
    """A group service on a real port for as long as the block lasts."""
    service = GroupService(host, port, **options)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


def _patterns(routes: tuple[Route, ...]) -> list[tuple[re.Pattern[str], Route]]:
    def pattern(path: str) -> re.Pattern[str]:
        return re.compile(
            path.replace("{group}", "(?P<group>[0-9]{1,18})").replace("{member}", "(?P<member>[0-9]{1,18})")
        )

    return [(pattern(route.path), route) for route in routes]


def _json(value: Any, status: int, headers: Mapping[str, str]) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json", headers=headers)


def _anybody(account: Account) -> None:
    if not account.active:
        raise Refusal(403, "the account is not active")


def _administrator(account: Account) -> None:
    if not account.active or not account.administrator:
        raise Refusal(403, "the account is not an active administrator")


def _body(data: bytes, route: Route) -> dict[str, Any]:
    """The body where it fits the table of the endpoint; a misfit is 400, the one status named for it."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise Refusal(400, "the body is not JSON") from None
    if not isinstance(value, dict):
        raise Refusal(400, "the body is not an object")
    nulls = {name for name, given in value.items() if given is None}
    if stray := nulls & route.solid:
        raise Refusal(400, f"{min(stray)}: must not be null")
    fields = [field for field in route.fields if field.name not in route.nulls & nulls]
    for item in problems(value, fields, ()):
        raise Refusal(400, f"{'.'.join(map(str, item['loc']))}: {item['msg']}")
    for name, most in route.counts:
        if not 1 <= len(value[name]) <= most:
            raise Refusal(400, f"{name}: 1 to {most} items")
    for name in route.above_0:
        if value[name] <= 0:
            raise Refusal(400, f"{name}: must be greater than 0")
    return value
