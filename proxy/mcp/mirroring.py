"""Whether a call of the newer revision repeats in its header what its tool wants repeated there."""

from urllib.parse import unquote

import orjson
from aiohttp import web

from proxy.core import jsonrpc
from proxy.core.mirrored import PREFIX, mismatch
from proxy.core.newer import HEADER_MISMATCH
from proxy.core.toollist import Definition
from proxy.mcp import newer
from proxy.mcp.survey import Survey, Within
from proxy.server.call import Call
from proxy.server.parts import Parts


async def refusal(call: Call, parts: Parts, within: Within | None) -> web.Response | None:
    """The answer to a header that contradicts the arguments; None for what may go on.

    What nobody can find in a list of its suite has nothing to repeat.
    within: asks the suite for its list where none was seen; None: nobody may be asked.
    """
    if call.mcp is None or call.mcp.tool is None or not newer.bridged(call):
        return None
    known = _definition(call, parts)
    if known is not None and not known.mirrors:
        return None
    arguments = orjson.loads(call.body)["params"].get("arguments")
    lines = call.inbound.header_lines
    if not arguments and not any(name.lower().startswith(PREFIX) for name, _ in lines):
        return None
    if known is None and within is not None:
        await Survey(call, parts, within).tools(_suite(call))
        known = _definition(call, parts)
    why = None if known is None else mismatch(known.mirrors, arguments, lines)
    return None if why is None else newer.told(call, parts, jsonrpc.error(call.rpc_id, HEADER_MISMATCH, why))


def _suite(call: Call) -> str:
    assert call.match is not None
    return unquote(call.match.values["suite"])


def _definition(call: Call, parts: Parts) -> Definition | None:
    assert call.mcp is not None
    return parts.toolbox.definition(call.credential, _suite(call), call.mcp.tool)
