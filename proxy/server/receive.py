"""Receive: strict checks on the head, the route, and the body counted as it arrives."""

from collections.abc import Coroutine

from aiohttp import web

from proxy.core import head as gate
from proxy.errors import ProxyError
from proxy.server import local
from proxy.server.call import Call
from proxy.server.heads import Known
from proxy.server.inbound import Again, Inbound
from proxy.server.parts import Parts
from proxy.server.routes import (
    OAUTH_PROBES,
    VERSION_HEADERS,
    Match,
    Unmatched,
    allowed_methods,
    match,
    route_list,
)

BODY_SENTENCE = "Request body too large. Maximum size is 25MB."
"""The gateway's own sentence for a body above its limit."""


def shutting_down() -> ProxyError:
    """What a call is told that is not begun any more."""
    return ProxyError("draining", "The proxy is shutting down; try again.", retry_after_s=1.0)


def head(call: Call, parts: Parts) -> web.StreamResponse | None:
    """Judge request line and header, then find the route. Raises ProxyError; answers what needs no route."""
    inbound = call.inbound
    if isinstance(inbound, Again):
        _led(call, inbound.known)
        return None
    place, known = parts.heads.get(inbound)
    if known is not None:
        _led(call, known)
        inbound.headers = known.headers
        _know_again(inbound, known, parts)
        return None
    call.head = gate.gate(
        inbound.method,
        inbound.target,
        inbound.http_version,
        inbound.raw_headers,
        bytes_max=parts.settings.max_header_bytes,
    )
    _judge_host_and_origin(call, parts)
    _judge_via(call, parts)
    if inbound.method == "OPTIONS":
        return local.options(call, parts)
    match = _match(call, parts, websocket=call.head.websocket)
    call.led(match)
    kept = {name: value for name, value in inbound.headers.items() if name != "content-length"}
    lines = [line for line in inbound.header_lines if line[0].lower() != "content-length"]
    call.known = Known(inbound.method, inbound.target, call.head, match, kept, lines)
    parts.heads.keep(place, call.known)
    _know_again(inbound, call.known, parts)
    return None


def _led(call: Call, known: Known) -> None:
    call.known, call.head = known, known.head
    call.led(known.match)


def _know_again(inbound: Inbound, known: Known, parts: Parts) -> None:
    """The next one with these bytes needs no parser, where it came whole and its answer is framed as most are."""
    if inbound.sent_whole is None or not inbound.stays_open or known.method == "HEAD" or "expect" in known.headers:
        return
    parts.heads.keep_bytes(inbound.sent_whole, known)


def _judge_host_and_origin(call: Call, parts: Parts) -> None:
    assert call.head is not None
    if not gate.host_allowed(call.head.host, parts.allowed_hosts, any_ip=parts.any_ip_host):
        raise ProxyError(
            "host_refused",
            "The Host header names no host of this proxy. Whoever runs it can allow the name with --allowed-host NAME.",
        )
    origin = call.inbound.header("origin")
    if not gate.origin_allowed(origin, parts.allowed_hosts, parts.cors_origins):
        raise ProxyError(
            "origin_refused",
            "The Origin header names a web page that may not call this proxy. Whoever runs it can allow the page with "
            "--cors-origin ORIGIN.",
        )


def _judge_via(call: Call, parts: Parts) -> None:
    if call.inbound.header("via") is None:
        return
    via = ",".join(value for name, value in call.inbound.header_lines if name.lower() == "via")
    if parts.instance in via:
        raise ProxyError("loop", "The request has passed this proxy before: --upstream points back to it.")


def _match(call: Call, parts: Parts, *, websocket: bool) -> Match:
    inbound = call.inbound
    segment = parts.settings.native_segment
    native_header = any(inbound.header(name) is not None for name in (*VERSION_HEADERS, f"{segment}-version"))
    found = match(inbound.method, inbound.target, segment=segment, native_header=native_header)
    if websocket:
        raise _websocket_refusal(call, parts)
    if isinstance(found, Unmatched):
        raise _no_route(call, parts, found)
    if found.route.name == "suites" and "text/event-stream" in (inbound.header("accept") or ""):
        # An MCP client looks for a stream here; any other status than 405 would send it into a login.
        raise _wrong_method("GET", ("POST",))
    return found


def _websocket_refusal(call: Call, parts: Parts) -> ProxyError:
    found = match("POST", call.inbound.target, segment=parts.settings.native_segment, native_header=False)
    if not isinstance(found, Unmatched) and found.route.name == "responses":
        return ProxyError("websocket_refused", "WebSocket is not offered here; use HTTP with server-sent events.")
    return ProxyError("bad_request", "The Upgrade header asks for a protocol that is not offered here.")


def _no_route(call: Call, parts: Parts, why: Unmatched) -> ProxyError:
    target = call.inbound.target
    if why is Unmatched.PATH or OAUTH_PROBES.fullmatch(target.partition("?")[0]):
        return ProxyError("unknown_route", f"No such path here. The routes are: {route_list()}.")
    return _wrong_method(call.inbound.method, allowed_methods(target, segment=parts.settings.native_segment))


def _wrong_method(method: str, allowed: tuple[str, ...]) -> ProxyError:
    methods = ", ".join(allowed)
    return ProxyError(
        "method_not_allowed", f"{method} is not for this path; use {methods}.", headers={"Allow": methods}
    )


def body(call: Call, parts: Parts) -> Coroutine[None, None, None] | None:
    """Read the body, counted. Raises ProxyError `body_too_large`, `request_timeout` or `bad_request`."""
    if parts.state.draining:
        raise shutting_down()
    bytes_max = parts.settings.max_body
    here = call.inbound.body_here(bytes_max, lambda: _too_large(bytes_max))
    if here is None:
        return _coming(call, bytes_max)
    call.body = here
    return None


async def _coming(call: Call, bytes_max: int) -> None:
    call.body = await call.inbound.body(bytes_max, lambda: _too_large(bytes_max))


def _too_large(bytes_max: int) -> ProxyError:
    if bytes_max == 26_214_400:
        return ProxyError("body_too_large", BODY_SENTENCE)
    return ProxyError("body_too_large", f"Request body too large. Maximum size is {bytes_max} bytes (--max-body).")
