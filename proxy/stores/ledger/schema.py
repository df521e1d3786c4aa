"""The ledger's file: its tables, the statements that touch them, and the version it has.

Entries are appended and never changed. Whoever writes an entry also knows what its quarter of an hour adds up to with
it; that total is written in the same statement, by trigger, so the database adds nothing up.
"""

from typing import Final

VERSION: Final = 1
"""`PRAGMA user_version` of a file this code writes."""

FACTS: Final = ("team", "key", "route", "model", "suite", "tool", "credential", "chatbot")
"""What an entry is about; "" stands for nothing, because NULL is never equal to NULL."""

_FACT_COLUMNS: Final = ", ".join(f"{name} TEXT NOT NULL DEFAULT ''" for name in FACTS)
_FACT_NAMES: Final = ", ".join(FACTS)

CREATE: Final = f"""
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN ('hold', 'settle', 'void', 'expire')),
        hold TEXT NOT NULL,
        at_s REAL NOT NULL,
        {_FACT_COLUMNS},
        credits INTEGER NOT NULL,
        calls INTEGER NOT NULL DEFAULT 0,
        basis TEXT NOT NULL DEFAULT '',
        ending TEXT NOT NULL DEFAULT '',
        uncertain INTEGER NOT NULL DEFAULT 0,
        quarter INTEGER,
        total_credits INTEGER,
        total_calls INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX one_hold ON entries (hold) WHERE kind = 'hold';
    CREATE UNIQUE INDEX one_ending ON entries (hold) WHERE kind IN ('settle', 'void');
    CREATE UNIQUE INDEX one_expiry ON entries (hold) WHERE kind = 'expire';
    CREATE INDEX by_time ON entries (at_s);
    CREATE TABLE totals (
        quarter INTEGER NOT NULL,
        {_FACT_COLUMNS},
        credits INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        PRIMARY KEY (quarter, {_FACT_NAMES})
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER totalled AFTER INSERT ON entries WHEN NEW.kind = 'settle' BEGIN
        INSERT OR REPLACE INTO totals (quarter, {_FACT_NAMES}, credits, calls)
        VALUES (NEW.quarter, {", ".join(f"NEW.{name}" for name in FACTS)}, NEW.total_credits, NEW.total_calls);
    END;
    CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE (ABORT, 'entries are never changed'); END;
    CREATE TRIGGER entries_keep BEFORE DELETE ON entries BEGIN SELECT RAISE (ABORT, 'entries are never removed'); END;
    PRAGMA user_version = {VERSION};
"""  # noqa: S608  (names of this file, no input)

COLUMNS: Final = (
    "kind", "hold", "at_s", *FACTS, "credits", "calls", "basis", "ending", "uncertain", "quarter", "total_credits",
    "total_calls",
)  # fmt: skip

APPEND: Final = (
    f"INSERT INTO entries ({', '.join(COLUMNS)}) SELECT "  # noqa: S608  (names of this file, no input)
    + ", ".join(f"json_extract(value, '$[{at}]')" for at in range(len(COLUMNS)))
    + " FROM json_each(?) WHERE true ORDER BY key RETURNING id"
)
"""A batch of rows, each an array in the order of `COLUMNS`, as one statement: one thread hop, one commit."""

OPEN_HOLDS: Final = f"""
    SELECT hold, at_s, credits, {_FACT_NAMES} FROM entries AS held WHERE kind = 'hold'
    AND NOT EXISTS (SELECT 1 FROM entries WHERE hold = held.hold AND kind IN ('settle', 'void', 'expire'))
    ORDER BY id
"""  # noqa: S608  (names of this file, no input)

OLDEST_OPEN: Final = f"SELECT min(at_s) FROM ({OPEN_HOLDS})"  # noqa: S608  (names of this file, no input)

TOTALS_SINCE: Final = f"SELECT quarter, credits, calls, {_FACT_NAMES} FROM totals WHERE quarter >= ?"  # noqa: S608

SETTLED_SINCE: Final = f"""
    SELECT held.at_s, ended.credits, {", ".join(f"held.{name}" for name in FACTS)}
    FROM entries AS held JOIN entries AS ended ON ended.hold = held.hold AND ended.kind = 'settle'
    WHERE held.kind = 'hold' AND held.at_s > ? ORDER BY held.at_s
"""  # noqa: S608  (names of this file, no input)

SPENT_BY_TEAM: Final = "SELECT team, credits FROM totals"
LATEST: Final = "SELECT max(at_s) FROM entries"

REBUILT: Final = f"""
    SELECT ended.quarter, {", ".join(f"held.{name}" for name in FACTS)}, ended.credits, ended.calls, held.at_s
    FROM entries AS ended JOIN entries AS held ON held.hold = ended.hold AND held.kind = 'hold'
    WHERE ended.kind = 'settle'
"""  # noqa: S608  (names of this file, no input)
