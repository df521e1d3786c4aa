"""Pressure: what the gateway's refusals teach, and who is therefore not sent.

A 429 pauses a member, maintenance and failures shut gates, and a refusal that would come again is told from memory.
"""

from typing import Final, Protocol

from aiohttp import web

from proxy.core.gatename import UPSTREAM, GateName, Kind
from proxy.core.headers import retry_after_s
from proxy.core.pauses import BREAK_MAX_S, BREAK_UNKNOWN_S, pause_s
from proxy.core.policy import Storms
from proxy.core.refusals import LATCH_S, REMEMBERED, Said
from proxy.errors import ProxyError
from proxy.server import replies, warnings
from proxy.server.asking import OWN_WAY, WAY, gates_of
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.server.upstream import Outgoing

_PASS: Final = Storms.PASS
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

RESENT_MAX: Final = 20
"""How often one call goes back to the queue after a 429, however long its caller would wait."""

MAINTENANCE: Final = b"maintenance"
"""A 503 with this word is about all of the gateway, with or without a figure."""

ASKED_WRONG: Final = frozenset({501, 505})
"""Statuses above 500 that are about what was asked, and not about how the gateway is."""


class Told(Protocol):
    """An error answer, from the gateway or from memory."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...


def guard(call: Call, parts: Parts) -> web.StreamResponse | None:
    """The answer that the gateway would give, where it gave it a moment ago. Raises ProxyError."""
    refusals, now_s = parts.refusals, parts.queue.now_s()
    if call.policy.storms is _PASS:
        return None
    if call.hold is not None and (left_s := refusals.latched_s(call.credential, call.hold.credits, now_s)) is not None:
        raise ProxyError(
            "gateway_credits_exhausted",
            f"The gateway refused a call for want of credits a moment ago, and is not asked again for {left_s:.0f} s. "
            "Somebody has to fill the member's balance.",
            resets_at_s=parts.wall() + left_s,
        )
    if not len(refusals) or (key := _key(call)) is None or (said := refusals.recall(key, now_s)) is None:
        return None
    call.cache_status = "sluicegate; hit; detail=refusal"
    if said.status == 401 and call.gateway_key is None:
        raise key_refused()
    return replies.gateway_error(call, said, said.body, parts)


def _key(call: Call) -> tuple[object, ...] | None:
    """What makes two requests identical; None for one without a body."""
    if call.facts is None or call.out is None or not call.out.body:
        return None
    return call.out.target, call.digest, _shaping(call.out)


_INDIFFERENT: Final = frozenset({"traceparent", "tracestate", "via"})
"""Header lines that differ between calls and change nothing in an answer."""


def _shaping(out: Outgoing) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(line for line in out.headers.values.items() if line[0] not in _INDIFFERENT))


def key_refused() -> ProxyError:
    """The error for a gateway that refuses our own key."""
    return ProxyError(
        "gateway_key_refused",
        "The gateway refused the proxy's own key. Whoever runs the proxy must replace it; callers' keys are fine.",
    )


def answered(call: Call, status: int, parts: Parts) -> None:
    """An answer that is no failure of the gateway's: what looked whether it answers again has seen that it does."""
    if call.joined or call.waiter is None:
        return
    if status < 400 and call.hold is not None and call.hold.credits and parts.refusals.has_credits(call.credential):
        parts.log.note("info", "credits_latch_opened", id=call.id)
    if status < 500:
        gates, team = call.waiter.gates, call.waiter.team
        parts.queue.scheduler.gates.answered(gates, gates[WAY], team, parts.queue.now_s())
        warnings.gates(parts)


def refused(call: Call, told: Told, content_type: str, body: bytes, parts: Parts) -> None:
    """Learn from an error answer; of a shared one, only its first reader does."""
    if call.joined or call.policy.storms is _PASS:
        return
    now_s = parts.queue.now_s()
    match told.status:
        case 402 if call.hold is not None:
            if parts.refusals.no_credits(call.credential, call.hold.credits, now_s):
                warnings.latched(call, LATCH_S, parts)
        case status if status in REMEMBERED and (key := _key(call)) is not None:
            parts.refusals.remember(key, Said(status, told.headers, content_type, body), now_s)
        case 503 if (after_s := _after_s(told, parts)) is not None or _maintenance(body, call.model):
            suite = call.match.values["suite"] if call.match and call.mcp is not None else None
            gate = UPSTREAM if suite is None else GateName(Kind.SUITE, suite)
            until_s = now_s + (BREAK_UNKNOWN_S if after_s is None else min(max(after_s, 1.0), BREAK_MAX_S))
            parts.queue.scheduler.gates.break_(gate, until_s, "maintenance" if after_s is None else "told")
            warnings.gates(parts)
        case status if status >= 500 and status not in ASKED_WRONG:
            failed(call, parts)
    parts.queue.changed()


def failed(call: Call, parts: Parts) -> None:
    """The gateway failed without saying until when, or could not be reached: of its route and model, or its suite."""
    if call.joined or call.waiter is None or call.policy.storms is _PASS:
        return
    waiter, gates = call.waiter, parts.queue.scheduler.gates
    gates.failed(waiter.gates[WAY], waiter.gates[OWN_WAY], waiter.team, parts.queue.now_s(), waiter.looks)
    warnings.gates(parts)
    parts.queue.changed()


def _maintenance(body: bytes, model: str | None) -> bool:
    """Whether the gateway speaks of maintenance, and does not merely repeat the name that a caller asked for."""
    said = body.lower()
    return MAINTENANCE in (said.replace(model.lower().encode(), b"") if model else said)


def sent_back(call: Call, told: Told, parts: Parts) -> bool:
    """A 429 all the same: pause whom it counts for, and say whether the call may wait for its end."""
    assert call.waiter is not None
    if call.policy.storms is _PASS:
        return False
    queue, waiter = parts.queue, call.waiter
    now_s = queue.now_s()
    is_tool = call.mcp is not None and call.mcp.method == "tools/call"
    kind = Kind.TOOLS if is_tool else Kind.MEMBER
    gate = next(name for name in gates_of(call, waiter.draw.member) if name.kind is kind)
    after_s = _after_s(told, parts)
    if queue.scheduler.gates.until_s(gate) <= now_s:
        # Calls that were on their way together say the same thing once.
        queue.scheduler.cut(waiter.draw, now_s)
    queue.scheduler.gates.pause(gate, now_s + pause_s(after_s), "429")
    warnings.gates(parts)
    queue.changed()
    call.resent += 1
    return now_s + max(pause_s(after_s), after_s or 0.0) < waiter.deadline_s and call.resent <= RESENT_MAX


def _after_s(told: Told, parts: Parts) -> float | None:
    said = next((value for line, value in told.headers if line.lower() == "retry-after"), None)
    return retry_after_s(said, parts.wall())
