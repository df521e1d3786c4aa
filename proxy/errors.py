"""Every answer of ours that is not an answer of the gateway's: one registry, one exception.

A row says whose move it is, the HTTP status, the words SDKs branch on (`type`, `code`), whether repeating can help, and
the JSON-RPC code used on MCP routes. Stages raise `ProxyError`; `server/replies.py` alone turns one into a body.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Fault(Enum):
    """Whose move it is to mend this; a metric label."""

    CALLER = "caller"
    PROXY = "proxy"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of the registry.

    name:     stable machine word, `error.reason` in the body.
    status:   HTTP status.
    fault:    whose move it is.
    rpc_code: JSON-RPC error code on MCP POSTs, None where the HTTP status is kept there.
    wait:     True when the same request can succeed later without anybody changing anything.
    help:     what it means and what to do, one sentence, for the documentation.
    code:     `error.code` where the status alone does not say it.
    """

    name: str
    status: int
    fault: Fault
    rpc_code: int | None
    wait: bool
    help: str
    code: str | None = None


NOT_ALLOWED, BUDGET, TURN, UPSTREAM, PAUSED = -32001, -32002, -32003, -32004, -32005
_CALLER, _PROXY, _UPSTREAM = Fault.CALLER, Fault.PROXY, Fault.UPSTREAM

# fmt: off
REASONS: Final[Mapping[str, Reason]] = {row.name: row for row in (
    Reason("bad_request",               400, _CALLER,   None,        False, "The request breaks a rule of HTTP or JSON that the message names; mend the client."),
    Reason("ambiguous_key",             400, _CALLER,   None,        False, "Authorization and x-api-key carry different keys; send one."),
    Reason("unsupported_for_chatbot",   400, _CALLER,   None,        False, "A chatbot takes text messages only; leave out tools and images."),
    Reason("missing_key",               401, _CALLER,   None,        False, "No virtual key was sent; send it as Authorization: Bearer or x-api-key."),
    Reason("invalid_key",               401, _CALLER,   None,        False, "The virtual key is unknown, expired or revoked; ask whoever keeps the policies."),
    Reason("budget_exhausted",          402, _CALLER,   BUDGET,      False, "A budget of the team has too little left; the message names it and when it reopens."),
    Reason("request_over_budget",       402, _CALLER,   BUDGET,      False, "The request could cost more than a whole budget; ask for less."),
    Reason("unpriced_model",            402, _CALLER,   BUDGET,      False, "The model has no price and a budget counts it; add a price to the policy."),
    Reason("gateway_credits_exhausted", 402, _UPSTREAM, BUDGET,      False, "The gateway refused for want of credits a moment ago; the member's balance needs filling."),
    Reason("origin_refused",            403, _CALLER,   None,        False, "The Origin header names a page that may not call; allow it with --cors-origin."),
    Reason("host_refused",              403, _CALLER,   None,        False, "The Host header is not one of ours; allow it with --allowed-host."),
    Reason("model_not_allowed",         403, _CALLER,   NOT_ALLOWED, False, "The team's policy does not include this model."),
    Reason("tool_not_allowed",          403, _CALLER,   NOT_ALLOWED, False, "The team's policy does not include this tool."),
    Reason("suite_not_allowed",         403, _CALLER,   NOT_ALLOWED, False, "The team's policy does not include this tool suite."),
    Reason("chatbot_not_allowed",       403, _CALLER,   NOT_ALLOWED, False, "The team's policy does not include this chatbot."),
    Reason("balance_hidden",            403, _CALLER,   NOT_ALLOWED, False, "The gateway's balance is shown to some teams only; /-/budget shows your own."),
    Reason("edge_blocked",              403, _UPSTREAM, None,        False, "The gateway's edge protection refused our User-Agent (error code: 1010)."),
    Reason("unknown_route",             404, _CALLER,   None,        False, "No such path here; the message lists those that exist."),
    Reason("unknown_model",             404, _CALLER,   None,        False, "The gateway's list has no such model.", "model_not_found"),
    Reason("not_yours",                 404, _CALLER,   None,        False, "No such id for this team."),
    Reason("method_not_allowed",        405, _CALLER,   None,        False, "The path exists with another method; see the Allow header."),
    Reason("request_timeout",           408, _CALLER,   None,        False, "The request did not arrive in time."),
    Reason("idempotency_running",       409, _CALLER,   None,        True,  "A request with the same Idempotency-Key is still running."),
    Reason("idempotency_lost",          409, _CALLER,   None,        False, "A request with the same Idempotency-Key was sent, and its answer is not known or was too long to keep; use a new key."),
    Reason("body_too_large",            413, _CALLER,   None,        False, "The body is larger than the gateway takes; send less."),
    Reason("idempotency_mismatch",      422, _CALLER,   None,        False, "The same Idempotency-Key came before with another body."),
    Reason("websocket_refused",         426, _CALLER,   None,        False, "WebSocket is not offered; use HTTP with server-sent events."),
    Reason("turn_too_far",              429, _CALLER,   TURN,        True,  "The wait for a turn would be longer than the caller accepts."),
    Reason("budget_busy",               429, _CALLER,   TURN,        True,  "What is left of a budget, or of a rate on calls at once, is held by calls still running."),
    Reason("limit_exhausted",           429, _CALLER,   TURN,        True,  "A limit that does not wait is used up; the message says until when."),
    Reason("headers_too_large",         431, _CALLER,   None,        False, "The request's header is too large."),
    Reason("upstream_unreachable",      502, _UPSTREAM, UPSTREAM,    True,  "The gateway could not be reached; nothing was sent."),
    Reason("upstream_broken",           502, _UPSTREAM, UPSTREAM,    True,  "The gateway's answer broke off or was not HTTP as we know it."),
    Reason("upstream_redirect",         502, _UPSTREAM, UPSTREAM,    False, "The gateway answered with a redirect, which is never followed; check --upstream."),
    Reason("gateway_key_refused",       502, _PROXY,    UPSTREAM,    False, "The gateway refused our key; whoever runs the proxy must replace it."),
    Reason("ledger_unavailable",        503, _PROXY,    PAUSED,      True,  "The ledger cannot take entries, so nothing that spends is admitted."),
    Reason("draining",                  503, _PROXY,    PAUSED,      True,  "The proxy is shutting down; another instance may answer."),
    Reason("paused",                    503, _UPSTREAM, PAUSED,      True,  "The gateway said it is paused, and until when."),
    Reason("upstream_timeout",          504, _UPSTREAM, UPSTREAM,    True,  "The gateway did not answer in time."),
    Reason("not_in_cache",              504, _CALLER,   None,        False, "only-if-cached was asked and the answer is not stored."),
    Reason("loop",                      508, _PROXY,    None,        False, "The request passed this proxy before; --upstream points back here."),
)}
# fmt: on


@dataclass(frozen=True, slots=True)
class Words:
    """What SDKs read in an error of one status: `error.type` and `error.code`."""

    type: str
    code: str | None


_SDK_WORDS: Final[Mapping[int, Words]] = {
    400: Words("invalid_request_error", None),
    401: Words("authentication_error", "invalid_api_key"),
    402: Words("insufficient_quota", "insufficient_quota"),
    403: Words("permission_error", None),
    404: Words("not_found_error", None),
    405: Words("invalid_request_error", None),
    406: Words("invalid_request_error", None),
    408: Words("timeout_error", None),
    409: Words("invalid_request_error", None),
    413: Words("request_too_large", "request_too_large"),
    422: Words("invalid_request_error", None),
    426: Words("invalid_request_error", None),
    429: Words("rate_limit_error", "rate_limit_exceeded"),
    431: Words("invalid_request_error", None),
    503: Words("overloaded_error", "server_is_overloaded"),
}


def sdk_words(status: int, *, native: bool = False) -> Words:
    """The words of the vendors' public vocabularies for a status, on the native route or any other."""
    if status == 402 and native:
        return Words("billing_error", "insufficient_quota")
    if words := _SDK_WORDS.get(status):
        return words
    return Words("api_error", "server_error") if status >= 500 else Words("invalid_request_error", None)


class ProxyError(Exception):
    """A request ends here with an answer of our own.

    reason:        a name of `REASONS`.
    message:       what, where and what to do, for the person who reads it.
    retry_after_s: seconds until a repeat can succeed, None when waiting does not help or nobody knows.
    resets_at_s:   wall-clock seconds since the epoch at which the limit in question reopens.
    headers:       further header lines of the answer (`Allow`).
    data:          figures for programs (limit, used); on MCP routes they join the error's `data`.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        resets_at_s: float | None = None,
        headers: Mapping[str, str] | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason: Final = REASONS[reason]
        self.message: Final = message
        self.retry_after_s: Final = retry_after_s
        self.resets_at_s: Final = resets_at_s
        self.headers: Final[Mapping[str, str]] = headers or {}
        self.data: Final[Mapping[str, Any]] = data or {}
