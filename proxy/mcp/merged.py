"""One MCP server with the tools of all suites: what it answers itself, and whose call a call is.

Lists are asked of the suites through the stages, as a caller would ask, so permission, cache and limits are the same. A
call is given to its suite with the suite's own name for the tool, and goes on as a call of that suite.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import orjson
from aiohttp import web

from proxy import __version__
from proxy.core import jsonrpc
from proxy.core.body import Dialect as BodyKind
from proxy.core.splice import members, splice
from proxy.core.toollist import CALL, LIST, Page, merged, page_of
from proxy.errors import UPSTREAM, ProxyError
from proxy.mcp import answers, local, newer
from proxy.server import replies
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

PAGES_MAX: Final = 50
"""Pages read of one list."""

UNAVAILABLE: Final = "sluicegate/unavailable"
"""Where a list says which suites are missing in it, and why."""

_HANDED_ON: Final = ("host", "cache-control", "x-sluicegate-wait-max")
"""Header lines of the caller that hold for what is asked of the suites, too."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What one suite said. why: the reason there is no list, "" where there is one."""

    suite: str
    tools: tuple[Mapping[str, Any], ...] = ()
    why: str = ""


async def answer(call: Call, parts: Parts, within: Within) -> web.StreamResponse | None:
    """The answer of the merged server; None for a call of a tool, which is now one of its suite."""
    call.facts = await parts.judge.facts(call.body, BodyKind.MCP)
    if (here := local.answer(call, parts)) is not None:
        return here
    said = call.mcp
    assert said is not None
    if said.method == "initialize":
        return _told(call, parts, jsonrpc.result(said.id, _initialized(call.body)))
    if said.method == LIST:
        return _told(call, parts, await _list(call, parts, within))
    if said.method == CALL:
        return await _hand_on(call, parts, within)
    unknown = jsonrpc.error(said.id, jsonrpc.METHOD_NOT_FOUND, f"Method not found: {str(said.method)[:200]}")
    return _told(call, parts, unknown)


async def foretold(call: Call, parts: Parts) -> web.StreamResponse | None:
    """As `answer`, but no suite is asked: an empty answer stands for a list.

    Raises ProxyError for a name that no list had yet.
    """
    call.facts = await parts.judge.facts(call.body, BodyKind.MCP)
    if (here := local.answer(call, parts)) is not None:
        return here
    if call.mcp is None or call.mcp.method != CALL:
        return web.Response()
    name = call.mcp.tool or ""
    found = _lookup(name, call, parts)
    if found is None:
        raise ProxyError(
            "bad_request",
            f"No list of tools since the proxy's start has {name[:200]!r}, and a real call would ask all suites for "
            "theirs. Call tools/list once and ask again, or ask about the suite's own path, /v1/mcp/SUITE.",
        )
    _give(call, *found)
    return None


def _told(call: Call, parts: Parts, message: bytes) -> web.Response:
    message, status = newer.lift(call, message, 0.0)
    body, content_type = answers.in_form(call, message, streamed=False)
    return replies.local_json(call, parts, status, body, {"Content-Type": content_type})


def _initialized(body: bytes) -> dict[str, Any]:
    params = orjson.loads(body).get("params")
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    return {
        "protocolVersion": asked if asked in jsonrpc.LEGACY_VERSIONS else jsonrpc.LEGACY_VERSIONS[-1],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "sluicegate", "version": __version__},
    }


# --- lists ---


async def _list(call: Call, parts: Parts, within: Within) -> bytes:
    """The tools of all suites that answer; those that do not are named beside them."""
    assert call.mcp is not None
    names = await _suites(call, parts, within)
    if isinstance(names, str):
        return jsonrpc.error(call.rpc_id, UPSTREAM, names, {"reason": "upstream_broken"})
    lists = await asyncio.gather(*(list_of(name, call, parts, within) for name in names))
    down = [{"suite": one.suite, "reason": one.why} for one in lists if one.why]
    for one in down:
        parts.log.note("warning", "suite_unavailable", id=call.id, **one)
    tools = merged(((one.suite, one.tools) for one in lists), call.policy.tool_aliases)
    return jsonrpc.result(call.rpc_id, {"tools": tools, **({"_meta": {UNAVAILABLE: down}} if down else {})})


async def _suites(call: Call, parts: Parts, within: Within) -> list[str] | str:
    """Names of the suites that the team may use, or the sentence that says why nobody knows them."""
    status, body = await _ask(call, parts, within, Match(ROUTE["suites"], {}, ""), b"")
    tree = _tree(body)
    if status != 200:
        return _sentence(tree) or f"The gateway answered {status} instead of its list of tool suites."
    return [str(entry["name"]) for entry in entries_of(tree) if entry.get("name")]


async def list_of(suite: str, call: Call, parts: Parts, within: Within) -> Listed:
    """Every page of a suite's list."""
    tools: list[Mapping[str, Any]] = []
    cursor: str | None = None
    try:
        async with asyncio.timeout(LIST_MAX_S):
            for _ in range(PAGES_MAX):
                page = await _page(suite, cursor, call, parts, within)
                if isinstance(page, str):
                    return Listed(suite, why=page)
                tools += page.tools
                if (cursor := page.cursor) is None:
                    break
    except TimeoutError:
        return Listed(suite, why=f"no answer within {LIST_MAX_S:g} s")
    return Listed(suite, tuple(tools))


async def _page(suite: str, cursor: str | None, call: Call, parts: Parts, within: Within) -> Page | str:
    asks = {"jsonrpc": "2.0", "id": 1, "method": LIST, "params": {} if cursor is None else {"cursor": cursor}}
    found = Match(ROUTE["mcp"], {"suite": quote(suite, safe="")}, "")
    status, body = await _ask(call, parts, within, found, orjson.dumps(asks))
    page = page_of(body)
    return page if page is not None else _sentence(_tree(body)) or f"the suite answered {status} without a list"


async def _ask(call: Call, parts: Parts, within: Within, found: Match, body: bytes) -> tuple[int, bytes]:
    """Status and body of what the caller's team is answered when it asks this itself."""
    lines = {name: value for name in _HANDED_ON if (value := call.inbound.header(name)) is not None}
    lines |= {"accept": "application/json", "via": f"1.1 {parts.instance}"}
    asking = Call(new_id(), Imagined(found.route.method, "/", lines, body), call.policy, call.at_s)
    asking.match, asking.body = found, body
    asking.team, asking.key_id = call.team, call.key_id
    asking.gateway_key, asking.credential = call.gateway_key, call.credential
    response = await within(asking, parts)
    told = response.body if isinstance(response, web.Response) else b""
    return response.status, told if isinstance(told, bytes) else b""


def _tree(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _sentence(tree: Any) -> str:
    """The message of an error body, in whichever form."""
    error = tree.get("error") if isinstance(tree, dict) else None
    return str(error.get("message") or "") if isinstance(error, dict) else ""


# --- calls ---


async def _hand_on(call: Call, parts: Parts, within: Within) -> web.StreamResponse | None:
    """Make the call one of its suite; answers a name that no suite has."""
    assert call.mcp is not None
    name = call.mcp.tool or ""
    found = _lookup(name, call, parts)
    if found is None:
        # Nobody has listed tools since the start, or this one is new.
        await _list(call, parts, within)
        found = _lookup(name, call, parts)
    if found is None:
        unknown = jsonrpc.error(call.rpc_id, jsonrpc.INVALID_PARAMS, f"Unknown tool: {name[:200]}")
        return _told(call, parts, unknown)
    _give(call, *found)
    return None


def _give(call: Call, suite: str, tool: str) -> None:
    """From here on it is a call of that suite, under the suite's own name for the tool."""
    params = members(call.body)["params"]
    spelt = members(call.body[params.start : params.end])["name"]
    call.body = splice(call.body, [(params.start + spelt.start, params.start + spelt.end, orjson.dumps(tool))])
    call.match = Match(ROUTE["mcp"], {"suite": quote(suite, safe="")}, "")


def _lookup(name: str, call: Call, parts: Parts) -> tuple[str, str] | None:
    """Suite and tool of a name, by alias or by the table of what was listed; never by taking the name apart."""
    stands_for = call.policy.tool_aliases.get(name)
    if stands_for is not None:
        suite, _, tool = stands_for.partition(".")
        return suite, tool
    return parts.toolbox.named(name)
