"""A step as a row of the ledger's file: its kind and its values, in the order that `schema.py` reads them."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from proxy.core.charges import WORD, Basis
from proxy.core.facts import Facts
from proxy.core.ledger import Adjust, Expire, Hold, HoldState, Phase, Resolve, Settle, Step, Void
from proxy.core.riders import (
    Begin,
    Finish,
    Forget,
    IssueKey,
    Keep,
    Learned,
    Own,
    Promise,
    Release,
    RevokeKey,
    Rider,
    Turn,
    TurnWritten,
    Used,
)
from proxy.stores.ledger.schema import ADMITTED, ENDED, NO_KIND, WIDTH

QUARTER_S: Final = 900
"""Totals are kept per quarter of an hour, which every zone's midnight is a whole number of."""

Row = tuple[Any, ...]
"""A kind, then its values."""

_NO_ROW: Final = (NO_KIND,) * (1 + WIDTH)
"""Stands for values that a row does not have. Binding None takes the driver a microsecond, a number next to nothing."""


def values(rows: Sequence[Row]) -> tuple[int, list[Any]]:
    """Rows as the values of one statement, and of how many rows it is.

    It is rounded up by a quarter at most, so that the statement is nearly always one that was prepared before; a row
    without a kind goes nowhere, and takes a fifth of the time of one that does.
    """
    step = 1 << max(0, (len(rows) - 1).bit_length() - 3)
    count = -(-len(rows) // step) * step
    flat: list[Any] = []
    for made in rows:
        flat += made
        flat += _NO_ROW[len(made) :]
    return count, flat + list(_NO_ROW) * (count - len(rows))


def quarter(at_s: float) -> int:
    """The quarter of an hour an instant falls into."""
    return int(at_s // QUARTER_S)


def texts(facts: Facts) -> tuple[str, ...]:
    """Facts as their columns."""
    return (
        facts.team,
        facts.key,
        facts.route,
        facts.model or "",
        facts.suite or "",
        facts.tool or "",
        facts.credential,
        facts.chatbot or "",
    )


def facts_of(columns: Sequence[str]) -> Facts:
    """Facts from their columns."""
    team, key, route, model, suite, tool, credential, chatbot = columns
    return Facts(team, key, route, model or None, suite or None, tool or None, credential, chatbot or None)


def facts_in(step: Step, before: HoldState | None) -> Facts | None:
    """The facts that the row of a step has. before: its hold as it was."""
    if isinstance(step, Hold | Adjust | Turn):
        return step.facts
    return before.facts if before is not None and isinstance(step, Settle | Resolve) else None


def held(step: Hold, at_s: float, facts: Any, place: int | None, turn: Turn | None) -> Row:
    """The row of a hold that was taken at an instant, and of its turn.

    facts: their number, or themselves if the row stays in memory.      place: the number of where its price stands.
    """
    if turn is None:
        return ("hold", step.hold, at_s, facts, step.credits, place)
    return (ADMITTED, step.hold, at_s, facts, step.credits, place, *_counts(turn))


def settled(step: Settle, before: HoldState, facts: Any, written: TurnWritten | None) -> Row:
    """The row of a settlement, and of the end of the call's turn. before: its hold as it was."""
    hold, (credits_, basis, calls, uncertain), ending, at_s = step
    place, doubt, on, how = quarter(before.at_s), 1 if uncertain else 0, WORD[basis], WORD[ending]
    if written is None:
        return ("settle", hold, at_s, facts, credits_, place, calls, on, how, doubt)
    return (ENDED, hold, at_s, facts, credits_, place, calls, on, how, doubt, written.at_s, written.boot_s)


def row(step: Step, before: HoldState | None, facts: Any) -> Row:
    """The row of a step that was taken. before: its hold as it was. facts: as `facts_in` says, as in `held`."""
    match step:
        case Rider():
            return _riding(step, facts)
        case Hold():
            return held(step, step.at_s, facts, None, None)
        case Settle():
            assert before is not None
            return settled(step, before, facts, None)
        case Void():
            return ("void", step.hold, step.at_s, WORD[step.ending], int(step.uncertain))
        case Expire():
            return ("expire", step.hold, step.at_s)
        case Resolve():
            assert before is not None
            kind = "told" if before.phase is Phase.HELD else "resolve"
            added = step.credits - before.charged
            return (kind, step.hold, step.at_s, facts, added, quarter(before.at_s), *_by_hand(step))
        case Adjust():
            return ("adjust", step.id, step.at_s, facts, step.credits, quarter(step.at_s), *_by_hand(step))


def _by_hand(step: Resolve | Adjust) -> tuple[str, str, str]:
    return (Basis.HAND.value, step.reason, step.who)


def _counts(turn: Turn) -> tuple[Any, ...]:
    _, _, reserves, spends, tokens, at_s, boot_id, boot_s, _ = turn
    return (1 if reserves else 0, 1 if spends else 0, tokens, at_s, boot_id, boot_s)


def _riding(step: Rider, facts: Any) -> Row:
    match step:
        case Turn():
            return ("turn", step.id, facts, *_counts(step))
        case TurnWritten():
            return ("written", step.id, step.at_s, step.boot_s)
        case Own():
            return ("own", step.id, step.team, step.model, step.at_s)
        case Used():
            return ("used", step.id, step.input_tokens, step.output_tokens)
        case Begin(one):
            terms = orjson.dumps(one.hold._asdict()).decode()
            return ("begin", one.id, one.team, one.kind, one.model, one.hold.id, terms, one.begun_s)
        case Finish():
            return ("finish", step.id, step.at_s)
        case Promise():
            return ("promise", step.team, step.key, step.digest, step.hold, step.at_s)
        case Keep():
            headers = orjson.dumps(step.headers).decode()
            return ("keep", step.team, step.key, step.status, headers, step.body, step.at_s)
        case Release():
            return ("release", step.team, step.key)
        case IssueKey():
            return ("key", step.id, step.team, step.hash, step.created_s, step.expires_s, step.note, step.account)
        case RevokeKey():
            return ("revoke", step.id, step.revoked_s)
        case Learned():
            return ("learned", step.route, step.model, step.density, step.answers, step.at_s)
        case Forget():
            return (f"forget_{step.shelf.value}", step.at_s)
    raise AssertionError(step)
