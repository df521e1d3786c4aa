"""Answers as they leave: header lines of ours, error bodies per dialect, refusals and faults.

One place turns an error into bytes. On MCP POSTs most refusals are JSON-RPC errors in HTTP 200, because a session of a
widespread client dies with any other status.
"""

import traceback
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from proxy.core import errorbody, jsonrpc
from proxy.core.charges import Ending
from proxy.core.headers import ForbiddenHeader, Retry, headers_down, retry, retry_after_s
from proxy.core.policy import ErrorForm, McpErrors, RateHeaders
from proxy.core.refusals import Said
from proxy.errors import BUDGET, NOT_ALLOWED, PAUSED, TURN, UPSTREAM, ProxyError
from proxy.server import warnings
from proxy.server.call import Call
from proxy.server.exchange import Exchange
from proxy.server.parts import Parts
from proxy.server.routes import Dialect
from proxy.server.upstream import Answer
from proxy.server.waits import tell_rates
from proxy.server.whole import Whole, date_of
from proxy.units import credit_text, instant_text

JSON: Final = "application/json"

_SHOW, _OPENAI, _RESPONSES = RateHeaders.SHOW, Dialect.OPENAI, Dialect.RESPONSES
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

_OF_LIMITS: Final = frozenset({402, 429})
"""Statuses whose sentences name limits and figures; those of others may repeat what a caller wrote."""

WHY_MAX: Final = 400
_RETRYABLE: Final = frozenset({429, 503})
_EXPOSED: Final = (
    "X-Request-ID, Retry-After, X-Sluicegate-Credits, X-Sluicegate-Error, Cache-Status, Age, Server-Timing, "
    "RateLimit, RateLimit-Policy, x-ratelimit-limit-requests, x-ratelimit-remaining-requests"
)
_MCP_STATUS: Final[Mapping[int, int]] = {402: BUDGET, 429: TURN, 503: PAUSED}
"""JSON-RPC codes for statuses of the gateway that would end a client's session; other 5xx are `UPSTREAM`."""


def our_headers(call: Call, parts: Parts, *, known_charge: bool) -> dict[str, str]:
    """The header lines every answer carries. known_charge: the exchange has ended, so its cost can be told."""
    exchange = call.source.exchange if call.source is not None else None
    lines = {
        "Server": "sluicegate",
        "X-Request-ID": call.id,
        "Via": f"1.1 {parts.instance}",
        "Cache-Status": call.cache_status,
        "Server-Timing": _timing(call, exchange),
    }
    if call.waiter is not None and call.policy.rate_headers is _SHOW:
        openai = call.dialect is _OPENAI or call.dialect is _RESPONSES
        tell_rates(lines, call.waiter, openai=openai, now_s=parts.queue.now_s())
    if known_charge:
        if call.hit is not None:
            lines["X-Sluicegate-Credits"] = f"charged=0, saved={credit_text(call.hit.credits)}"
        elif exchange is not None:
            cost = credit_text((exchange.charge if call.work is None else call.work.charge).credits)
            # What another call was charged is what this one would have been.
            lines["X-Sluicegate-Credits"] = f"charged=0, saved={cost}" if call.joined else f"charged={cost}, saved=0"
    origin = call.inbound.header("origin")
    if origin is not None and origin in parts.settings.cors_origins:
        lines["Access-Control-Allow-Origin"] = origin
        lines["Access-Control-Expose-Headers"] = _EXPOSED
        lines["Vary"] = "Origin"
    return lines


def _timing(call: Call, exchange: Exchange | None) -> str:
    queue = f"queue;dur={call.waited_s * 1000:.1f}" if call.waited_s else "queue;dur=0.0"
    if exchange is None or exchange.head_s is None:
        return queue
    return f"{queue}, upstream;dur={((exchange.ended_s or exchange.head_s) - exchange.opened_s) * 1000:.1f}"


def passed_headers(call: Call, answer: Answer | Said) -> dict[str, str]:
    """What of the gateway's header goes on. Raises ProxyError for one that cannot stand in a header."""
    try:
        down = headers_down(answer.headers)
    except ForbiddenHeader as error:
        _ended_broken(call)
        raise ProxyError("upstream_broken", "The gateway's answer has control bytes in its header.") from error
    down.setdefault("request-id", call.id)
    return down


def _ended_broken(call: Call) -> None:
    if call.source is not None:
        call.source.end(Ending.UPSTREAM_BROKE)


def respond(call: Call, parts: Parts, status: int, body: bytes, headers: dict[str, str]) -> web.Response:
    """A whole answer, counted in the call. headers: made for it, and its own from here on."""
    call.status = status
    call.sent_bytes = len(body)
    headers["Date"] = date_of(parts.wall())
    response = Whole(status, body, headers)
    call.inbound.body_read = call.inbound.body_read or not call.inbound.request.can_read_body
    if not call.inbound.body_read or parts.state.draining:
        # What is left of the body is no next request.
        response.force_close()
    return response


def local_json(
    call: Call, parts: Parts, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> web.Response:
    """A JSON answer of our own."""
    lines = our_headers(call, parts, known_charge=False)
    return respond(call, parts, status, body, {**lines, "Content-Type": JSON, **(headers or {})})


def refusal(call: Call, refused: ProxyError, parts: Parts) -> web.Response:
    """The answer for an error of ours, in the caller's dialect."""
    reason = refused.reason
    call.reason = reason.name
    if reason.status in _OF_LIMITS:
        call.why = refused.message[:WHY_MAX]
    if reason.name == "budget_exhausted":
        warnings.exhausted(call, refused, parts)
    call.ending = call.ending or Ending.REFUSED
    headers = {"X-Sluicegate-Error": reason.name, **refused.headers}
    if reason.status in _RETRYABLE:
        headers |= retry(refused.retry_after_s, pointless=not reason.wait).headers
    if call.dialect is Dialect.MCP and call.inbound.method == "POST":
        return _rpc_refusal(call, refused, parts, headers)
    if call.dialect is Dialect.MCP:
        body = jsonrpc.error(None, jsonrpc.INVALID_REQUEST, refused.message, {"reason": reason.name})
    else:
        body = errorbody.own_body(refused, call.id, native=call.native)
    return local_json(call, parts, reason.status, body, headers)


def _rpc_refusal(call: Call, refused: ProxyError, parts: Parts, headers: Mapping[str, str]) -> web.Response:
    reason = refused.reason
    data: dict[str, Any] = {
        "reason": reason.name,
        "retry_after_s": refused.retry_after_s,
        "resets_at": None if refused.resets_at_s is None else instant_text(refused.resets_at_s),
        **refused.data,
    }
    code = reason.rpc_code
    if code is None:
        # Statuses that a session survives, or that end before there is one, stay what they are.
        body = jsonrpc.error(call.rpc_id, jsonrpc.INVALID_REQUEST, refused.message, data)
        return local_json(call, parts, reason.status, body, headers)
    status, body = rpc_form(call, reason.status, code, refused.message, data)
    return local_json(call, parts, status, body, headers)


def taken_back(call: Call, parts: Parts) -> web.Response:
    """The answer to an MCP call that its caller gave up while it waited; clients pass over it."""
    call.ending = Ending.CALLER_LEFT
    body = jsonrpc.error(call.rpc_id, TURN, "The call was cancelled while it waited for its turn; it was not sent.")
    return local_json(call, parts, 200, body)


def rpc_form(call: Call, status: int, code: int, message: str, data: Mapping[str, Any]) -> tuple[int, bytes]:
    """Status and body of a refusal on an MCP POST, in the form the policy asks for."""
    form = call.policy.mcp_errors
    if form is McpErrors.TOOL_RESULT and call.mcp is not None and call.mcp.method == "tools/call":
        content = [{"type": "text", "text": message}]
        return 200, jsonrpc.result(call.rpc_id, {"content": content, "isError": True})
    return (status if form is McpErrors.HTTP else 200), jsonrpc.error(call.rpc_id, code, message, data)


def gateway_error(call: Call, answer: Answer | Said, body: bytes, parts: Parts) -> web.Response:
    """The answer for an error of the gateway: its status, its sentence, the body every client shows."""
    key = parts.state.gateway_key
    if key is not None and call.gateway_key is None:
        # A gateway that repeats what it was sent must not hand our key to a caller.
        body = body.replace(key.reveal().encode(), b"***")
    said = errorbody.read_gateway_error(answer.status, body, answer.content_type, native=call.native)
    if said.reason is not None:
        call.reason = said.reason
    after_s = retry_after_s(_header(answer, "retry-after"), parts.wall())
    waits = retry(after_s) if answer.status in _RETRYABLE else Retry({}, after_s)
    resets_at_s = None if after_s is None else parts.wall() + after_s
    headers = {
        **our_headers(call, parts, known_charge=True),
        **passed_headers(call, answer),
        **waits.headers,
    }
    if call.dialect is Dialect.MCP and (code := _rpc_code(answer.status)) is not None:
        data = _rpc_data(said, answer.status, after_s, resets_at_s)
        status, told = rpc_form(call, answer.status, code, said.message, data)
        return respond(call, parts, status, told, {**headers, "content-type": JSON})
    if call.policy.errors is ErrorForm.PASSTHROUGH:
        return respond(call, parts, answer.status, body, headers)
    if call.dialect is Dialect.MCP:
        if jsonrpc.is_error(body):
            return respond(call, parts, answer.status, jsonrpc.with_id(body, call.rpc_id), headers)
        # Clients show the sentence of a JSON-RPC error whatever the status, and nothing of a bare `detail`.
        code = NOT_ALLOWED if answer.status == 403 else jsonrpc.INVALID_REQUEST
        data = _rpc_data(said, answer.status, after_s, resets_at_s)
        told = jsonrpc.error(call.rpc_id, code, said.message, data, beside={"detail": said.detail})
        return respond(call, parts, answer.status, told, {**headers, "content-type": JSON})
    told = errorbody.gateway_body(said, call.id, after_s=after_s, resets_at_s=resets_at_s)
    return respond(call, parts, answer.status, told, {**headers, "content-type": JSON})


def _rpc_code(status: int) -> int | None:
    return _MCP_STATUS.get(status, UPSTREAM if status >= 500 else None)


def _rpc_data(
    said: errorbody.GatewayError, status: int, after_s: float | None, resets_at_s: float | None
) -> dict[str, Any]:
    return {
        "reason": said.reason or "gateway",
        "status": status,
        "retry_after_s": after_s,
        "resets_at": None if resets_at_s is None else instant_text(resets_at_s),
    }


def _header(answer: Answer | Said, name: str) -> str | None:
    return next((value for line, value in answer.headers if line.lower() == name), None)


def unparsed(refused: ProxyError | None, parts: Parts) -> web.Response:
    """The answer for bytes that never became a request; None: a fault of ours."""
    request_id = parts.new_id()
    if refused is None:
        status, reason, body = 500, "fault", errorbody.fault_body(request_id, native=False)
    else:
        status, reason = refused.reason.status, refused.reason.name
        body = errorbody.own_body(refused, request_id, native=False)
    lines = {"Server": "sluicegate", "X-Request-ID": request_id, "X-Sluicegate-Error": reason, "Content-Type": JSON}
    return web.Response(status=status, body=body, headers=lines)


def fault(call: Call, error: Exception, parts: Parts) -> web.Response:
    """The answer for a fault of ours: the place goes to the log, nothing of it to the caller."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    parts.log.note(
        "error", "fault", id=call.id, stage=call.stage, kind=type(error).__name__, place=f"{where.name}:{where.lineno}"
    )
    call.reason = "fault"
    body = errorbody.fault_body(call.id, native=call.native)
    return local_json(call, parts, 500, body, {"X-Sluicegate-Error": "fault"})
