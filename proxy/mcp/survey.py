"""What suites are there, and which tools each lists, asked through the stages as the caller would ask itself.

So permission, cache and limits are the same. What one suite does holds up no other, and nobody waits longer than
`LIST_MAX_S` for one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import orjson
from aiohttp import web

from proxy.core.toollist import LIST, page_of
from proxy.mcp.views import Source
from proxy.server import hits
from proxy.server.call import Call
from proxy.server.ids import new_id
from proxy.server.imagined import Imagined
from proxy.server.lists import entries_of
from proxy.server.parts import Parts
from proxy.server.routes import ROUTE, Match

Within = Callable[[Call, Parts], Awaitable[web.StreamResponse]]
"""Takes a call of a team through the stages behind identification."""

LIST_MAX_S: Final = 10.0
"""Longest wait for the list of one suite: the others must not wait for it."""

HUNG_S: Final = 60.0
AGAIN_MAX_S: Final = 1.0
"""A suite that did not answer in time is given only so long for a minute, so that callers wait for it once."""

PAGES_MAX: Final = 50
"""Pages read of one list."""

_HANDED_ON: Final = ("host", "cache-control", "x-sluicegate-wait-max")
"""Header lines of the caller that hold for what is asked of the suites, too."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What was said.

    suites:  names, where those were asked for.
    tools:   of one suite.
    why:     the reason there is no list, "" where there is one.
    sources: where its pages are kept, None for one that is not.
    """

    suites: tuple[str, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    why: str = ""
    sources: tuple[Source | None, ...] = ()


@dataclass(frozen=True, slots=True)
class _Told:
    """old: it is an older answer, as there was no good one.      late: as there was none in time.

    sent: the gateway was asked for it.
    """

    status: int
    body: bytes
    source: Source | None
    old: bool = False
    late: bool = False
    sent: bool = False

    @property
    def tree(self) -> Any:
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None

    @property
    def sentence(self) -> str:
        """The message of an error body, in whichever form."""
        tree = self.tree
        error = tree.get("error") if isinstance(tree, dict) else None
        return str(error.get("message") or "") if isinstance(error, dict) else ""


class Survey:
    """Asks in the name of one call."""

    def __init__(self, call: Call, parts: Parts, within: Within) -> None:
        self._call: Final = call
        self._parts: Final = parts
        self._within: Final = within

    async def suites(self) -> Listed:
        """The suites that the team may use."""
        try:
            told = await self._ask(Match(ROUTE["suites"], {}, ""), b"", _now_s() + LIST_MAX_S)
        except TimeoutError:
            return Listed(why=f"The gateway did not say within {LIST_MAX_S:g} s which tool suites there are.")
        if told.status != 200:
            why = told.sentence or f"The gateway answered {told.status} instead of its list of tool suites."
            return Listed(why=why)
        names = (str(entry["name"]) for entry in entries_of(told.tree) if entry.get("name"))
        return Listed(suites=tuple(dict.fromkeys(names)), sources=(told.source,))

    async def tools(self, suite: str) -> Listed:
        """Every page of a suite's list."""
        tools: list[Mapping[str, Any]] = []
        sources: list[Source | None] = []
        cursor: str | None = None
        place, old, late = (self._call.credential, suite), False, False
        longest_s = AGAIN_MAX_S if self._parts.toolbox.hung(place, _now_s()) else LIST_MAX_S
        due_s = _now_s() + longest_s
        try:
            for _ in range(PAGES_MAX):
                told = await self._page(suite, cursor, due_s)
                if (page := page_of(told.body)) is None:
                    why = told.sentence or f"the suite answered {told.status} without a list"
                    if told.sent:
                        self._failed(place, why)
                    return Listed(why=why)
                old, late = old or told.old, late or told.late
                tools += page.tools
                sources.append(told.source)
                if (cursor := page.cursor) is None:
                    break
        except TimeoutError:
            self._parts.toolbox.hangs(place, _now_s() + HUNG_S)
            why = f"no answer within {longest_s:g} s"
            self._failed(place, why)
            return Listed(why=why)
        if late:
            self._parts.toolbox.hangs(place, _now_s() + HUNG_S)
        else:
            self._parts.toolbox.answers(place)
        if old:
            self._failed(place, "the suite failed, and this name is not in its last list")
        return Listed(tools=tuple(tools), sources=tuple(sources))

    def failed(self, suite: str) -> str:
        """Why a suite gave the caller's team no list a moment ago, "" where it may be asked."""
        assert self._call.team is not None
        return self._parts.toolbox.failed((self._call.credential, suite), self._call.team.name, self._parts.wall())

    def _failed(self, place: tuple[str, str], why: str) -> None:
        assert self._call.team is not None
        self._parts.toolbox.fails(place, self._call.team.name, why, self._parts.wall())

    async def _page(self, suite: str, cursor: str | None, due_s: float) -> _Told:
        asks = {"jsonrpc": "2.0", "id": 1, "method": LIST, "params": {} if cursor is None else {"cursor": cursor}}
        found = Match(ROUTE["mcp"], {"suite": quote(suite, safe="")}, "")
        return await self._ask(found, orjson.dumps(asks), due_s)

    async def _ask(self, found: Match, body: bytes, due_s: float) -> _Told:
        """What the team is answered when it asks this itself.

        Raises TimeoutError at `due_s` of the loop's clock, where no older answer can be given instead.
        """
        call, parts = self._call, self._parts
        lines = {name: value for name in _HANDED_ON if (value := call.inbound.header(name)) is not None}
        lines |= {"accept": "application/json", "via": f"1.1 {parts.instance}"}
        asking = Call(new_id(), Imagined(found.route.method, "/", lines, body), call.policy, call.at_s)
        asking.led(found)
        asking.body = body
        asking.team, asking.key_id, asking.account = call.team, call.key_id, call.account
        asking.gateway_key, asking.credential = call.gateway_key, call.credential
        late = False
        try:
            async with asyncio.timeout_at(due_s):
                response = await self._within(asking, parts)
        except TimeoutError:
            if asking.stale is None:
                raise
            response, late = hits.serve(asking, parts, asking.stale), True
        said = response.body if isinstance(response, web.Response) else b""
        told = said if isinstance(said, bytes) else b""
        old = asking.cache_result == "stale"
        return _Told(response.status, told, _source(asking, parts), old, late, sent=asking.source is not None)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _source(asking: Call, parts: Parts) -> Source | None:
    """The entry of the cache that says what was answered just now; it may be too old to be given again."""
    if asking.caching is None or not asking.caching.key:
        return None
    entry = asking.hit or parts.cache.at_once(asking.caching.key)
    return None if entry is None else Source(entry, asking.caching.decision.ttl_s, given=asking.hit is not None)
