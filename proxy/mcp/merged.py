"""One MCP server with the tools of all suites: what it answers itself, and whose call a call is.

Lists are asked of the suites through the stages, as a caller would ask, so permission, cache and limits are the same. A
call is given to its suite with the suite's own name for the tool, and goes on as a call of that suite.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

import orjson
from aiohttp import web

from proxy import __version__
from proxy.core import jsonrpc
from proxy.core.body import Dialect as BodyKind
from proxy.core.newer import hinted
from proxy.core.splice import members, splice
from proxy.core.toollist import CALL, LIST, merged, owner_of, stood_for
from proxy.errors import UPSTREAM, ProxyError
from proxy.mcp import answers, local, newer
from proxy.mcp.survey import Listed, Survey, Within
from proxy.mcp.views import Source
from proxy.server import replies
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.server.routes import ROUTE, Match

UNAVAILABLE: Final = "sluicegate/unavailable"
"""Where a list says which suites are missing in it, and why."""


async def answer(call: Call, parts: Parts, within: Within) -> web.StreamResponse | None:
    """The answer of the merged server; None for a call of a tool, which is now one of its suite."""
    call.judged(await parts.judge.facts(call.body, BodyKind.MCP))
    if (here := local.answer(call, parts)) is not None:
        return here
    said = call.mcp
    assert said is not None
    if said.method == "initialize":
        return _told(call, parts, jsonrpc.result(said.id, _initialized(call.body)))
    if said.method == LIST:
        return await _listed(call, parts, within)
    if said.method == CALL:
        return await _hand_on(call, parts, within)
    unknown = jsonrpc.error(said.id, jsonrpc.METHOD_NOT_FOUND, f"Method not found: {str(said.method)[:200]}")
    return _told(call, parts, unknown)


async def foretold(call: Call, parts: Parts) -> web.StreamResponse | None:
    """As `answer`, but no suite is asked: an empty answer stands for a list.

    Raises ProxyError for a name that no list had yet.
    """
    call.judged(await parts.judge.facts(call.body, BodyKind.MCP))
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


async def _listed(call: Call, parts: Parts, within: Within) -> web.Response:
    """The answer to `tools/list`: what was made before where it still holds, else made of what the suites say."""
    assert call.team is not None
    own = b"" if call.gateway_key is None else sha256(call.gateway_key.encode()).digest()
    name = own, call.team.name, call.account or call.key_id, newer.bridged(call)
    # Who says how old an answer may be gets one that every suite's list was asked for in the same way.
    steers = call.inbound.header("cache-control") is not None
    found = None if steers else parts.views.find(name, call.policy, parts.cache, parts.wall())
    if found is not None:
        result, left_s = found
        call.cache_result, call.cache_status = "hit", f"sluicegate; hit; ttl={int(left_s)}"
        return _given(call, parts, result, left_s)
    made, sources = await _made(call, parts, within)
    if isinstance(made, str):
        return _told(call, parts, jsonrpc.error(call.rpc_id, UPSTREAM, made, {"reason": "upstream_broken"}))
    if sources and all(source.given for source in sources):
        parts.views.keep(name, call.policy, made, sources)
    return _given(call, parts, made, min((source.left_s(parts.wall()) for source in sources), default=0.0))


def _given(call: Call, parts: Parts, result: bytes, left_s: float) -> web.Response:
    if newer.bridged(call):
        result = hinted(result, left_s)
    body, content_type = answers.in_form(call, jsonrpc.with_result(call.rpc_id, result), streamed=False)
    return replies.local_json(call, parts, 200, body, {"Content-Type": content_type})


async def _made(call: Call, parts: Parts, within: Within) -> tuple[bytes | str, Sequence[Source]]:
    """The tools of all suites that answer; those that do not are named beside them.

    A sentence instead where nobody knows the suites. With it, all that it was made of; nothing where some of that is
    not kept.
    """
    survey = Survey(call, parts, within)
    known = await survey.suites()
    if known.why:
        return known.why, ()
    lists = dict(zip(known.suites, await asyncio.gather(*map(survey.tools, known.suites)), strict=True))
    down = [{"suite": suite, "reason": listed.why} for suite, listed in lists.items() if listed.why]
    for one in down:
        parts.log.note("warning", "suite_unavailable", id=call.id, **one)
    shown = ((suite, _shown(suite, listed, call, parts)) for suite, listed in lists.items())
    result: dict[str, Any] = {"tools": merged(shown, call.policy.tool_aliases)}
    if down:
        return orjson.dumps({**result, "_meta": {UNAVAILABLE: down}}), ()
    made_of = [source for listed in (known, *lists.values()) for source in listed.sources]
    sources = [source for source in made_of if source is not None]
    return orjson.dumps(result), sources if len(sources) == len(made_of) else ()


def _shown(suite: str, listed: Listed, call: Call, parts: Parts) -> Iterable[Mapping[str, Any]]:
    """The tools that clients of the caller's revision may be shown."""
    bridged = newer.bridged(call)
    for tool in listed.tools:
        known = parts.toolbox.definition(call.credential, suite, tool["name"]) if bridged else None
        if known is None or not known.wrong:
            yield tool


# --- calls ---


async def _hand_on(call: Call, parts: Parts, within: Within) -> web.StreamResponse | None:
    """Make the call one of its suite; answers a name that no suite has."""
    assert call.mcp is not None
    name = call.mcp.tool or ""
    found = _lookup(name, call, parts)
    if found is None:
        # Nobody has listed tools since the start, or this one is new.
        missing = await _look_for(name, call, parts, within)
        found = _lookup(name, call, parts)
        if found is None:
            why = "".join(f"; no list of {suite}: {said}" for suite, said in missing.items())
            unknown = jsonrpc.error(call.rpc_id, jsonrpc.INVALID_PARAMS, f"Unknown tool: {name[:200]}{why[:2000]}")
            return _told(call, parts, unknown)
    _give(call, *found)
    return None


async def _look_for(name: str, call: Call, parts: Parts, within: Within) -> Mapping[str, str]:
    """Have the suite listed that could have a tool of this name, or all of them where the name does not tell.

    Those that give no list, and why; one that gave none a moment ago is not asked again.
    """
    survey = Survey(call, parts, within)
    known = await survey.suites()
    suite = owner_of(name)
    may = known.suites if suite is None else [one for one in known.suites if one == suite]
    missing = {one: why for one in may if (why := survey.failed(one))}
    asked = [one for one in may if one not in missing]
    lists = await asyncio.gather(*map(survey.tools, asked))
    return missing | {one: listed.why for one, listed in zip(asked, lists, strict=True) if listed.why}


def _give(call: Call, suite: str, tool: str) -> None:
    """From here on it is a call of that suite, under the suite's own name for the tool."""
    params = members(call.body)["params"]
    spelt = members(call.body[params.start : params.end])["name"]
    call.body = splice(call.body, [(params.start + spelt.start, params.start + spelt.end, orjson.dumps(tool))])
    call.led(Match(ROUTE["mcp"], {"suite": quote(suite, safe="")}, ""))


def _lookup(name: str, call: Call, parts: Parts) -> tuple[str, str] | None:
    """Suite and tool of a name, by alias or by the table of what was listed; never by taking the name apart."""
    stands_for = call.policy.tool_aliases.get(name)
    if stands_for is not None:
        return stood_for(stands_for)
    return parts.toolbox.named(name)
