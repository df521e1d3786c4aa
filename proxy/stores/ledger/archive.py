"""What is read from a ledger's file for people: totals since an instant, entries page by page, and a copy of it all."""

import os
from pathlib import Path
from typing import Any, Final

from proxy.core.spending import Total
from proxy.stores.ledger.contract import Entry
from proxy.stores.ledger.places import told
from proxy.stores.ledger.reading import IS_HOLD, TOTALS_SINCE, Ask
from proxy.stores.ledger.rows import QUARTER_S, Row, facts_of, quarter, texts
from proxy.stores.ledger.schema import ENTRY, FACTS

COLUMNS: Final = (
    "id", "kind", "hold", "at_s", *FACTS, "credits", "calls", "basis", "ending", "uncertain", "reason", "who", "place",
)  # fmt: skip

_SAID: Final = COLUMNS[:-1]
_NOTHING: Final = {name: 0 if name in ("credits", "calls", "uncertain") else "" for name in _SAID}

_ENTRIES: Final = f"""
    SELECT {", ".join(f"coalesce(facts.{name}, '')" if name in FACTS else f"one.{name}" for name in _SAID)}, places.text
    FROM entries AS one LEFT JOIN entries AS held ON held.hold = one.hold AND {IS_HOLD}
    LEFT JOIN places ON places.id = held.place LEFT JOIN facts ON facts.id = one.facts
    WHERE one.id > ? ORDER BY one.id LIMIT ?
"""  # noqa: S608  (names of this file, no input)


async def totals(ask: Ask, since_s: float) -> list[Total]:
    """Totals of the quarters of an hour that ended after an instant; those of facts with two numbers in two."""
    rows: Any = await ask(TOTALS_SINCE, quarter(max(since_s, 0.0)))
    return [Total(place * QUARTER_S, facts_of(names), spent, calls) for place, spent, calls, *names in rows]


async def entries(ask: Ask, after: int, limit: int) -> list[Entry]:
    """So many entries after one, in the order they were written."""
    rows: Any = await ask(_ENTRIES, after, limit)
    return [_told(dict(zip(COLUMNS, row, strict=True))) for row in rows]


def entry(number: int, row: Row, place: str | None) -> Entry:
    """The entry that a row in memory makes, as the file would have it. place: where the price of its hold stands."""
    name, *values = row
    kind, columns = ENTRY[name]
    said = dict(zip(columns, values, strict=True))
    if (facts := said.get("facts")) is not None:
        said |= zip(FACTS, texts(facts), strict=True)
    kept = {column: value for column, value in said.items() if column in _NOTHING}
    return _told({**_NOTHING, "id": number, "kind": kind, **kept, "place": place})


def _told(said: dict[str, Any]) -> Entry:
    said["place"] = told(said["kind"], said["basis"], said["place"])
    return said


async def copy(ask: Ask, path: Path) -> None:
    """A whole, compact copy in a new file; raises OSError and sqlite3 errors."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Made here, so that it is the owner's alone from its first byte on.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    await ask("VACUUM INTO ?", str(path))
