"""A request as spans, with the names that OpenTelemetry has for GenAI and MCP; never a word of a prompt or a key."""

from collections.abc import Mapping
from typing import Final

from proxy.core.charges import NO_CHARGE
from proxy.core.headers import MCP_LEGACY_VERSIONS
from proxy.core.jsonrpc import MCP_METHODS
from proxy.observe.traces import Span
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.units import CREDIT

PROVIDER: Final = "sluicegate"
"""`gen_ai.provider.name`: whose models they are only the gateway knows."""

OPERATIONS: Final[Mapping[str, str]] = {
    "chat": "chat",
    "chatbot": "chat",
    "native": "chat",
    "responses": "chat",
    "speech": "generate_content",
    "music": "generate_content",
    "images": "generate_content",
    "videos": "generate_content",
}
"""`gen_ai.operation.name` by route; other routes ask no model. A call of a tool is `execute_tool`."""

_Attributes = dict[str, str | int | float]


def told(call: Call, parts: Parts, ended_s: float) -> str:
    """Hand the spans of a request on; the id of their trace, "" where none are sent. ended_s: monotonic."""
    if parts.traces is None:
        return ""
    return parts.traces.request(_served(call, parts, ended_s), _sent(call, parts, ended_s), call.inbound.headers)


def _served(call: Call, parts: Parts, ended_s: float) -> Span:
    attributes = _common(call, parts)
    attributes["http.response.status_code"] = call.status or 499
    attributes["sluicegate.request_id"] = call.id
    attributes["sluicegate.stage"] = call.stage
    attributes["sluicegate.cache"] = call.cache_result
    if call.team is not None:
        attributes["sluicegate.team"] = call.team.name
    if call.ending is not None:
        attributes["sluicegate.ending"] = call.ending.value
    if call.held:
        attributes["sluicegate.held_credits"] = call.held / CREDIT
    if call.charge is not NO_CHARGE:
        attributes["sluicegate.charged_credits"] = call.charge.credits / CREDIT
    if call.waited_s:
        attributes["sluicegate.waited_s"] = call.waited_s
    error = call.reason or (str(call.status) if call.status >= 500 else "")
    return Span(_name(call, parts), call.at_s, _wall(call, ended_s), attributes, error)


def _sent(call: Call, parts: Parts, ended_s: float) -> Span | None:
    """The call to the gateway; None where another call, the cache or nobody answered."""
    exchange = call.source.exchange if call.source is not None else None
    if exchange is None or call.joined or not exchange.opened_s:
        return None
    attributes = _common(call, parts)
    if call.upstream_status:
        attributes["http.response.status_code"] = call.upstream_status
    meter = exchange.meter
    if meter is not None:
        usage = meter.usage
        for name, count in (
            ("gen_ai.usage.input_tokens", usage.input),
            ("gen_ai.usage.output_tokens", usage.output),
            ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
            ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
            ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
        ):
            if count is not None:
                attributes[name] = count
    failed = call.upstream_status >= 400 or not call.upstream_status
    error = (str(call.upstream_status) if call.upstream_status else call.reason or "none") if failed else ""
    begun_s, until_s = _wall(call, exchange.opened_s), _wall(call, exchange.ended_s or ended_s)
    return Span(_name(call, parts), begun_s, until_s, attributes, error)


def _wall(call: Call, monotonic_s: float) -> float:
    return call.at_s + (monotonic_s - call.began_s)


def _name(call: Call, parts: Parts) -> str:
    """A tool's call by its tool, as its convention says; everything else by method and route, never by path."""
    if call.mcp is not None and call.match is not None:
        tool = parts.tools.label(call.mcp.tool) if call.mcp.tool is not None else ""
        return f"{call.mcp.method} {tool}".rstrip() if _known_method(call.mcp.method) else "MCP"
    if call.match is None:
        return call.inbound.method if call.inbound.method in _METHODS else "HTTP"
    return f"{call.inbound.method} /v1/{call.match.route.path}"


_METHODS: Final = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})


def _known_method(method: str | None) -> bool:
    """A caller can invent methods, and what names a span is a label like others."""
    return method in MCP_METHODS


def _common(call: Call, parts: Parts) -> _Attributes:
    method = call.inbound.method
    attributes: _Attributes = {"http.request.method": method if method in _METHODS else "_OTHER"}
    if call.match is None:
        return attributes
    route = call.match.route
    attributes["http.route"] = f"/v1/{route.path}"
    attributes["sluicegate.route"] = route.name
    if call.mcp is not None:
        if call.mcp.method is not None and _known_method(call.mcp.method):
            attributes["mcp.method.name"] = call.mcp.method
        version = call.inbound.header("mcp-protocol-version")
        if version is not None and version in MCP_LEGACY_VERSIONS:
            attributes["mcp.protocol.version"] = version
        if call.mcp.tool is not None:
            attributes["gen_ai.operation.name"] = "execute_tool"
            attributes["gen_ai.tool.name"] = parts.tools.label(call.mcp.tool)
        attributes["sluicegate.suite"] = parts.suites.label(call.match.values.get("suite"))
        return attributes
    if route.name in OPERATIONS:
        attributes["gen_ai.operation.name"] = OPERATIONS[route.name]
        attributes["gen_ai.provider.name"] = PROVIDER
        if call.model is not None:
            attributes["gen_ai.request.model"] = parts.models.label(call.model)
    return attributes
