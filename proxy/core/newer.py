"""The MCP revision 2026-07-28: what each request of it has to say, and what each answer has to carry. Pure.

It knows no sessions and no `initialize`: version and capabilities are in every request, mirrored in its header.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from proxy.core.jsonrpc import INVALID_PARAMS, LEGACY_VERSIONS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from proxy.core.toollist import CALL, LIST

VERSION: Final = "2026-07-28"
SUPPORTED: Final = (VERSION, *reversed(LEGACY_VERSIONS))

HEADER_MISMATCH: Final = -32020

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"

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


def problem(body: bytes, headers: Mapping[str, str]) -> Problem | None:
    """What is wrong with a judged request, in the order the revision says. headers: by lower-case name."""
    message = orjson.loads(body)
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    missing = [key for key in (_VERSION_KEY, _CAPABILITIES_KEY) if not isinstance(meta, dict) or key not in meta]
    if missing or meta is None:
        return Problem(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    asked, method = meta[_VERSION_KEY], message["method"]
    if not isinstance(asked, str):
        return Problem(INVALID_PARAMS, f"{_VERSION_KEY} must be text.")
    if headers.get("mcp-protocol-version") != asked:
        return Problem(HEADER_MISMATCH, "The header MCP-Protocol-Version does not say what params._meta says.")
    if headers.get("mcp-method") != method:
        return Problem(HEADER_MISMATCH, "The header Mcp-Method does not say what the body says.")
    named = params.get(_NAMED_BY.get(method, ""))
    if named is not None and _plain(headers.get("mcp-name")) != named:
        return Problem(HEADER_MISMATCH, f"The header Mcp-Name does not say what params.{_NAMED_BY[method]} says.")
    if asked != VERSION:
        return Problem(
            UNSUPPORTED_VERSION, "Unsupported protocol version", {"supported": SUPPORTED, "requested": asked}
        )
    return None


def _plain(value: str | None) -> str | None:
    """A header's value, out of the wrapping for what a header cannot carry; None for one that is wrapped wrongly."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


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


def status_of(message: bytes) -> int:
    """The HTTP status that goes with an answer."""
    error = orjson.loads(message).get("error")
    return _STATUS.get(error.get("code"), 200) if isinstance(error, dict) else 200
