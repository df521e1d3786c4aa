# ruff: noqa: S608  (statements are put together from the names below, never from input)
"""The ledger's file: its tables, the one statement that writes to them, and the version it has.

Entries are appended and never changed. Each batch is one statement: an insert into the view `book`, whose rows are a
kind and its values. A trigger for each kind says where such a row goes, so that entries, totals and whatever rides with
them are written in one thread hop and one commit. The database asks each trigger of a view about each row, so the view
has the two kinds that a call is made of, and hands all others on to a view of their own.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

VERSION: Final = 6
"""`PRAGMA user_version` of a file this code writes."""

FACTS: Final = ("team", "key", "route", "model", "suite", "tool", "credential", "chatbot")
"""What an entry is about; "" stands for nothing, because NULL is never equal to NULL."""

FACT_COLUMNS: Final = ", ".join(f"{name} TEXT NOT NULL DEFAULT ''" for name in FACTS)
FACT_NAMES: Final = ", ".join(FACTS)

FORGOTTEN_AT_ONCE: Final = 500
"""Rows that one step lets go of, so that no batch waits long behind it."""

ENTRIES: Final = f"""
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN ('hold', 'settle', 'void', 'expire', 'resolve', 'adjust')),
        hold TEXT NOT NULL,
        at_s REAL NOT NULL,
        {FACT_COLUMNS},
        credits INTEGER NOT NULL DEFAULT 0,
        calls INTEGER NOT NULL DEFAULT 0,
        basis TEXT NOT NULL DEFAULT '',
        ending TEXT NOT NULL DEFAULT '',
        uncertain INTEGER NOT NULL DEFAULT 0,
        quarter INTEGER,
        reason TEXT NOT NULL DEFAULT '',
        who TEXT NOT NULL DEFAULT ''
    ) STRICT;
"""
"""credits: what the entry adds, so that settlements, resolutions and adjustments sum up to what is spent."""

INDEXES: Final = """
    CREATE UNIQUE INDEX one_hold ON entries (hold) WHERE kind IN ('hold', 'adjust');
    CREATE UNIQUE INDEX one_ending ON entries (hold) WHERE kind IN ('settle', 'void');
    CREATE UNIQUE INDEX one_expiry ON entries (hold) WHERE kind = 'expire';
    CREATE UNIQUE INDEX one_resolution ON entries (hold) WHERE kind = 'resolve';
    CREATE INDEX by_time ON entries (at_s);
    CREATE INDEX in_doubt ON entries (hold) WHERE uncertain = 1;
    CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE (ABORT, 'entries are never changed'); END;
    CREATE TRIGGER entries_keep BEFORE DELETE ON entries BEGIN SELECT RAISE (ABORT, 'entries are never removed'); END;
"""

TOTALS: Final = f"""
    CREATE TABLE totals (
        quarter INTEGER NOT NULL,
        {FACT_COLUMNS},
        credits INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        PRIMARY KEY (quarter, {FACT_NAMES})
    ) STRICT, WITHOUT ROWID;
"""

SUMS: Final = """
    CREATE TABLE open_holds (hold TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TABLE spent (team TEXT NOT NULL PRIMARY KEY, credits INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""
"""What a start would else go through all entries for: holds without an ending, and all that each team ever spent."""

SINCE_4: Final = """
    CREATE TABLE learned (
        route TEXT NOT NULL, model TEXT NOT NULL, density INTEGER NOT NULL, answers INTEGER NOT NULL,
        at_s REAL NOT NULL, PRIMARY KEY (route, model)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE successors (id TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""
"""How dense text is, as `core.learned` says it; and under which id a key counts that took over from another."""

SINCE_5: Final = """
    CREATE TABLE places (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
    ALTER TABLE entries ADD COLUMN place INTEGER REFERENCES places (id);
"""
"""Where the prices of holds stand, each place once; a hold has the number of its own, NULL where that was not kept."""

RIDERS: Final = f"""
    CREATE TABLE owners (
        id TEXT NOT NULL PRIMARY KEY, team TEXT NOT NULL, model TEXT, at_s REAL NOT NULL,
        input_tokens INTEGER, output_tokens INTEGER
    ) STRICT;
    CREATE TABLE operations (
        id TEXT NOT NULL PRIMARY KEY, team TEXT NOT NULL, kind TEXT NOT NULL, model TEXT, hold TEXT NOT NULL,
        terms TEXT NOT NULL, begun_s REAL NOT NULL, ended_s REAL
    ) STRICT;
    CREATE TABLE outcomes (
        team TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, hold TEXT, at_s REAL NOT NULL,
        status INTEGER, headers TEXT, body BLOB, kept_s REAL,
        PRIMARY KEY (team, key)
    ) STRICT;
    CREATE TABLE keys (
        id TEXT NOT NULL PRIMARY KEY, team TEXT NOT NULL, hash TEXT NOT NULL, created_s REAL NOT NULL, expires_s REAL,
        revoked_s REAL, note TEXT NOT NULL
    ) STRICT;
    CREATE TABLE turns (
        id TEXT NOT NULL PRIMARY KEY, {FACT_COLUMNS}, reserves INTEGER NOT NULL, spends INTEGER NOT NULL,
        tokens INTEGER NOT NULL, at_s REAL NOT NULL, boot_id TEXT NOT NULL, boot_s REAL NOT NULL,
        written_s REAL, written_boot_s REAL
    ) STRICT;
"""
"""operations.terms: the hold as JSON. outcomes.headers: pairs as JSON."""

WIDTH: Final = 2 + len(FACTS) + 8
"""Values of the longest row."""


def _value(at: int) -> str:
    return f"NEW.v{at}"


def _insert(table: str, *columns: str, kind: str = "") -> str:
    """Insert the row's values, in this order; entries also say of which kind they are."""
    values = ", ".join(_value(at) for at in range(len(columns)))
    if kind:
        return f"INSERT INTO {table} (kind, {', '.join(columns)}) VALUES ('{kind}', {values})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"


def _total(quarter: int, facts: int, spent: int, calls: str) -> tuple[str, str]:
    """Add to a total and to what its team spent, with the places of the values in the row."""
    texts = ", ".join(_value(facts + at) for at in range(len(FACTS)))
    total = (
        f"INSERT INTO totals (quarter, {FACT_NAMES}, credits, calls) "
        f"VALUES ({_value(quarter)}, {texts}, {_value(spent)}, {calls}) "
        f"ON CONFLICT (quarter, {FACT_NAMES}) "
        "DO UPDATE SET credits = credits + excluded.credits, calls = calls + excluded.calls"
    )
    team = (
        f"INSERT INTO spent (team, credits) VALUES ({_value(facts)}, {_value(spent)}) "
        "ON CONFLICT (team) DO UPDATE SET credits = credits + excluded.credits"
    )
    return total, team


def _forget(table: str, when: str) -> str:
    # `rowid` follows the order of writing, so no index is needed to find the oldest.
    oldest = f"SELECT rowid FROM {table} ORDER BY rowid LIMIT {FORGOTTEN_AT_ONCE}"
    return f"DELETE FROM {table} WHERE rowid IN ({oldest}) AND {when} < {_value(0)}"


_FIRST: Final = ("hold", "at_s", *FACTS)
_SPENT: Final = len(_FIRST)
_ENDED: Final = (*_FIRST, "credits", "quarter", "calls", "basis", "ending", "uncertain")
_HAND: Final = (*_FIRST, "credits", "quarter", "basis", "reason", "who")

# fmt: off
ENTRY: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "hold":     ("hold",    (*_FIRST, "credits", "place")),
    "settle":   ("settle",  _ENDED),
    "void":     ("void",    ("hold", "at_s", "ending", "uncertain")),
    "expire":   ("expire",  ("hold", "at_s")),
    # What an open hold of an earlier process has cost is its settlement, said by hand.
    "told":     ("settle",  _HAND),
    "resolve":  ("resolve", _HAND),
    "adjust":   ("adjust",  _HAND),
}
# fmt: on
"""Rows that are entries: of which kind, and the columns their values go to, in this order."""


def _entry(row: str) -> str:
    kind, columns = ENTRY[row]
    return _insert("entries", *columns, kind=kind)


_COUNTED: Final = _total(_SPENT + 1, 2, _SPENT, _value(_SPENT + 2))
_BY_HAND: Final = _total(_SPENT + 1, 2, _SPENT, "0")
_THIS_ID: Final = f"WHERE id = {_value(0)}"
_THIS_KEY: Final = f"WHERE team = {_value(0)} AND key = {_value(1)}"
_ONCE: Final = " ON CONFLICT (id) DO NOTHING"
_ANEW: Final = (
    " ON CONFLICT (route, model) DO UPDATE SET density = excluded.density, answers = excluded.answers, "
    "at_s = excluded.at_s"
)
_SUCCEEDS: Final = (
    f"INSERT INTO successors (id, account) SELECT {_value(0)}, {_value(6)} WHERE {_value(6)} <> '' "
    f"AND EXISTS (SELECT 1 FROM keys {_THIS_ID} AND hash = {_value(2)}) ON CONFLICT (id) DO NOTHING"
)
_REVOKED: Final = f"min({_value(1)}, coalesce(revoked_s, {_value(1)}))"
_BEGUN: Final = ("id", "team", "kind", "model", "hold", "terms", "begun_s")
_KEPT: Final = f"status = {_value(2)}, headers = {_value(3)}, body = {_value(4)}, kept_s = {_value(5)}"
_TOKENS: Final = f"input_tokens = {_value(1)}, output_tokens = {_value(2)}"
_OPENED: Final = _insert("open_holds", "hold")
_CLOSED: Final = f"DELETE FROM open_holds WHERE hold = {_value(0)}"
_WRITTEN: Final = f"written_s = {_value(1)}, written_boot_s = {_value(2)}"
_ADMITTED: Final = (*_FIRST, "credits", "place")
_COUNTS: Final = ("reserves", "spends", "tokens", "at_s", "boot_id", "boot_s")


def _turn_of_hold() -> str:
    """The turn of a call, from a row that has its hold, too: it has the same id and the same facts."""
    at = [0, *range(2, _SPENT), *range(len(_ADMITTED), len(_ADMITTED) + len(_COUNTS))]
    values = ", ".join(_value(place) for place in at)
    return f"INSERT INTO turns (id, {FACT_NAMES}, {', '.join(_COUNTS)}) VALUES ({values}){_ONCE}"


def _written_with_ending() -> str:
    at = len(_ENDED)
    return f"UPDATE turns SET written_s = {_value(at)}, written_boot_s = {_value(at + 1)} {_THIS_ID}"


# fmt: off
OFTEN: Final[Mapping[str, tuple[str, ...]]] = {
    "admitted": (_entry("hold"), _OPENED, _turn_of_hold()),
    "ended":    (_entry("settle"), _CLOSED, *_COUNTED, _written_with_ending()),
}
"""What rows do that have two steps of one call in them: a hold and its turn, a settlement and the end of the turn."""

SELDOM: Final[Mapping[str, tuple[str, ...]]] = {
    "hold":     (_entry("hold"), _OPENED),
    "settle":   (_entry("settle"), _CLOSED, *_COUNTED),
    "void":     (_entry("void"), _CLOSED),
    "expire":   (_entry("expire"), _CLOSED),
    "told":     (_entry("told"), _CLOSED, *_BY_HAND),
    "resolve":  (_entry("resolve"), *_BY_HAND),
    "adjust":   (_entry("adjust"), *_BY_HAND),
    "place":    (_insert("places", "id", "text"),),
    "own":      (_insert("owners", "id", "team", "model", "at_s") + _ONCE,),
    "used":     (f"UPDATE owners SET {_TOKENS} {_THIS_ID}",),
    "begin":    (f"DELETE FROM operations {_THIS_ID}", _insert("operations", *_BEGUN)),
    "finish":   (f"UPDATE operations SET ended_s = {_value(1)} {_THIS_ID}",),
    "promise":  (f"DELETE FROM outcomes {_THIS_KEY}",
                 _insert("outcomes", "team", "key", "digest", "hold", "at_s")),
    "keep":     (f"UPDATE outcomes SET {_KEPT} {_THIS_KEY}",),
    "release":  (f"DELETE FROM outcomes {_THIS_KEY}",),
    "key":      (_insert("keys", "id", "team", "hash", "created_s", "expires_s", "note") + _ONCE, _SUCCEEDS),
    "revoke":   (f"UPDATE keys SET revoked_s = {_REVOKED} {_THIS_ID}",),
    "turn":     (_insert("turns", "id", *FACTS, *_COUNTS) + _ONCE,),
    "written":  (f"UPDATE turns SET {_WRITTEN} {_THIS_ID}",),
    "learned":  (_insert("learned", "route", "model", "density", "answers", "at_s") + _ANEW,),
    "forget_owners":     (_forget("owners", "at_s"),),
    "forget_operations": (_forget("operations", "ended_s"),),
    "forget_outcomes":   (_forget("outcomes", "at_s"),),
    "forget_turns":      (_forget("turns", "coalesce(written_s, at_s)"),),
}
# fmt: on
"""What a row of each other kind does; `rows.py` makes the rows."""

NO_KIND: Final = 0
"""The kind of a row that goes nowhere."""


def _view(name: str, kinds: Mapping[str, tuple[str, ...]]) -> str:
    nothing = ", ".join(f"NULL AS v{at}" for at in range(WIDTH))
    return f"CREATE VIEW {name} AS SELECT NULL AS kind, {nothing} WHERE false;\n" + "".join(
        f"CREATE TRIGGER takes_{kind} INSTEAD OF INSERT ON {name} WHEN NEW.kind = '{kind}' "
        f"BEGIN {'; '.join(does)}; END;\n"
        for kind, does in kinds.items()
    )


# Not a list: the database would make a table of its own of it for each row.
_OTHER: Final = " AND ".join(f"NEW.kind <> {kind}" for kind in (NO_KIND, *(f"'{kind}'" for kind in OFTEN)))
_ALL: Final = ", ".join(["NEW.kind", *(_value(at) for at in range(WIDTH))])
TRIGGERS: Final = (
    _view("seldom", SELDOM)
    + _view("book", OFTEN)
    + f"CREATE TRIGGER takes_seldom INSTEAD OF INSERT ON book WHEN {_OTHER} "
    f"BEGIN INSERT INTO seldom VALUES ({_ALL}); END;\n"
)
NO_TRIGGERS: Final = "DROP VIEW book; DROP VIEW IF EXISTS seldom;"
"""Before `TRIGGERS` can be made anew."""

CREATE: Final = (
    f"{ENTRIES} {INDEXES} {TOTALS} {SUMS} {RIDERS} {SINCE_4} {SINCE_5} {TRIGGERS} PRAGMA user_version = {VERSION};"
)

ROWS_MAX: Final = 1024
"""Rows of one statement; the database takes 32,766 values."""


@cache
def append(rows: int) -> str:
    """The statement that takes so many rows of a kind and `WIDTH` values."""
    return "INSERT INTO book VALUES " + ", ".join(["(" + ", ".join("?" * (1 + WIDTH)) + ")"] * rows)
