"""A suite's answer in the form its caller takes: one event or JSON alone, its own id, no tool that it may not use."""

from urllib.parse import unquote

import orjson

from proxy.core import jsonrpc
from proxy.core.headers import accepts
from proxy.core.policy import McpNewer
from proxy.core.progress import Progress
from proxy.core.sse import Kept, Reader, whole, written
from proxy.core.toollist import CALL, LIST, Page, is_first_page, only, page_of
from proxy.core.usage import Meter
from proxy.errors import UPSTREAM
from proxy.mcp import newer
from proxy.server.call import Call
from proxy.server.parts import Parts

JSON = "application/json"
STREAM = "text/event-stream"


def takes_stream(call: Call) -> bool:
    """Whether the caller's `Accept` names event streams; one that names nothing gets JSON, which every client reads."""
    named = call.inbound.header("accept")
    json_ok, stream_ok = accepts(named)
    return stream_ok and (not json_ok or (named is not None and STREAM in named))


def passes_through(call: Call) -> bool:
    """Whether a stream may go on as it comes: it is the caller's alone, and nothing in it has to be left out."""
    alone = not call.shared and call.mcp is not None and call.mcp.method != LIST
    return alone and takes_stream(call) and not newer.bridged(call)


def progress_of(call: Call) -> Progress | None:
    """What passes on what is said within the call before its answer; None where its caller wants or takes nothing."""
    said = call.mcp
    if said is None or said.method != CALL or call.shared or not takes_stream(call) or not newer.bridged(call):
        return None
    if said.progress is None and said.log_level is None:
        return None
    return Progress(said)


def adapted(call: Call, parts: Parts, body: bytes, *, streamed: bool) -> tuple[bytes, str, int]:
    """Body, content type and status for the caller: what it may see, under its own id. streamed: the body is events."""
    message = message_of(body) if streamed else body
    told = None if message is None else _under_id(message, call.rpc_id)
    if told is None:
        sentence = "The tool suite's answer holds no JSON-RPC message."
        told = jsonrpc.error(call.rpc_id, UPSTREAM, sentence, {"reason": "upstream_broken"})
    elif call.mcp is not None and call.mcp.method == LIST:
        told = _list(call, parts, body, told)
    told, status = newer.lift(call, told, _kept_s(call, parts))
    # An error that has a status is no stream.
    return *in_form(call, told, streamed=streamed and not newer.bridged(call)), status


def _kept_s(call: Call, parts: Parts) -> float:
    """How long the answer is still kept here, so that a client need not ask again before."""
    if call.caching is None or not call.caching.key:
        return 0.0
    age_s = 0.0 if call.hit is None else parts.wall() - call.hit.stored_s
    return call.caching.decision.ttl_s - age_s


def in_form(call: Call, message: bytes, *, streamed: bool) -> tuple[bytes, str]:
    """A message as the caller takes it. streamed: the suite sent events, so a caller that takes both gets one."""
    json_ok, stream_ok = accepts(call.inbound.header("accept"))
    if (streamed and takes_stream(call)) or (stream_ok and not json_ok):
        return written(message), STREAM
    return message, JSON


def _list(call: Call, parts: Parts, body: bytes, message: bytes) -> bytes:
    """The list with the tools that the team may use; all of them are remembered. body: the answer as it came."""
    assert call.match is not None
    assert call.team is not None
    suite, team = unquote(call.match.values["suite"]), call.team
    if parts.toolbox.is_new(call.credential, suite, body) and (page := page_of(message)) is not None:
        _learn(call, parts, suite, page)
    bridged = newer.bridged(call)
    if (team.may_use_every_tool and not bridged) or page_of(message) is None:
        return message

    def shown(tool: str) -> bool:
        known = parts.toolbox.definition(call.credential, suite, tool) if bridged else None
        return team.may_use_tool(suite, tool) and (known is None or not known.wrong)

    return only(message, shown)


def _learn(call: Call, parts: Parts, suite: str, page: Page) -> None:
    said_s = parts.wall() if call.hit is None else call.hit.stored_s
    first, stored = is_first_page(call.body), call.hit is not None
    wrong = parts.toolbox.learn(call.credential, suite, page, first=first, said_s=said_s, stored=stored)
    if call.policy.mcp_newer is McpNewer.BRIDGE:
        for tool, why in wrong.items():
            parts.log.note("warning", "tool_left_out", id=call.id, suite=suite, tool=tool[:200], why=why[:400])


def kept(body: bytes, meter: Meter | None, method: str | None, *, streamed: bool) -> bytes | None:
    """What of an answer is stored: the message without an id; None for an error, an empty list, or half of a result."""
    message = message_of(body) if streamed else body
    if message is None or meter is None or meter.status != "result":
        return None
    result = orjson.loads(message).get("result")
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        return None
    if method != CALL and not ((page := page_of(message)) and page.tools):
        return None
    return jsonrpc.with_id(message, None)


def message_of(stream: bytes) -> bytes | None:
    """The response among the events of a whole stream."""
    reader = Reader(Kept)
    return jsonrpc.unwrap(whole(event) for event in (*reader.feed(stream), *reader.close()))


def _under_id(message: bytes, rpc_id: bytes | None) -> bytes | None:
    try:
        tree = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    return jsonrpc.with_id(message, rpc_id) if isinstance(tree, dict) and "jsonrpc" in tree else None
