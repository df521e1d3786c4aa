"""What is read back from the ledger's file: statements, and the values they become. Writes nothing."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import orjson

from proxy.core.facts import Facts
from proxy.core.holds import OpenHold
from proxy.core.ledger import HoldState, Phase
from proxy.core.operations import Operation
from proxy.core.prices import Price
from proxy.core.riders import (
    IssueKey,
    Keep,
    KeptKey,
    KeptOutcome,
    KeptOwner,
    KeptTurn,
    Learned,
    Own,
    Promise,
    Turn,
    TurnWritten,
)
from proxy.stores.ledger.numbers import FACTS_MAX
from proxy.stores.ledger.rows import facts_of
from proxy.stores.ledger.schema import FACT_NAMES, FACTS
from proxy.units import Credits

Ask = Callable[..., Awaitable[Iterable[sqlite3.Row | tuple[Any, ...]]]]
"""Runs a statement with its values, and has its rows."""

FACTS_OF_HELD: Final = "JOIN facts ON facts.id = held.facts"

# An index over some rows is used only where its very condition stands in the statement, and CROSS JOIN keeps the order.
IS_HOLD: Final = "held.kind IN ('hold', 'adjust') AND held.kind = 'hold'"

OPEN_HOLDS: Final = f"""
    SELECT held.hold, held.at_s, held.credits, {FACT_NAMES}
    FROM open_holds CROSS JOIN entries AS held ON held.hold = open_holds.hold AND {IS_HOLD} {FACTS_OF_HELD}
    ORDER BY held.id
"""  # noqa: S608  (names of this file, no input)

OPEN_HOLDS_NAMES: Final = "SELECT hold FROM open_holds"

OPEN_BY_ENTRIES: Final = """
    SELECT hold FROM entries AS held WHERE kind = 'hold'
    AND NOT EXISTS (SELECT 1 FROM entries WHERE hold = held.hold AND kind IN ('settle', 'void'))
    AND NOT EXISTS (SELECT 1 FROM entries WHERE hold = held.hold AND kind = 'expire')
"""

SPENT_IN: Final = f"""
    SELECT spent, {FACT_NAMES}
    FROM (SELECT facts, sum(credits) AS spent FROM totals WHERE quarter >= ? GROUP BY facts) AS held {FACTS_OF_HELD}
"""  # noqa: S608  (names of this file, no input)

TOTALS_SINCE: Final = f"""
    SELECT quarter, credits, calls, {FACT_NAMES} FROM totals AS held {FACTS_OF_HELD} WHERE quarter >= ?
"""  # noqa: S608  (names of this file, no input)

SPENT_SINCE: Final = f"""
    SELECT held.at_s, added.credits, {FACT_NAMES}
    FROM entries AS held JOIN entries AS added
    ON added.hold = held.hold AND added.kind IN ('settle', 'void') AND added.kind = 'settle' {FACTS_OF_HELD}
    WHERE held.kind = 'hold' AND held.at_s > ?1
    UNION ALL SELECT held.at_s, added.credits, {FACT_NAMES}
    FROM entries AS held JOIN entries AS added ON added.hold = held.hold AND added.kind = 'resolve' {FACTS_OF_HELD}
    WHERE held.kind = 'hold' AND held.at_s > ?1
    UNION ALL SELECT at_s, credits, {FACT_NAMES} FROM entries AS held {FACTS_OF_HELD}
    WHERE kind = 'adjust' AND at_s > ?1 ORDER BY 1
"""  # noqa: S608  (names of this file, no input)
"""What each hold or adjustment added, at the instant whose windows it belongs to."""

PLACES: Final = "SELECT text, id FROM places"
_NUMBERS: Final = f"SELECT id, {FACT_NAMES} FROM facts ORDER BY id DESC LIMIT {FACTS_MAX}"  # noqa: S608

SPENT_BY_TEAM: Final = f"SELECT team, sum(credits) FROM spent AS held {FACTS_OF_HELD} GROUP BY team"  # noqa: S608
SPENT_BY_TOTALS: Final = f"SELECT team, sum(credits) FROM totals AS held {FACTS_OF_HELD} GROUP BY team"  # noqa: S608
LATEST: Final = "SELECT max(at_s) FROM entries"

REBUILT: Final = f"""
    SELECT added.quarter, {FACT_NAMES}, added.credits, added.calls, held.at_s
    FROM entries AS added JOIN entries AS held ON held.hold = added.hold AND held.kind IN ('hold', 'adjust')
    {FACTS_OF_HELD}
    WHERE added.kind IN ('settle', 'resolve', 'adjust')
"""  # noqa: S608  (names of this file, no input)

_NUMBERED: Final = ("entries", "totals", "spent", "turns")
NO_FACTS: Final = " UNION ALL ".join(
    f"SELECT '{table}', count(*) FROM {table} WHERE facts NOT IN (SELECT id FROM facts)"  # noqa: S608
    for table in _NUMBERED
)
"""Rows whose number stands for nothing: a sum would leave them out on both of its sides."""

MISSING: Final = "SELECT count(*) FROM entries WHERE facts IS NULL AND kind NOT IN ('void', 'expire')"
CHANGED: Final = f"""
    SELECT added.hold FROM entries AS added
    JOIN entries AS held ON held.hold = added.hold AND held.kind IN ('hold', 'adjust') AND held.facts <> added.facts
    JOIN facts AS one ON one.id = held.facts JOIN facts AS other ON other.id = added.facts
    WHERE added.kind IN ('settle', 'resolve')
    AND ({", ".join(f"one.{name}" for name in FACTS)}) <> ({", ".join(f"other.{name}" for name in FACTS)})
    ORDER BY added.id
"""  # noqa: S608  (names of this file, no input)
"""Holds whose settlement is about something else than they are."""

_ENDED: Final = f"""
    SELECT held.at_s, {FACT_NAMES}, held.credits, ended.kind, ended.credits, ended.uncertain,
        EXISTS (SELECT 1 FROM entries WHERE hold = ?1 AND kind = 'resolve')
    FROM entries AS held JOIN (
        SELECT kind, credits, uncertain FROM entries WHERE hold = ?1 AND kind IN ('settle', 'void')
        UNION ALL SELECT kind, credits, uncertain FROM entries WHERE hold = ?1 AND kind = 'expire'
    ) AS ended {FACTS_OF_HELD}
    WHERE held.hold = ?1 AND {IS_HOLD} ORDER BY ended.kind = 'expire' LIMIT 1
"""  # noqa: S608  (names of this file, no input)

_DOUBTFUL: Final = f"""
    SELECT held.hold, held.at_s, {FACT_NAMES}, held.credits, ended.kind, ended.credits, 1, 0
    FROM entries AS ended CROSS JOIN entries AS held ON held.hold = ended.hold AND {IS_HOLD} {FACTS_OF_HELD}
    WHERE ended.uncertain = 1
    AND NOT EXISTS (SELECT 1 FROM entries WHERE hold = held.hold AND kind = 'resolve') ORDER BY held.id
"""  # noqa: S608  (names of this file, no input)


async def numbers(ask: Ask) -> list[tuple[int, Facts]]:
    """The newest facts, by their numbers."""
    return [(number, facts_of(names)) for number, *names in await ask(_NUMBERS)]


async def ended_hold(ask: Ask, hold: str) -> HoldState | None:
    """A hold that ended, as its entries left it."""
    for found in await ask(_ENDED, hold):
        return _ended(found)
    return None


async def doubtful(ask: Ask) -> list[tuple[str, HoldState]]:
    """Holds with an uncertain ending that nobody has resolved."""
    return [(hold, _ended(found)) for hold, *found in await ask(_DOUBTFUL)]


_PHASES: Final = {"settle": Phase.SETTLED, "void": Phase.VOIDED, "expire": Phase.EXPIRED}


def _ended(found: Any) -> HoldState:
    at_s, *names, held, kind, charged, uncertain, resolved = found
    phase = Phase.SETTLED if resolved else _PHASES[kind]
    doubt = bool(uncertain) and not resolved
    return HoldState(facts_of(names), phase, Credits(held), at_s, Credits(charged), doubt)


async def owners(ask: Ask, since_s: float) -> list[KeptOwner]:
    """Ids given since an instant, oldest first."""
    rows = await ask("SELECT * FROM owners WHERE at_s >= ? ORDER BY rowid", since_s)
    return [KeptOwner(Own(id_, team, model, at_s), *tokens) for id_, team, model, at_s, *tokens in rows]


async def operations(ask: Ask) -> list[Operation]:
    """Open operations, oldest first."""
    found = []
    rows = await ask(
        "SELECT id, team, kind, model, terms, begun_s FROM operations WHERE ended_s IS NULL ORDER BY rowid"
    )
    for id_, team, kind, model, terms, begun_s in rows:
        words = orjson.loads(terms)
        price = words.pop("price")
        hold = OpenHold(**words, price=None if price is None else Price(**price))
        found.append(Operation(id_, team, kind, model, hold, begun_s))
    return found


async def outcome(ask: Ask, team: str, key: str) -> KeptOutcome | None:
    """What is known of a call with an idempotency key."""
    for digest, hold, at_s, status, headers, body, kept_s in await ask(
        "SELECT digest, hold, at_s, status, headers, body, kept_s FROM outcomes WHERE team = ? AND key = ?", team, key
    ):
        promise = Promise(team, key, digest, at_s, hold)
        if status is None:
            return KeptOutcome(promise)
        lines = tuple((name, value) for name, value in orjson.loads(headers))
        return KeptOutcome(promise, Keep(team, key, status, lines, body, kept_s))
    return None


async def keys(ask: Ask) -> list[KeptKey]:
    """Every virtual key issued by command, oldest first."""
    rows = await ask(
        "SELECT keys.id, team, hash, created_s, expires_s, note, coalesce(account, ''), revoked_s "
        "FROM keys LEFT JOIN successors ON successors.id = keys.id ORDER BY keys.rowid"
    )
    return [KeptKey(IssueKey(*issued), revoked_s) for *issued, revoked_s in rows]


async def learned(ask: Ask) -> list[Learned]:
    """What was learned about text, per route and model."""
    return [Learned(*one) for one in await ask("SELECT route, model, density, answers, at_s FROM learned")]


async def turns(ask: Ask, since_s: float) -> list[KeptTurn]:
    """Turns taken or written since an instant, and those never written, oldest first."""
    found = []
    for id_, reserves, spends, tokens, at_s, boot_id, boot_s, written_s, written_boot_s, *names in await ask(
        f"SELECT held.id, reserves, spends, tokens, at_s, boot_id, boot_s, written_s, written_boot_s, {FACT_NAMES} "  # noqa: S608
        f"FROM turns AS held {FACTS_OF_HELD} "
        "WHERE at_s >= ?1 OR written_s >= ?1 OR written_s IS NULL ORDER BY held.id",
        since_s,
    ):
        turn = Turn(id_, facts_of(names), bool(reserves), bool(spends), tokens, at_s, boot_id, boot_s)
        found.append(KeptTurn(turn, None if written_s is None else TurnWritten(id_, written_s, written_boot_s)))
    return found
