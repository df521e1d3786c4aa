"""The one event that tells a caller, in the words of its family, that the stream it reads has broken off.

A stream that merely stops looks complete to most SDKs: they return the short text without an error. Each family reads
another event as an error, and Codex reads none but `response.failed`.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from proxy.core.answers import Family
from proxy.errors import UPSTREAM

CODE: Final = "upstream_disconnected"
"""The word that chat clients know for this."""


def broken_event(
    family: Family,
    message: str,
    *,
    code: str = CODE,
    response_id: str | None = None,
    sequence: int = 0,
    model: str | None = None,
    created_at: int = 0,
    rpc_id: bytes = b"null",
) -> bytes:
    """The event's bytes, blank line included.

    response_id, model, created_at: of the response that broke off, as its first event named them.
    sequence: the next `sequence_number`.
    rpc_id:   the caller's JSON-RPC id exactly as it stood in its request.
    """
    if family is Family.CHAT:
        return _event(b"", {"error": {"message": message, "type": "server_error", "param": None, "code": code}})
    if family is Family.MESSAGES:
        return _event(b"error", {"type": "error", "error": {"type": "api_error", "message": message}})
    if family is Family.RESPONSES:
        response = _failed_response(message, response_id, model, created_at)
        return _event(
            b"response.failed", {"type": "response.failed", "sequence_number": sequence, "response": response}
        )
    error = {"code": UPSTREAM, "message": message, "data": {"reason": "upstream_broken"}}
    return _event(b"message", {"jsonrpc": "2.0", "id": orjson.Fragment(rpc_id), "error": error})


def _failed_response(message: str, response_id: str | None, model: str | None, created_at: int) -> Mapping[str, Any]:
    return {
        "id": response_id or "resp_broken",
        "object": "response",
        "created_at": created_at,
        "status": "failed",
        # The vendor's list of codes is closed, and strict clients check it; this is its word for our case.
        "error": {"code": "server_error", "message": message},
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "model": model or "",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None,
    }


def _event(name: bytes, payload: Mapping[str, Any]) -> bytes:
    line = b"event: " + name + b"\n" if name else b""
    return line + b"data: " + orjson.dumps(payload) + b"\n\n"
