"""Record: one log event and the metrics of a request, at its end.

Requests that end in the same turn of the loop are recorded in its next one, one right after the other: what each of
them takes is found in the processor's caches then, and no caller waits for it.
"""

import asyncio
import time
from typing import Final

from proxy.core.charges import NO_CHARGE, WORD, Basis, is_void
from proxy.core.jsonrpc import MCP_METHODS
from proxy.core.limits import Draw
from proxy.core.turns import Waiter
from proxy.observe.metrics import NOBODY, OTHER
from proxy.observe.money import count_ending
from proxy.server import traced
from proxy.server.call import Call
from proxy.server.exchange import Exchange
from proxy.server.known import Known
from proxy.server.parts import Parts
from proxy.stores.ledger.places import told
from proxy.units import CREDIT, credit_text

MOMENT_S: Final = 0.001
"""A caller's bound that is shorter by less is its team's own."""

_NOTHING: Final = Basis.NOTHING

_ALL: Final = ("all",)

NOWHERE = "_none"
"""The route label of a request that has none."""


def began(parts: Parts) -> None:
    """Count a request in."""
    parts.metrics.values["requests_in_flight"][_ALL].value += 1


def soon(call: Call, parts: Parts) -> None:
    """The request has ended: it is recorded before the loop looks at what came meanwhile."""
    call.ended_s = time.monotonic()
    parts.ended.append(call)
    if len(parts.ended) == 1:
        asyncio.get_running_loop().call_soon(record, parts)


def record(parts: Parts) -> None:
    """Record what has ended; never raises."""
    ended = parts.ended[:]
    parts.ended.clear()
    parts.metrics.values["requests_in_flight"][_ALL].value -= len(ended)
    for call in ended:
        try:
            _record(call, parts)
        except Exception as fault:  # noqa: BLE001  (a fault here must not cost the others their lines)
            parts.log.note("error", "fault", id=call.id, stage="record", kind=type(fault).__name__)


def _record(call: Call, parts: Parts) -> None:
    """Count a request and tell its story."""
    exchange = call.source.exchange if call.source is not None else None
    own = None if call.joined else exchange
    if own is not None:
        call.ending = own.ending or call.ending
        if own.charge is not NO_CHARGE:
            call.charge = own.charge
        if 200 <= call.upstream_status < 300:
            _learn(call, parts)
    # A complete 200 without anything a caller can use: reasoning ate the budget. It is passed and charged.
    call.empty_answer = exchange is not None and exchange.meter is not None and exchange.meter.empty_answer
    trace = traced.told(call, parts, call.ended_s)
    _measure(call, exchange, parts, trace or call.id)
    story = _story(call, own, parts)
    if trace:
        story["trace"] = trace
    parts.log.request(story)
    # Not for the log, whose line is written.
    if call.why:
        story["why"] = call.why
    elif not call.reason and call.caching is not None and not call.caching.decision.may:
        story["why"] = f"Not kept: {call.caching.decision.detail}."
    parts.recent.add(parts.wall(), story)


def _story(call: Call, own: Exchange | None, parts: Parts) -> dict[str, object]:
    """What is known of a request; a field that says nothing is left out. own: the exchange that it made itself."""
    story: dict[str, object] = {"id": call.id}
    if call.team is not None:
        story["team"] = call.team.name
        story["key"] = call.key_id[-12:]
    if call.match is not None:
        story["route"] = call.match.route.name
    if call.model is not None:
        story["model"] = call.model
    story["stage"] = call.stage
    if call.ending is not None:
        story["ending"] = WORD[call.ending]
    story["status"] = call.status
    if call.reason:
        story["reason"] = call.reason
    if call.held:
        story["held"] = credit_text(call.held)
    if (charge := call.charge) is not NO_CHARGE:
        story["charged"] = credit_text(charge.credits)
        if charge.basis is not _NOTHING:
            story["basis"] = basis = WORD[charge.basis]
            if (hold := call.hold or (call.work.hold if call.work is not None else None)) is not None:
                story["place"] = told("settle", basis, hold.place)
    if call.waiter is not None:
        _asked(call, call.waiter, own, parts, story)
    if call.caching is not None:
        story["cache"] = call.cache_result
    story["sent_bytes"] = call.sent_bytes
    story["dur_s"] = int((call.ended_s - call.began_s) * 10_000 + 0.5) / 10_000
    if call.empty_answer:
        story["empty"] = True
    if call.inbound.gone:
        story["left"] = True
    if (agent := call.inbound.header("user-agent")) is not None:
        story["user_agent"] = agent
    return story


def _asked(call: Call, waiter: Waiter, own: Exchange | None, parts: Parts, story: dict[str, object]) -> None:
    """What a call asked of the queue and then used: what it takes to play it again.

    Times are given to a tenth of a millisecond, in a fourth of the time of `round`.
    """
    asked_s, draw = waiter.asked_s, waiter.draw
    story["asked_at"] = int((call.at_s + asked_s - call.began_s) * 1e6) / 1e6
    if call.waited_s:
        story["waited_s"] = int(call.waited_s * 10_000 + 0.5) / 10_000
    patience_s = waiter.deadline_s - asked_s
    if call.team is not None and patience_s < call.team.wait_max_s - MOMENT_S:
        story["wait_max_s"] = round(patience_s, 3)
    if draw.member:
        story["member"] = draw.member[-12:]
    if draw.method is not None:
        _asked_of_suite(draw, parts, story)
    if draw.facts.chatbot:
        story["chatbot"] = draw.facts.chatbot
    if waiter.tokens:
        story["ceiling"] = waiter.tokens
    if own is None:
        return
    if own.head_s is not None:
        story["head_s"] = int((own.head_s - own.opened_s) * 10_000 + 0.5) / 10_000
        story["upstream_s"] = int(((own.ended_s or call.ended_s) - own.opened_s) * 10_000 + 0.5) / 10_000
    if own.used is not None:
        story["input"], story["output"] = own.used


def _asked_of_suite(draw: Draw, parts: Parts, story: dict[str, object]) -> None:
    """Names that a caller may have made up stay out until the gateway has answered well for them."""
    said = {
        "suite": _known(parts.suites, draw.facts.suite),
        "method": draw.method if draw.method in MCP_METHODS else None,
        "tool": _known(parts.tools, draw.facts.tool),
    }
    story.update({name: word for name, word in said.items() if word})


def _known(names: Known, name: str | None) -> str | None:
    return name if names.label(name) == name else None


def _measure(call: Call, exchange: Exchange | None, parts: Parts, example: str) -> None:
    """exchange: the one it was answered from.      example: names this request beside the times it took."""
    metrics, ended_s = parts.metrics, call.ended_s
    values, times = metrics.values, metrics.times
    team = call.team.name if call.team is not None else NOBODY
    route = call.route.name if call.route is not None else NOWHERE
    took_s = ended_s - call.began_s
    values["requests_total"][team, route, str(call.status or 499)].value += 1
    if call.reason:
        metrics.count("refusals_total", team, call.reason)
    times["request_duration_seconds"][route, call.cache_result].took(took_s, example)
    if call.caching is not None:
        _count_cache(call, exchange, parts, team, route)
    if call.mcp is not None and call.mcp.tool is not None and route == "mcp":
        _count_tool(call, parts, team)
    if exchange is None or call.joined:
        times["overhead_seconds"][route,].took(took_s, example)
        return
    upstream_s = (exchange.ended_s or ended_s) - exchange.opened_s
    own_s = took_s - upstream_s
    times["overhead_seconds"][route,].took(own_s if own_s > 0 else 0.0, example)
    model = parts.models.label(call.model)
    times["upstream_duration_seconds"][model,].took(upstream_s, example)
    if call.empty_answer:
        metrics.count("upstream_errors_total", route, "empty_answer")
    if call.resent:
        metrics.count("upstream_retries_total", "429", by=call.resent)
    if call.first_byte_s is not None:
        times["time_to_first_token_seconds"][model,].took(call.first_byte_s, example)
    if call.mcp is not None:
        _count_mcp(call, parts, upstream_s)
    if call.hold is None:
        return
    if exchange.ending is None:
        # Others read on: what it comes to is known when it has ended.
        exchange.then = lambda: _count_later(call, exchange, parts, team)
    elif call.upstream_status:
        _count_money(call, exchange, parts, team, model)
    else:
        _count_later(call, exchange, parts, team)


def _count_cache(call: Call, exchange: Exchange | None, parts: Parts, team: str, route: str) -> None:
    source, result, saved = call.source, call.cache_result, 0
    if source is not None and exchange is not None:
        if result == "miss" and exchange.ending is not None and not source.kept:
            result = "uncacheable"
        if call.joined:
            saved = exchange.charge.credits
    parts.metrics.values["cache_requests_total"][route, result].value += 1
    if call.hit is not None:
        saved = call.hit.credits
    if saved:
        parts.metrics.count("saved_credits_total", team, parts.models.label(call.model), by=saved / CREDIT)


def _learn(call: Call, parts: Parts) -> None:
    """The gateway took these names, so they may stand in labels."""
    parts.models.learn(call.model)
    if call.mcp is not None and call.match is not None:
        parts.suites.learn(call.match.values.get("suite"))
        if _rpc_status(call) == "result":
            # A suite answers 200 for a tool that it does not have, too.
            parts.tools.learn(call.mcp.tool)


def _rpc_status(call: Call) -> str | None:
    """What a suite's answer was: `result`, `tool_error` or `rpc_error`."""
    meter = call.source.exchange.meter if call.source is not None else None
    return meter.status if meter is not None else None


def _count_mcp(call: Call, parts: Parts, upstream_s: float) -> None:
    assert call.match is not None
    assert call.mcp is not None
    suite = parts.suites.label(call.match.values.get("suite"))
    method = call.mcp.method if call.mcp.method in MCP_METHODS else OTHER
    unanswered = "refused" if 400 <= call.upstream_status < 500 else "failed"
    outcome = (_rpc_status(call) or "result") if 200 <= call.upstream_status < 300 else unanswered
    parts.metrics.count("mcp_requests_total", suite, method, outcome)
    parts.metrics.observe("mcp_operation_duration_seconds", suite, method, value=upstream_s)


def _count_later(call: Call, exchange: Exchange, parts: Parts, team: str) -> None:
    """As `_count_money`, for an exchange whose head or end came behind its first caller."""
    if exchange.answer is not None and 200 <= exchange.answer.status < 300:
        parts.models.learn(call.model)
    _count_money(call, exchange, parts, team, parts.models.label(call.model))


def _count_money(call: Call, exchange: Exchange, parts: Parts, team: str, model: str) -> None:
    """What became of the hold of an exchange that has ended."""
    metrics, hold, ending, charge = parts.metrics, exchange.hold, exchange.ending, exchange.charge
    assert hold is not None
    assert ending is not None
    if not exchange.taken_over:
        count_ending(metrics, team, model, hold.credits, None if is_void(ending, charge) else charge)
    if hold.price is None:
        metrics.count("unpriced_requests_total", call.route.name if call.route else NOWHERE)
    if exchange.meter is None:
        return
    usage, tokens = exchange.meter.usage, metrics.values["tokens_total"]
    if usage.input:
        tokens[team, model, "input"].value += usage.input
    if usage.output:
        tokens[team, model, "output"].value += usage.output
    if usage.reasoning:
        tokens[team, model, "reasoning"].value += usage.reasoning
    if usage.cache_read:
        tokens[team, model, "cache_read"].value += usage.cache_read
    if usage.cache_write:
        tokens[team, model, "cache_creation"].value += usage.cache_write


def _count_tool(call: Call, parts: Parts, team: str) -> None:
    assert call.mcp is not None
    assert call.match is not None
    suite, tool = parts.suites.label(call.match.values.get("suite")), parts.tools.label(call.mcp.tool)
    parts.metrics.count("mcp_tool_calls_total", team, suite, tool, _tool_outcome(call))


def _tool_outcome(call: Call) -> str:
    """What became of a call of a tool."""
    if call.hit is not None or call.joined:
        return "cached"
    if call.source is None:
        return "refused_here"
    if call.charge.uncertain:
        return "uncertain"
    if not call.charge.calls:
        return "refused"
    return "executed" if _rpc_status(call) == "result" else "tool_error"
