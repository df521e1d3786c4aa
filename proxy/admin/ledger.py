"""The books themselves: whether they add up, their entries, a copy, what is in doubt, and what is said by hand."""

import time
from typing import Any, Final

from proxy.admin.call import Asked, Refused
from proxy.config.problem import did_you_mean
from proxy.core.facts import Facts
from proxy.core.ledger import Adjust, HoldState, Outcome, Phase, Resolve
from proxy.server.parts import Parts
from proxy.stores.ledger.commit import LedgerUnavailable
from proxy.units import credit_text, credits_of, instant_text

PAGE_MAX: Final = 5000
"""Entries of one page; more would keep calls waiting for the file."""

REASON_MAX: Final = 500


async def verify(_: Asked, parts: Parts) -> dict[str, Any]:
    """Everything that does not add up."""
    parts.books.store.push()
    problems = list(await parts.books.store.verify())
    return {"ok": not problems, "problems": problems}


async def entries(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Query: after (the number of an entry), limit. Raises Refused."""
    after, limit = _count(asked, "after", 0), min(_count(asked, "limit", 1000), PAGE_MAX)
    parts.books.store.push()
    page = await parts.books.store.entry_page(after, limit)
    return {"entries": list(page), "next": page[-1]["id"] if len(page) == limit else None}


def _count(asked: Asked, name: str, default: int) -> int:
    text = asked.query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Refused(400, f"{name} is not a whole number")
    return int(text)


async def backup(_: Asked, parts: Parts) -> dict[str, Any]:
    """Copy the ledger into the folder `backups` beside it. Raises Refused."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(parts.wall()))
    path = parts.settings.data / "backups" / f"ledger-{stamp}-{parts.new_id()[-6:]}.db"
    try:
        await parts.books.written()
        await parts.books.store.backup(path)
    except LedgerUnavailable as error:
        raise Refused(503, str(error)) from error
    return {"path": str(path), "bytes": path.stat().st_size}


async def doubts(_: Asked, parts: Parts) -> dict[str, Any]:
    """Holds whose cost only the gateway knows: those without an ending, and those with an uncertain one.

    What was charged on a guess comes first of the latter: a failed call (5xx) was booked at nothing, and stands.
    """
    store = parts.books.store
    unknown = store.unknown
    open_ones = [(hold, state) for hold, state in store.projection.holds.items() if hold in unknown]
    uncertain = [_doubt(hold, state) for hold, state in await store.doubtful()]
    return {
        "unknown": [_doubt(hold, state) for hold, state in open_ones],
        "uncertain": sorted(uncertain, key=lambda doubt: not doubt["to_decide"]),
    }


def _doubt(hold: str, state: HoldState) -> dict[str, Any]:
    facts = state.facts
    words = {"team": facts.team, "key": facts.key, "route": facts.route, "model": facts.model, "tool": facts.tool}
    return {
        "hold": hold,
        "at": instant_text(state.at_s),
        **words,
        "held": credit_text(state.held),
        "charged": credit_text(state.charged),
        "to_decide": state.phase is Phase.HELD or state.charged > 0,
    }


async def resolve(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Body: hold, credits, reason: what a call in doubt cost; force: "yes" for more than it held. Raises Refused."""
    hold, cost = asked.text("hold"), _amount(asked.text("credits"))
    if cost < 0:
        raise Refused(400, "credits: a call cannot have cost less than nothing")
    state = await parts.books.store.remember(hold)
    if state is None:
        raise Refused(404, f"there is no hold {hold!r}; see sluicegate ledger doubts")
    if cost > state.held and asked.text_or_none("force") != "yes":
        raise Refused(
            409,
            f"credits: the call of team {state.facts.team} held {credit_text(state.held)}, the most it could cost by "
            f"its price, and {credit_text(cost)} is above that; if the gateway says so, say it again with --force",
        )
    step = Resolve(hold, credits_of(credit_text(cost)), reason(asked), who(asked), parts.wall())
    await write(step, parts)
    return {"hold": hold, "team": state.facts.team, "credits": credit_text(cost), "was": credit_text(state.charged)}


_SENTENCES: Final = {
    Outcome.ALREADY_RESOLVED: "its cost was said before, and is not changed any more",
    Outcome.NOT_IN_DOUBT: "its cost is not in doubt",
    Outcome.NO_SUCH_HOLD: "there is no such hold",
    Outcome.DUPLICATE_HOLD: "it was booked before",
}


async def write(step: Resolve | Adjust, parts: Parts) -> None:
    """Book a step that somebody said by hand. Raises Refused."""
    try:
        (outcome,) = await parts.books.store.apply([step])
    except LedgerUnavailable as error:
        raise Refused(503, f"the ledger cannot take entries: {error}") from error
    if outcome is not Outcome.OK:
        raise Refused(409, _SENTENCES.get(outcome, outcome.value))


def reason(asked: Asked) -> str:
    """Why; raises Refused."""
    text = asked.text("reason")
    if len(text) > REASON_MAX:
        raise Refused(400, f"the reason is longer than {REASON_MAX} characters")
    return text


def who(asked: Asked) -> str:
    """Who says so, as they call themselves; the admin listener knows no names."""
    return (asked.text_or_none("who") or "admin")[:64]


def _amount(text: str) -> int:
    """A signed amount of credits in units; raises Refused."""
    try:
        return -credits_of(text[1:]) if text.startswith("-") else credits_of(text.removeprefix("+"))
    except ValueError as error:
        raise Refused(400, f"credits: {error}") from error


async def adjust(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Body: credits (signed), reason, team or budget, and key, model, route. Raises Refused."""
    amount, facts = _amount(asked.text("credits")), _facts(asked, parts)
    await _check_key(facts, parts)
    if not amount:
        raise Refused(400, "credits: nothing would change")
    accounts, at_s = parts.books.accounts, parts.wall()
    places = accounts.drawn_on(facts, at_s)
    named = asked.text_or_none("budget")
    if named is not None and all(one.budget.name != named for one in places):
        raise Refused(400, f"the budget {named!r} does not count such calls; say more with team, key, model or route")
    for one in places:
        if one.budget.name == named and "" in one.group:
            each = one.budget.each.value if one.budget.each is not None else ""
            raise Refused(400, f"the budget {named!r} has an account for each {each}; say which one")
        if one.settled + amount < 0:
            left = f"only {credit_text(one.settled)} credits are spent of {one.budget.name!r}"
            raise Refused(409, f"{left}, so {credit_text(-amount)} cannot be given back")
    step = Adjust(parts.new_id(), facts, amount, reason(asked), who(asked), at_s)
    await write(step, parts)
    parts.spans.correct(amount)
    moved = accounts.drawn_on(facts, at_s)
    return {
        "id": step.id,
        "team": facts.team,
        "credits": credit_text(amount),
        "moved": [
            {
                "name": one.budget.name,
                "group": list(one.group),
                "spent": credit_text(one.settled),
                "left": credit_text(one.left),
            }
            for one in moved
        ],
    }


async def _check_key(facts: Facts, parts: Parts) -> None:
    """A key that nobody has or had is a misspelt one. Raises Refused."""
    if not facts.key:
        return
    known = {key.id for key in parts.state.policy.teams[facts.team].keys}
    known |= {one.id for one in parts.keys.ring.issued.values() if one.team == facts.team}
    if facts.key in known:
        return
    # One that left the policies has entries, and they may need a correction.
    known |= {one.facts.key for one in await parts.books.store.totals(0.0) if one.facts.team == facts.team}
    if facts.key not in known - {""}:
        do = did_you_mean(facts.key, known - {""}) if known - {""} else "it has none"
        raise Refused(404, f"the team {facts.team!r} has no key {facts.key!r}; {do}")


def _facts(asked: Asked, parts: Parts) -> Facts:
    """What the correction is about: as said, else as the budget's match says where it is plain."""
    said = {word: asked.text_or_none(word) for word in ("team", "key", "model", "route")}
    named = asked.text_or_none("budget")
    budget = next((one for one in parts.books.accounts.budgets if one.name == named), None)
    if named is not None and budget is None:
        known = [one.name for one in parts.books.accounts.budgets]
        raise Refused(404, f"there is no budget {named!r}; {did_you_mean(named, known) if known else 'there are none'}")
    if budget is not None:
        for word, given in said.items():
            meant = getattr(budget.match, word)
            if given is None and meant is not None and not set("*?[") & set(meant):
                said[word] = meant
    team = said["team"]
    if team is None:
        raise Refused(400, "team is missing: say whose spending it is")
    if team not in parts.state.policy.teams:
        raise Refused(404, f"there is no team {team!r}; {did_you_mean(team, parts.state.policy.teams)}")
    key = parts.keys.ring.account_of(team, said["key"]) if said["key"] else ""
    return Facts(team, key, said["route"] or "", said["model"])
