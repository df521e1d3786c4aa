# ruff: noqa: S608  (statements are put together from the names below, never from input)
"""The ledger's file: its tables, the one statement that writes to them, and the version it has.

Entries are appended and never changed. Each batch is one statement: an insert into the view `book`, whose rows are a
kind and its values. A trigger for each kind says where such a row goes, so that entries, totals and whatever rides with
them are written in one thread hop and one commit. The database asks each trigger of a view about each row, so the view
has the two kinds that a call is made of, and hands all others on to a view of their own.

What a row is about is eight texts that nearly every call has in common with one before. They stand in a table of their
own, and a row has their number: a text that is bound, copied and written takes as long as ten numbers.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

VERSION: Final = 7
"""`PRAGMA user_version` of a file this code writes."""

FACTS: Final = ("team", "key", "route", "model", "suite", "tool", "credential", "chatbot")
"""What an entry is about; "" stands for nothing."""

FACT_NAMES: Final = ", ".join(FACTS)

FORGOTTEN_AT_ONCE: Final = 500
"""Rows that one step lets go of, so that no batch waits long behind it."""

FACTS_TABLE: Final = f"""
    CREATE TABLE facts (id INTEGER PRIMARY KEY, {", ".join(f"{name} TEXT NOT NULL" for name in FACTS)}) STRICT;
    CREATE TRIGGER facts_stay BEFORE UPDATE ON facts BEGIN SELECT RAISE (ABORT, 'facts are never changed'); END;
    CREATE TRIGGER facts_keep BEFORE DELETE ON facts BEGIN SELECT RAISE (ABORT, 'facts are never removed'); END;
"""
"""The same facts may have several numbers (`numbers.py`), so sums by number are summed up where they are read."""

PLACES: Final = "CREATE TABLE places (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;"
"""Where the prices of holds stand, each place once."""

ENTRIES: Final = """
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN ('hold', 'settle', 'void', 'expire', 'resolve', 'adjust')),
        hold TEXT NOT NULL,
        at_s REAL NOT NULL,
        facts INTEGER REFERENCES facts (id),
        credits INTEGER NOT NULL DEFAULT 0,
        calls INTEGER NOT NULL DEFAULT 0,
        basis TEXT NOT NULL DEFAULT '',
        ending TEXT NOT NULL DEFAULT '',
        uncertain INTEGER NOT NULL DEFAULT 0,
        quarter INTEGER,
        reason TEXT NOT NULL DEFAULT '',
        who TEXT NOT NULL DEFAULT '',
        place INTEGER REFERENCES places (id)
    ) STRICT;
"""
"""facts: NULL where they are the hold's alone. credits: what the entry adds, so that settlements, resolutions and
adjustments sum up to what is spent. place: of a hold, NULL where that was not kept."""

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

SUMS: Final = """
    CREATE TABLE totals (
        quarter INTEGER NOT NULL, facts INTEGER NOT NULL, credits INTEGER NOT NULL, calls INTEGER NOT NULL,
        PRIMARY KEY (quarter, facts)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE spent (facts INTEGER PRIMARY KEY, credits INTEGER NOT NULL) STRICT;
"""
"""What a start would else go through all entries for: what was spent in each quarter of an hour, and ever."""

OPEN_HOLDS: Final = "CREATE TABLE open_holds (hold TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;"
"""Holds without an ending."""

SINCE_4: Final = """
    CREATE TABLE learned (
        route TEXT NOT NULL, model TEXT NOT NULL, density INTEGER NOT NULL, answers INTEGER NOT NULL,
        at_s REAL NOT NULL, PRIMARY KEY (route, model)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE successors (id TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""
"""How dense text is, as `core.learned` says it; and under which id a key counts that took over from another."""

RIDERS: Final = """
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
"""
"""operations.terms: the hold as JSON. outcomes.headers: pairs as JSON."""

TURNS: Final = """
    CREATE TABLE turns (
        id TEXT NOT NULL PRIMARY KEY, facts INTEGER NOT NULL, reserves INTEGER NOT NULL, spends INTEGER NOT NULL,
        tokens INTEGER NOT NULL, at_s REAL NOT NULL, boot_id TEXT NOT NULL, boot_s REAL NOT NULL,
        written_s REAL, written_boot_s REAL
    ) STRICT, WITHOUT ROWID;
"""
"""Kept by their ids alone, which rise with time (`server/ids.py`): a turn is written to twice, and looked for once."""

WIDTH: Final = 11
"""Values of the longest row."""

NO_KIND: Final = 0
"""The kind of a row that goes nowhere."""

ADMITTED: Final = 1
ENDED: Final = 2
"""The kinds that a call is made of; all others are words. A number takes a tenth of what a word takes."""


def _value(at: int) -> str:
    return f"NEW.v{at}"


def _insert(table: str, *columns: str, kind: str = "") -> str:
    """Insert the row's values, in this order; entries also say of which kind they are."""
    values = ", ".join(_value(at) for at in range(len(columns)))
    if kind:
        return f"INSERT INTO {table} (kind, {', '.join(columns)}) VALUES ('{kind}', {values})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"


def _total(calls: str) -> tuple[str, str]:
    """Add to a total and to all that was spent, from a row that begins as `_HAND` and `_ENDED` do."""
    facts, spent, quarter = [_value(_HAND.index(column)) for column in ("facts", "credits", "quarter")]
    total = (
        f"INSERT INTO totals (quarter, facts, credits, calls) VALUES ({quarter}, {facts}, {spent}, {calls}) "
        "ON CONFLICT (quarter, facts) "
        "DO UPDATE SET credits = credits + excluded.credits, calls = calls + excluded.calls"
    )
    ever = (
        f"INSERT INTO spent (facts, credits) VALUES ({facts}, {spent}) "
        "ON CONFLICT (facts) DO UPDATE SET credits = credits + excluded.credits"
    )
    return total, ever


def _forget(table: str, when: str, order: str = "rowid") -> str:
    # The order is that of writing, so no index is needed to find the oldest.
    oldest = f"SELECT {order} FROM {table} ORDER BY {order} LIMIT {FORGOTTEN_AT_ONCE}"
    return f"DELETE FROM {table} WHERE {order} IN ({oldest}) AND {when} < {_value(0)}"


_FIRST: Final = ("hold", "at_s", "facts")
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


_COUNTED: Final = _total(_value(_ENDED.index("calls")))
_BY_HAND: Final = _total("0")
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
    at = [0, _FIRST.index("facts"), *range(len(_ADMITTED), len(_ADMITTED) + len(_COUNTS))]
    values = ", ".join(_value(place) for place in at)
    return f"INSERT INTO turns (id, facts, {', '.join(_COUNTS)}) VALUES ({values}){_ONCE}"


def _written_with_ending() -> str:
    at = len(_ENDED)
    return f"UPDATE turns SET written_s = {_value(at)}, written_boot_s = {_value(at + 1)} {_THIS_ID}"


# fmt: off
OFTEN: Final[Mapping[int, tuple[str, ...]]] = {
    ADMITTED: (_entry("hold"), _OPENED, _turn_of_hold()),
    ENDED:    (_entry("settle"), _CLOSED, *_COUNTED, _written_with_ending()),
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
    "facts":    (_insert("facts", "id", *FACTS),),
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
    "turn":     (_insert("turns", "id", "facts", *_COUNTS) + _ONCE,),
    "written":  (f"UPDATE turns SET {_WRITTEN} {_THIS_ID}",),
    "learned":  (_insert("learned", "route", "model", "density", "answers", "at_s") + _ANEW,),
    "forget_owners":     (_forget("owners", "at_s"),),
    "forget_operations": (_forget("operations", "ended_s"),),
    "forget_outcomes":   (_forget("outcomes", "at_s"),),
    "forget_turns":      (_forget("turns", "coalesce(written_s, at_s)", "id"),),
}
# fmt: on
"""What a row of each other kind does; `rows.py` makes the rows."""


def _view(name: str, kinds: Mapping[str, tuple[str, ...]] | Mapping[int, tuple[str, ...]]) -> str:
    nothing = ", ".join(f"NULL AS v{at}" for at in range(WIDTH))
    return f"CREATE VIEW {name} AS SELECT NULL AS kind, {nothing} WHERE false;\n" + "".join(
        f"CREATE TRIGGER takes_{kind} INSTEAD OF INSERT ON {name} WHEN NEW.kind = {kind!r} "
        f"BEGIN {'; '.join(does)}; END;\n"
        for kind, does in kinds.items()
    )


# In SQLite a text is greater than every number.
_OTHER: Final = f"NEW.kind > {max(NO_KIND, *OFTEN)}"
_ALL: Final = ", ".join(["NEW.kind", *(_value(at) for at in range(WIDTH))])
TRIGGERS: Final = (
    _view("seldom", SELDOM)
    + _view("book", OFTEN)
    + f"CREATE TRIGGER takes_seldom INSTEAD OF INSERT ON book WHEN {_OTHER} "
    f"BEGIN INSERT INTO seldom VALUES ({_ALL}); END;\n"
)
NO_TRIGGERS: Final = "DROP VIEW IF EXISTS book; DROP VIEW IF EXISTS seldom;"
"""Before `TRIGGERS` can be made anew."""

CREATE: Final = (
    f"{FACTS_TABLE} {PLACES} {ENTRIES} {INDEXES} {SUMS} {OPEN_HOLDS} {RIDERS} {TURNS} {SINCE_4} {TRIGGERS} "
    f"PRAGMA user_version = {VERSION};"
)

ROWS_MAX: Final = 1024
"""Rows of one statement; the database takes 32,766 values."""


@cache
def append(rows: int) -> str:
    """The statement that takes so many rows of a kind and `WIDTH` values."""
    return "INSERT INTO book VALUES " + ", ".join(["(" + ", ".join("?" * (1 + WIDTH)) + ")"] * rows)
