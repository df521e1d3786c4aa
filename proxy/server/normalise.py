"""Normalise: what the caller sent becomes what the gateway takes, by named rules, or an answer of our own.

The rules are those of `docs/architecture.md`; body bytes are unchanged unless a rule says so.
"""

from aiohttp import web

from proxy import __version__
from proxy.core.body import LARGE, Facts
from proxy.core.body import Dialect as BodyKind
from proxy.core.headers import headers_up
from proxy.core.injected import UsageTaker, asking
from proxy.core.policy import NativeVersion, StreamUsage
from proxy.errors import ProxyError
from proxy.mcp import local as mcp_local
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.server.routes import Dialect, upstream_target
from proxy.server.upstream import Outgoing

USER_AGENT = f"sluicegate/{__version__}"
"""Never empty: the gateway's edge answers an empty one with a page instead of an error."""

BOTH_TYPES = "application/json, text/event-stream"
"""What a tool suite wants to see in `Accept`, whatever the caller takes."""

_KINDS = {
    "chat": BodyKind.CHAT,
    "native": BodyKind.MESSAGES,
    "native-count": BodyKind.COUNT_TOKENS,
    "responses": BodyKind.RESPONSES,
    "mcp": BodyKind.MCP,
}
"""How the body of a route is judged; other routes send none."""


async def normalise(call: Call, parts: Parts) -> web.StreamResponse | None:
    """Judge the body and make the outgoing request. Raises ProxyError `bad_request`; answers MCP calls of ours."""
    assert call.match is not None
    route = call.match.route
    if route.upstream is None:
        return None
    kind = _KINDS.get(route.name)
    if kind is not None:
        call.facts = await parts.judge.facts(call.body, kind)
        if call.mcp is not None and (answer := mcp_local.answer(call, parts)) is not None:
            return answer
    body = _asking_for_usage(call, parts) if kind else b""
    call.out = Outgoing(route.method, _target(call, parts), _headers(call, parts), body)
    return None


def _asking_for_usage(call: Call, parts: Parts) -> bytes:
    """The body to send: asking for a stream's usage where the policy wants it and the caller did not ask."""
    facts = call.facts
    wanted = call.policy.stream_usage is StreamUsage.INJECT and call.dialect is Dialect.OPENAI
    if not wanted or facts is None or not facts.stream or facts.include_usage:
        return call.body
    if len(call.body) > LARGE or facts.model in parts.state.no_stream_usage:
        return call.body
    call.taker = UsageTaker()
    return asking(call.body)


def _target(call: Call, parts: Parts) -> str:
    assert call.match is not None
    target = upstream_target(call.match, segment=parts.settings.native_segment)
    if call.dialect is not Dialect.NATIVE:
        return target
    # SDKs mark beta calls with ?beta=true, which the gateway's document does not know.
    path, _, query = target.partition("?")
    kept = "&".join(part for part in query.split("&") if part and part != "beta=true")
    return f"{path}?{kept}" if kept else path


def _headers(call: Call, parts: Parts) -> dict[str, str]:
    native = call.dialect is Dialect.NATIVE
    mcp = call.dialect is Dialect.MCP
    headers = headers_up(
        call.inbound.header_lines,
        native_segment=parts.settings.native_segment if native else None,
        pin_version=call.policy.native_version is NativeVersion.PIN,
        mcp=mcp,
    )
    key = call.gateway_key or _our_key(parts)
    headers["authorization"] = f"Bearer {key}"
    headers["user-agent"] = USER_AGENT
    headers["accept-encoding"] = "identity"
    headers["accept"] = BOTH_TYPES if mcp else _accept(call.facts)
    headers["via"] = ", ".join(filter(None, [call.inbound.header("via"), f"1.1 {parts.instance}"]))
    headers["x-request-id"] = call.id
    if call.body:
        # The body was read as a JSON object, whatever its sender called it.
        headers["content-type"] = "application/json"
    else:
        headers.pop("content-type", None)
    return headers


def _accept(facts: Facts | None) -> str:
    return "text/event-stream" if facts is not None and facts.stream else "application/json"


def _our_key(parts: Parts) -> str:
    key = parts.state.gateway_key
    if key is None:
        raise ProxyError("gateway_key_refused", "The proxy has no gateway key; whoever runs it must set one.")
    return key.reveal()
