"""JSON-RPC 2.0 as MCP uses it: what a request asks, and answers that carry the caller's id exactly as it was written.

Ids are kept as the bytes they were: 0 is the first id of four clients, others send text, and a number such as
12345678901234567890 or 1.0 must come back unchanged.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from proxy.core.names import NAME_MAX
from proxy.core.sse import Event
from proxy.errors import ProxyError

# fmt: off
PARSE_ERROR:         Final = -32700
INVALID_REQUEST:     Final = -32600
METHOD_NOT_FOUND:    Final = -32601
INVALID_PARAMS:      Final = -32602
UNSUPPORTED_VERSION: Final = -32022
# fmt: on

LEGACY_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions whose clients begin with `initialize`; the gateway speaks these."""

MCP_METHODS: Final = frozenset(
    {
        *("initialize", "tools/list", "tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get"),
        "completion/complete",
    }
)
"""Methods that stand under their own name in what is counted and traced; a caller can invent any."""

METHODS: Final = MCP_METHODS | {
    *("ping", "server/discover", "logging/setLevel", "resources/templates/list", "resources/subscribe"),
    *("resources/unsubscribe", "notifications/initialized", "notifications/cancelled", "notifications/progress"),
    *("notifications/roots/list_changed", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel"),
    *("subscriptions/listen",),
}
"""What clients send in any revision; suites may have methods of their own besides."""

NULL_ID: Final = b"null"

_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
_GUARDED: Final = frozenset({"jsonrpc", "id", "method", "params"})


@dataclass(frozen=True, slots=True)
class Call:
    """What one MCP body is.

    method:      None in a response of the caller's and in a batch.
    id:          the id's bytes as written; None when there is none (a notification or a batch).
    tool:        name of the tool in a `tools/call`.
    is_response: answers a request of the server's.
    version:     protocol version that the request itself carries (from 2026-07-28 on).
    cancels:     id of the call that a notification takes back, as `orjson` writes it.
    progress:    the token under which the caller wants to be told of progress, as `orjson` writes it.
    log_level:   the least level of log messages that it wants (from 2026-07-28 on).
    """

    method: str | None = None
    id: bytes | None = None
    tool: str | None = None
    is_batch: bool = False
    is_response: bool = False
    version: str | None = None
    cancels: bytes | None = None
    progress: bytes | None = None
    log_level: str | None = None

    @property
    def is_notification(self) -> bool:
        return self.method is not None and self.id is None


def call_of(tree: Any, body: bytes) -> Call:
    """Read a strictly decoded body. Raises ProxyError `bad_request` for what is no JSON-RPC message."""
    if isinstance(tree, list):
        return Call(is_batch=True)
    if not isinstance(tree, dict):
        raise _invalid("it must be an object")
    _refuse_odd_case(tree, _GUARDED)
    if tree.get("jsonrpc") != "2.0":
        raise _invalid('jsonrpc must be "2.0"')
    call_id = _id_bytes(tree, body)
    if "method" not in tree:
        if "result" in tree or "error" in tree:
            return Call(id=call_id, is_response=True)
        raise _invalid("it has no method")
    method = tree["method"]
    if not isinstance(method, str):
        raise _invalid("method must be text")
    params = tree.get("params")
    if not isinstance(params, dict):
        if method == "tools/call":
            raise _invalid("params must be an object with the tool's name")
        return Call(method, call_id)
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    return Call(
        method,
        call_id,
        _tool(method, params),
        version=_text(meta.get(_VERSION_KEY)),
        cancels=scalar(params.get("requestId")) if method == "notifications/cancelled" else None,
        progress=scalar(meta.get("progressToken")),
        log_level=_text(meta.get(_LEVEL_KEY)),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def scalar(value: Any) -> bytes | None:
    """An id or a token as `orjson` writes it; None for what is neither text nor a number."""
    return orjson.dumps(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _tool(method: str, params: Mapping[str, Any]) -> str | None:
    if method != "tools/call":
        return None
    _refuse_odd_case(params, frozenset({"name", "arguments"}))
    name = params.get("name")
    if not isinstance(name, str):
        raise _invalid("params.name must be text")
    if len(name) > NAME_MAX:
        raise _invalid(f"params.name is longer than {NAME_MAX} characters, and no tool has such a name")
    return name


def _refuse_odd_case(tree: Mapping[str, Any], names: frozenset[str]) -> None:
    # Some decoders match names without regard to case: "Method" would be another request for them than for us.
    for name in tree:
        if name not in names and name.casefold() in names:
            raise _invalid(f"a member is named like {name.casefold()} in another case")


def _invalid(why: str) -> ProxyError:
    return ProxyError("bad_request", f"The body is no JSON-RPC request: {why}.")


def _id_bytes(tree: Mapping[str, Any], body: bytes) -> bytes | None:
    if "id" not in tree:
        return None
    if type(tree["id"]) not in (str, int, float, type(None)):
        raise _invalid("id must be text, a number or null")
    span = id_span(body)
    return None if span is None else body[span[0] : span[1]]


_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STEP: Final = re.compile(rb"(?P<text>" + _TEXT + rb")|(?P<open>[{\[])|(?P<close>[}\]])", re.DOTALL)
_AFTER_NAME: Final = re.compile(rb"\s*+:\s*+(" + _TEXT + rb"|[^\s,}\]\[{]++)?", re.DOTALL)


def id_span(message: bytes) -> tuple[int, int] | None:
    """Where the value of the top-level `id` stands in a JSON object; None when it has none that is a scalar."""
    depth, at = 0, 0
    while step := _STEP.search(message, at):
        at = step.end()
        if step["open"]:
            depth += 1
        elif step["close"]:
            depth -= 1
        elif depth == 1 and (value := _AFTER_NAME.match(message, at)) and orjson.loads(step["text"]) == "id":
            return value.span(1) if value[1] is not None else None
    return None


# --- answers ---


def result(call_id: bytes | None, value: Any) -> bytes:
    """A result for the caller's id."""
    return orjson.dumps({"jsonrpc": "2.0", "id": orjson.Fragment(call_id or NULL_ID), "result": value})


def with_result(call_id: bytes | None, written: bytes) -> bytes:
    """A result that is written already, for the caller's id."""
    return b'{"jsonrpc":"2.0","id":' + (call_id or NULL_ID) + b',"result":' + written + b"}"


def error(
    call_id: bytes | None,
    code: int,
    message: str,
    data: Mapping[str, Any] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> bytes:
    """An error for the caller's id; null when nobody knows it.

    beside: members next to those of JSON-RPC, for callers that read the gateway's own form.
    """
    body: dict[str, Any] = {"code": code, "message": message}
    if data:
        body["data"] = data
    return orjson.dumps({"jsonrpc": "2.0", "id": orjson.Fragment(call_id or NULL_ID), "error": body, **(beside or {})})


def unsupported_version(call_id: bytes | None, asked: str | None) -> bytes:
    """The answer that makes newer clients fall back to `initialize`."""
    data = {"supported": LEGACY_VERSIONS, "requested": asked}
    return error(call_id, UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def with_id(answer: bytes, call_id: bytes | None) -> bytes:
    """An upstream answer under the caller's id; all other bytes stay. Gateways answer errors with `id: null`."""
    span = id_span(answer)
    wanted = call_id or NULL_ID
    if span is None:
        at = answer.index(b"{") + 1
        comma = b"," if answer[at:].lstrip()[:1] != b"}" else b""
        return answer[:at] + b'"id":' + wanted + comma + answer[at:]
    if answer[span[0] : span[1]] == wanted:
        return answer
    return answer[: span[0]] + wanted + answer[span[1] :]


def is_error(answer: bytes) -> bool:
    """Whether a body is a JSON-RPC error already."""
    try:
        tree = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return False
    return isinstance(tree, dict) and "jsonrpc" in tree and isinstance(tree.get("error"), dict)


def unwrap(events: Iterable[Event]) -> bytes | None:
    """The response among the events of a streamed answer, as JSON; None when there is none (yet)."""
    for event in events:
        try:
            tree = orjson.loads(event.data)
        except orjson.JSONDecodeError:
            continue  # a priming event without data, a comment-like frame
        if isinstance(tree, dict) and "method" not in tree and ("result" in tree or "error" in tree):
            return event.data
    return None
