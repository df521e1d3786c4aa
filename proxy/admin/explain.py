"""`POST /api/explain`: what would become of a request, rule by rule, without sending it."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final

import orjson

from proxy.admin.budgets import standing_row
from proxy.admin.call import Asked, Refused
from proxy.core.account import Why
from proxy.core.keyring import KeyState
from proxy.core.pricing import Term, terms
from proxy.core.slots import Slots
from proxy.server.asking import waiter_of
from proxy.server.call import Call
from proxy.server.imagined import Imagined
from proxy.server.parts import Parts
from proxy.server.rehearsal import Caller, Rehearsed, rehearse
from proxy.units import credit_text, instant_text

BODY_SHOWN: Final = 16_384
"""Bytes of a body for the gateway that are repeated; a longer one is told by its length."""

NO_KEY: Final = "a-new-key"
"""Stands for the key of a team that has several, or none, where none was named."""


async def explain(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Body: method, path, headers, body (JSON or text), and team or key for who is imagined to call. Raises Refused."""
    inbound, caller = _imagined(asked, parts), _caller(asked, parts)
    done = await rehearse(inbound, caller, parts)
    call = done.call
    return {
        "request": {
            "method": inbound.method,
            "path": inbound.target,
            "route": call.route.name if call.route else None,
            "body_bytes": len(call.body),
        },
        "team": call.team.name if call.team else None,
        "key": call.key_id or None,
        "rules": list(_rules(done)),
        "ceiling": _ceiling(call),
        "limits": [_limit(one, done) for one in done.standing],
        "binding": _binding(done),
        "wait": _wait(done),
        "turn": _turn(done, parts),
        "cacheable": _cacheable(done),
        "answered_here": done.answered,
        "refused": _refused(done),
        "upstream": _upstream(call, parts) if done.answered is None else None,
    }


def _imagined(asked: Asked, parts: Parts) -> Imagined:
    method, path = str(asked.body.get("method", "POST")).upper(), asked.text("path")
    headers, body = asked.body.get("headers", {}), asked.body.get("body")
    if not isinstance(headers, dict) or not all(isinstance(item, str) for item in headers.values()):
        raise Refused(400, "headers: expected texts by name")
    raw = b"" if body is None else body.encode() if isinstance(body, str) else orjson.dumps(body)
    lines: dict[str, str] = {}
    if not any(name.lower() == "host" for name in headers):
        lines["Host"] = str(parts.settings.listen)
    lines |= headers
    if raw and not any(name.lower() == "content-type" for name in headers):
        lines["Content-Type"] = "application/json"
    return Imagined(method, path, lines, raw)


def _caller(asked: Asked, parts: Parts) -> Caller:
    """The team named, or that of the key whose id is named."""
    policy = parts.state.policy
    team_name, key_id = asked.text_or_none("team"), asked.text_or_none("key")
    if team_name is not None and team_name not in policy.teams:
        raise Refused(404, f"there is no team {team_name!r}; known are {', '.join(policy.teams)}")
    if key_id is None:
        return Caller() if team_name is None else Caller(policy.teams[team_name], _its_only_key(team_name, parts))
    teams = {team.name for team in policy.teams.values() for key in team.keys if key.id == key_id}
    if (issued := parts.keys.ring.issued.get(key_id)) is not None and issued.team in policy.teams:
        teams.add(issued.team)
    if team_name is not None:
        return Caller(policy.teams[team_name], key_id)
    if len(teams) != 1:
        known = f"teams {', '.join(sorted(teams))} have" if teams else "no team has"
        raise Refused(404, f"{known} a key with the id {key_id!r}; say which team")
    return Caller(policy.teams[teams.pop()], key_id)


def _its_only_key(team: str, parts: Parts) -> str:
    """The id of the one key a team has, so that accounts of a key are those it has; else that of a key nobody used."""
    written = {key.id for key in parts.state.policy.teams[team].keys}
    now_s = parts.wall()
    issued = {
        name for name, one in parts.keys.ring.issued.items() if one.team == team and one.state(now_s) is KeyState.ACTIVE
    }
    known = written | issued
    return known.pop() if len(known) == 1 else NO_KEY


def _rules(done: Rehearsed) -> Iterator[dict[str, Any]]:
    """Every rule that has a say, with its place."""
    call = done.call
    sources = call.policy.sources
    if call.team is not None:
        yield _rule("team", call.team.name, sources.get(f"team {call.team.name}", ""))
    if call.alias is not None:
        yield _rule("alias", f"{call.alias} stands for {call.model}", sources.get(f"alias {call.alias}", ""))
    if call.hold is not None and call.hold.price is not None:
        facts = call.facts_for_books
        priced = facts.model or facts.suite or f"chatbot {facts.chatbot}"
        yield _rule("price", priced, call.hold.price.source)
    for one in done.standing:
        yield _rule("budget", one.budget.name, one.budget.source)


def _rule(kind: str, name: str, source: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "source": source or "built in"}


def _ceiling(call: Call) -> dict[str, Any] | None:
    """The hold, and the sum it is; None for a call that spends nothing."""
    if call.hold is None:
        return None
    price = call.hold.price
    summed = () if price is None or call.asked is None else terms(call.asked, price, call.policy.estimate)
    return {
        "credits": credit_text(call.hold.credits),
        "terms": [_term(term) for term in summed],
        "price": None if price is None else price.place,
        "estimate": call.policy.estimate.value,
        "text_bytes": call.asked.text_bytes if call.asked is not None else 0,
        "learned_density": call.asked.density if call.asked is not None else None,
    }


def _term(term: Term) -> dict[str, Any]:
    return {
        "what": term.what,
        "count": term.units,
        "price": credit_text(term.price),
        "per": term.per,
        "credits": credit_text(term.credits),
    }


def _limit(one: Any, done: Rehearsed) -> dict[str, Any]:
    asked = done.call.hold.credits if done.call.hold is not None else 0
    return {**standing_row(one), "acts": one.budget.acts, "fits": asked <= one.left or not asked}


def _binding(done: Rehearsed) -> dict[str, Any] | None:
    one = done.binding
    return None if one is None else {"name": one.budget.name, "group": list(one.group), "source": one.budget.source}


def _wait(done: Rehearsed) -> dict[str, Any] | None:
    """What the call would wait for before it is refused."""
    if done.refusal is None or done.refusal.why is not Why.BUSY or done.call.team is None:
        return None
    return {"for": "running calls to end", "at_most_s": done.call.team.wait_max_s}


def _turn(done: Rehearsed, parts: Parts) -> dict[str, Any] | None:
    """Every rate the call draws on, and when its turn would be; None for a call that never asks for one."""
    call = done.call
    if call.team is None or call.out is None or call.match is None or done.answered is not None:
        return None
    scheduler, now_s = parts.queue.scheduler, parts.queue.now_s()
    waiter = waiter_of(call, parts)
    waiter.wants = scheduler.rates.wants(waiter.draw, waiter.tokens)
    block = scheduler.predicted(waiter, now_s)
    return {
        "rates": [_rate(slots, amount) for slots, amount in waiter.wants],
        "starts_in_s": None if block.at_s == inf else round(max(0.0, block.at_s - now_s), 3),
        "binding": block.slots.rate.name if block.slots else block.gate.words if block.gate else None,
        "at_most_s": call.team.wait_max_s,
    }


def _rate(slots: Slots, amount: int) -> dict[str, Any]:
    return {
        "name": slots.rate.name,
        "source": slots.rate.source,
        "of": "/".join(slots.group),
        "asked": amount,
        "used": slots.used,
        "amount": slots.amount,
        "waiting": sum(slots.waiting.values()),
    }


def _cacheable(done: Rehearsed) -> dict[str, Any] | None:
    """Whether the answer may be kept, for how long, and what makes it so; whether it is there already."""
    if done.caching is None:
        return None
    decision = done.caching.decision
    return {
        "may": decision.may,
        "why": decision.detail,
        "source": decision.source or "built in",
        "fresh_s": decision.ttl_s if decision.may else None,
        "stored": done.hit,
    }


def _refused(done: Rehearsed) -> dict[str, Any] | None:
    error = done.error
    if error is None:
        return None
    resets_at = None if error.resets_at_s is None else instant_text(error.resets_at_s)
    return {
        "stage": done.call.stage if done.refusal is None else "admit",
        "status": error.reason.status,
        "reason": error.reason.name,
        "message": error.message,
        "resets_at": resets_at,
    }


def _upstream(call: Call, parts: Parts) -> dict[str, Any] | None:
    """The request as the gateway would get it; None where it did not come so far. Keys are masked."""
    out = call.out
    if out is None:
        return None
    return {
        "method": out.method,
        "url": f"{parts.settings.upstream or ''}{out.target}",
        "headers": _shown(out.all_headers),
        "body": _text(out.body),
    }


def _shown(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: "Bearer ***" if name == "authorization" else value for name, value in headers.items()}


def _text(body: bytes) -> str | None:
    if len(body) > BODY_SHOWN:
        return f"({len(body):,} bytes)"
    return body.decode("utf-8", "replace") if body else None
