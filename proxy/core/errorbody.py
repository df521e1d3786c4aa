"""Error bodies that every client shows in full: one hybrid of the vendors' shapes, for the gateway's errors and ours.

`{"type":"error","error":{"type","message","param","code","reason","retry_after_s","resets_at"},"detail","request_id"}`.
The gateway's sentence stands word for word in `message`, and its `detail` is kept as it came.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from proxy.errors import ProxyError, sdk_words
from proxy.units import instant_text

DETAIL_CHARS_MAX: Final = 2000
"""Longest plain-text body kept in `detail`: an HTML page is no message."""

EDGE_BLOCK_TEXT: Final = "error code: 1010"
EDGE_BLOCK_SENTENCE: Final = "edge block: empty or refused User-Agent (error code: 1010)"


@dataclass(frozen=True, slots=True)
class GatewayError:
    """What one error answer of the gateway says.

    message: its sentence.        detail: its `detail`, any JSON value.
    type, code, param: words for SDKs.   reason: ours, only for the edge block.
    """

    message: str
    detail: Any
    type: str
    code: str | None
    param: str | None
    reason: str | None = None


def _said_in_detail(detail: list[Any]) -> tuple[str, str | None]:
    """Join `loc: msg` of the first three validation errors; the first one's place is the parameter."""
    said, param = [], None
    for item in detail[:3]:
        if not isinstance(item, dict):
            said.append(str(item)[:200])
            continue
        place = ".".join(str(part) for part in item.get("loc") or ())
        param = param or place or None
        said.append(f"{place}: {item.get('msg', 'invalid')}" if place else str(item.get("msg", "invalid")))
    return "; ".join(said), param


def _text_error(status: int, text: str, content_type: str) -> tuple[str, str]:
    kept = text.strip()[:DETAIL_CHARS_MAX]
    if not kept:
        return f"The gateway answered {status} without a body.", kept
    if "html" in content_type.lower() or kept[:1] == "<":
        return f"The gateway answered {status} with a page in place of an error message.", kept
    return kept, kept


def read_gateway_error(status: int, body: bytes, content_type: str, *, native: bool = False) -> GatewayError:
    """Understand an error body of any shape: JSON with `detail` or `error`, plain text, a page, or nothing."""
    words = sdk_words(status, native=native)
    try:
        value = orjson.loads(body) if body.strip() else None
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        text = body.decode("utf-8", "replace") if value is None else orjson.dumps(value).decode()
        if status == 403 and EDGE_BLOCK_TEXT in text:
            return GatewayError(
                EDGE_BLOCK_SENTENCE, text.strip()[:DETAIL_CHARS_MAX], words.type, None, None, "edge_blocked"
            )
        sentence, kept = _text_error(status, text, content_type)
        return GatewayError(sentence, kept, words.type, words.code, None)
    message: str
    param: str | None = None
    kind, code = words.type, words.code
    detail = value.get("detail")
    inner = value.get("error")
    if isinstance(detail, str):
        message = detail
    elif isinstance(detail, list):
        message, param = _said_in_detail(detail)
    elif isinstance(inner, dict) and isinstance(inner.get("message"), str):
        message = inner["message"]
        kind = inner["type"] if isinstance(inner.get("type"), str) else kind
        code = inner["code"] if isinstance(inner.get("code"), str) else code
        param = inner["param"] if isinstance(inner.get("param"), str) else None
    elif isinstance(inner, str):
        message = inner
    elif isinstance(value.get("message"), str):
        message = value["message"]
    else:
        message = orjson.dumps(value).decode()[:DETAIL_CHARS_MAX]
    if status == 404 and re.search(r"\bModel '.*' not found", message):
        code = "model_not_found"
    return GatewayError(message, detail if "detail" in value else message, kind, code, param)


def _hybrid(error: Mapping[str, Any], detail: Any, request_id: str) -> bytes:
    return orjson.dumps({"type": "error", "error": error, "detail": detail, "request_id": request_id})


def gateway_body(said: GatewayError, request_id: str, *, after_s: float | None, resets_at_s: float | None) -> bytes:
    """The hybrid body of an error of the gateway's."""
    error: dict[str, Any] = {"type": said.type, "message": said.message, "param": said.param, "code": said.code}
    if said.reason is not None:
        error["reason"] = said.reason
    error["retry_after_s"] = after_s
    error["resets_at"] = None if resets_at_s is None else instant_text(resets_at_s)
    return _hybrid(error, said.detail, request_id)


def own_body(refused: ProxyError, request_id: str, *, native: bool) -> bytes:
    """The hybrid body of an error of ours: `detail` repeats the message, `reason` is the registry's name."""
    words = sdk_words(refused.reason.status, native=native)
    error: dict[str, Any] = {
        "type": words.type,
        "message": refused.message,
        "param": None,
        "code": refused.reason.code or words.code,
        "reason": refused.reason.name,
        "retry_after_s": refused.retry_after_s,
        "resets_at": None if refused.resets_at_s is None else instant_text(refused.resets_at_s),
    }
    return _hybrid({**error, **refused.data}, refused.message, request_id)


def fault_body(request_id: str, *, native: bool) -> bytes:
    """The hybrid body of a fault inside the proxy: nothing of it is told, the request id leads to the log."""
    words = sdk_words(500, native=native)
    message = "The proxy failed on this request. Its log has the place under the request id."
    error = {"type": words.type, "message": message, "param": None, "code": words.code, "reason": "fault"}
    return _hybrid({**error, "retry_after_s": None, "resets_at": None}, message, request_id)
