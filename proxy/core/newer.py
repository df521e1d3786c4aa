"""The MCP revision 2026-07-28: what each request of it has to say, and what each answer has to carry. Pure.

It knows no sessions and no `initialize`: version and capabilities are in every request, mirrored in its header.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from proxy.core.jsonrpc import INVALID_PARAMS, LEGACY_VERSIONS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from proxy.core.mirrored import unwrapped, wrapped
from proxy.core.toollist import CALL, LIST

VERSION: Final = "2026-07-28"
SUPPORTED: Final = (VERSION, *reversed(LEGACY_VERSIONS))

HEADER_MISMATCH: Final = -32020

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Of log messages within a call, the least first."""

_MIRRORS: Final = ("mcp-protocol-version", "mcp-method", "mcp-name")
"""Header lines that repeat something of the body."""

_NAMED_BY: Final[Mapping[str, str]] = {CALL: "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose header repeats a member of their params."""

_HINTED: Final = frozenset({LIST, "resources/list", "resources/templates/list", "prompts/list", "resources/read"})
"""Methods whose results say how long they may be kept; a call's never does."""

GONE: Final = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods of the older revisions that this one does not have."""

# fmt: off
_STATUS: Final[Mapping[Any, int]] = {
    METHOD_NOT_FOUND:    404,
    INVALID_PARAMS:      400,
    HEADER_MISMATCH:     400,
    UNSUPPORTED_VERSION: 400,
}
# fmt: on


class Problem(NamedTuple):
    """Why a request is none of this revision: a JSON-RPC error."""

    code: int
    message: str
    data: Mapping[str, Any] | None = None


def is_newer(version: str | None) -> bool:
    """Whether a protocol version is of the kind that carries itself in every request."""
    return (version or "") >= "2026"


def problem(body: bytes, lines: Iterable[tuple[str, str]]) -> Problem | None:
    """What is wrong with a judged request, in the order the revision says. lines: of its header, as they came."""
    message = orjson.loads(body)
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    missing = [key for key in (_VERSION_KEY, _CAPABILITIES_KEY) if not isinstance(meta, dict) or key not in meta]
    if missing or meta is None:
        return Problem(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    asked = meta[_VERSION_KEY]
    if not isinstance(asked, str):
        return Problem(INVALID_PARAMS, f"{_VERSION_KEY} must be text.")
    if (why := _contradiction(message, asked, lines)) is not None:
        return Problem(HEADER_MISMATCH, why)
    if asked != VERSION:
        return Problem(
            UNSUPPORTED_VERSION, "Unsupported protocol version", {"supported": SUPPORTED, "requested": asked}
        )
    if _LEVEL_KEY in meta and meta[_LEVEL_KEY] not in LEVELS:
        return Problem(INVALID_PARAMS, f"{_LEVEL_KEY} must be one of {', '.join(LEVELS)}.")
    return None


def _contradiction(message: Mapping[str, Any], asked: str, lines: Iterable[tuple[str, str]]) -> str | None:
    """What the header says otherwise than the body, as a sentence."""
    headers: dict[str, str] = {}
    for line, value in lines:
        name = line.lower()
        if name in headers and name in _MIRRORS:
            return f"The header {name} came more than once."
        headers.setdefault(name, value)
    method, params = message["method"], message["params"]
    if headers.get("mcp-protocol-version") != asked:
        return "The header MCP-Protocol-Version does not say what params._meta says."
    if headers.get("mcp-method") != method:
        return "The header Mcp-Method does not say what the body says."
    named = params.get(_NAMED_BY.get(method, ""))
    if named is not None and unwrapped(headers.get("mcp-name")) != named:
        return f"The header Mcp-Name does not say what params.{_NAMED_BY[method]} says."
    return None


def mirroring(message: Mapping[str, Any]) -> dict[str, str]:
    """The header lines that repeat a message of this revision; none for one of an older."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version, method = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None, message.get("method")
    if not isinstance(params, dict) or not isinstance(version, str) or not isinstance(method, str):
        return {}
    lines = {"mcp-protocol-version": wrapped(version), "mcp-method": wrapped(method)}
    named = params.get(_NAMED_BY.get(method, ""))
    return lines | ({"mcp-name": wrapped(named)} if isinstance(named, str) else {})


def lifted(message: bytes, method: str | None, ttl_s: float) -> bytes:
    """An answer of the older era as one of this revision. ttl_s: how long it is kept here."""
    tree = orjson.loads(message)
    result = tree.get("result")
    if not isinstance(result, dict):
        return message
    result.setdefault("resultType", "complete")
    if method in _HINTED:
        # What a team may see depends on its key, so nobody in between may give it to another.
        result |= {"ttlMs": max(0, int(ttl_s * 1000)), "cacheScope": "private"}
    return orjson.dumps(tree)


def hinted(result: bytes, ttl_s: float) -> bytes:
    """A list's result as one of this revision, without its being read. result: a JSON object with something in it."""
    return result[:-1] + b',"resultType":"complete","ttlMs":%d,"cacheScope":"private"}' % max(0, int(ttl_s * 1000))


def status_of(message: bytes) -> int:
    """The HTTP status that goes with an answer."""
    error = orjson.loads(message).get("error")
    return _STATUS.get(error.get("code"), 200) if isinstance(error, dict) else 200
