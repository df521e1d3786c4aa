"""What callers are told about waiting: why not, how long, and how much of a rate is left."""

from math import ceil, inf
from typing import Any, Final

from proxy.core.gatename import QUIET
from proxy.core.limits import Counts
from proxy.core.scheduler import Scheduler
from proxy.core.slots import Slots
from proxy.core.turns import Block, Held, Waiter
from proxy.errors import ProxyError
from proxy.server.budgets import over_budget

POINTLESS: Final = {"x-should-retry": "false"}


def refused(block: Block, waiter: Waiter, now_s: float, wall_s: float) -> ProxyError:
    """The error for a call that does not get its turn, with the figures as they are."""
    if block.refusal is not None:
        return over_budget(block.refusal)
    patience_s = max(0.0, waiter.deadline_s - waiter.asked_s)
    after_s = None if block.at_s == inf else max(0.0, block.at_s - now_s)
    data: dict[str, Any] = {
        "wait_s": None if after_s is None else round(after_s, 3),
        "wait_max_s": round(patience_s, 3),
    }
    reason, sentence = _said(block, waiter, after_s, patience_s)
    if block.slots is not None:
        data |= _figures(block.slots)
    return ProxyError(
        reason,
        sentence,
        retry_after_s=1.0 if block.held is Held.FLIGHT else after_s,
        resets_at_s=None if after_s is None else wall_s + after_s,
        headers=POINTLESS if block.held is Held.NEVER else None,
        data=data,
    )


def _said(block: Block, waiter: Waiter, after_s: float | None, patience_s: float) -> tuple[str, str]:
    """Reason and sentence."""
    waits = "nobody knows how long it lasts" if after_s is None else f"the wait would be about {ceil(after_s)} s"
    ends = f"{waits}, and this caller waits at most {patience_s:g} s"
    if block.held is Held.GATE:
        if block.gate is not None and block.gate.kind in QUIET:
            return "turn_too_far", f"The gateway asked for a pause; {ends}."
        return "paused", f"The gateway does not answer calls like this one at the moment; {waits}."
    if (slots := block.slots) is None:
        return "turn_too_far", f"Calls that came before take every turn; {ends}."
    rate = f"The rate {_named(slots)} allows {_amount(slots)}"
    asked = f"{waiter.tokens} tokens" if slots.rate.counts is Counts.TOKENS else "one call"
    match block.held:
        case Held.NEVER:
            return "limit_exhausted", f"{rate} and this asks for {asked}, which can never fit."
        case Held.SPENT:
            return "limit_exhausted", f"{rate}, of which {slots.used} are used. It lets nobody wait; {waits}."
        case Held.FLIGHT:
            return "budget_busy", f"{rate}, and none of them has ended within {patience_s:g} s."
        case _:
            return "turn_too_far", f"{rate}; {ends}."


def _figures(slots: Slots) -> dict[str, Any]:
    return {
        "limit": slots.rate.name,
        "amount": slots.amount,
        "used": slots.used,
        "waiting": sum(slots.waiting.values()),
        "window_s": slots.rate.window_s or None,
    }


def _named(slots: Slots) -> str:
    return f"{slots.rate.name} of {'/'.join(slots.group)}" if any(slots.group) else slots.rate.name


def _amount(slots: Slots) -> str:
    what = {Counts.REQUESTS: "requests", Counts.TOKENS: "tokens", Counts.IN_FLIGHT: "calls at once"}[slots.rate.counts]
    within = f" within {slots.rate.window_s:g} s" if slots.rate.window_s else ""
    return f"{slots.amount} {what}{within}"


def queue_full(room: int) -> ProxyError:
    """The error for a call whose body finds no room to wait in."""
    return ProxyError(
        "turn_too_far",
        f"The bodies of all calls that wait already fill the {room} bytes there are for them (--queue-bytes).",
    )


_LINES: Final = {
    kind: tuple(f"x-ratelimit-{said}-{kind.value}" for said in ("limit", "remaining", "reset"))
    for kind in (Counts.REQUESTS, Counts.TOKENS)
}


def tell_rates(lines: dict[str, str], waiter: Waiter, *, openai: bool, now_s: float) -> None:
    """Add the header lines that tell the caller's rates, and how much of the tightest one is left."""
    told: list[str] = []
    tight = other = None  # the tightest of all, and of those that count something else than it does
    least = other_least = inf
    for slots, _ in waiter.wants:
        rate = slots.rate
        if not rate.window_s or not rate.acts:
            continue
        told.append(slots.told)
        share = (slots.capacity - slots.used) / (slots.amount or 1)
        alike = tight is None or tight.rate.counts is rate.counts
        if share < least:
            if not alike:
                other, other_least = tight, least
            tight, least = slots, share
        elif not alike and share < other_least:
            other, other_least = slots, share
    if tight is None:
        return
    tight.forget(now_s)
    left, resets_s = _left(tight), _resets_s(tight, now_s)
    lines["ratelimit-policy"] = ", ".join(told)
    lines["ratelimit"] = f'"{tight.rate.name}";r={left};t={ceil(resets_s)}'
    if openai:
        _tell_openai(lines, tight, left, resets_s)
        # What has a window counts requests or tokens.
        if other is not None:
            _tell_openai(lines, other, _left(other), _resets_s(other, now_s))


def _tell_openai(lines: dict[str, str], slots: Slots, left: int, resets_s: float) -> None:
    """What OpenAI's SDKs read, for requests and for tokens."""
    limit, remaining, reset = _LINES[slots.rate.counts]
    lines[limit], lines[remaining], lines[reset] = str(slots.amount), str(left), f"{resets_s:.3f}s"


def _left(slots: Slots) -> int:
    left = slots.capacity - slots.used
    return left if left > 0 else 0


def _resets_s(slots: Slots, now_s: float) -> float:
    """Until the first place comes back."""
    ends_s = slots.next_s
    if ends_s is None:
        return slots.rate.window_s
    return ends_s - now_s if ends_s > now_s else 0.0


def told(scheduler: Scheduler, now_s: float, waiting_bytes: int) -> dict[str, object]:
    """The queue for people and programs: lanes with what holds up their heads, accounts in use, and what is shut."""
    lanes = [
        {
            "team": lane.team,
            "route": lane.head.draw.facts.route,
            "waiting": len(lane.waiters),
            "held_by": lane.head.block.held.value if lane.head.block is not None else None,
            "limit": lane.binding.rate.name if lane.binding is not None else None,
            "starts_in_s": _starts_in_s(scheduler, lane.head, now_s),
        }
        for lane in scheduler.lanes()
    ]
    limits = [
        {
            "name": slots.rate.name,
            "of": "/".join(slots.group),
            "amount": slots.amount,
            "now": slots.capacity,
            "used": slots.used,
            "waiting": sum(slots.waiting.values()),
        }
        for slots in scheduler.rates.all_slots(now_s)
        if slots.used or slots.waiting
    ]
    # Of names that read alike the one that opens last is told.
    gates = sorted(scheduler.gates.all_shut(now_s).items(), key=lambda gate: gate[1])
    shut = {name.words: _in_s(until_s, now_s) for name, until_s in gates}
    return {"waiting": len(scheduler), "bytes": waiting_bytes, "lanes": lanes, "limits": limits, "shut": shut}


def _starts_in_s(scheduler: Scheduler, head: Waiter, now_s: float) -> float | None:
    if (block := head.block) is None:
        return None
    if block.held is Held.RATE and block.at_s == inf:
        # It was not known when the head was looked at; since then calls may have ended.
        block = scheduler.predicted(head, now_s)
    return _in_s(block.at_s, now_s)


def _in_s(at_s: float, now_s: float) -> float | None:
    return None if at_s == inf else round(max(0.0, at_s - now_s), 3)


def shares(scheduler: Scheduler, now_s: float) -> dict[str, float]:
    """How much of each rate is taken, of its fullest account."""
    found = {rate.name: 0.0 for rate in scheduler.rates.rates}
    for slots in scheduler.rates.all_slots(now_s):
        found[slots.rate.name] = max(found[slots.rate.name], slots.used / max(1, slots.amount))
    return found
