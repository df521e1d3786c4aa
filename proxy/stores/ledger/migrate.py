"""From the version of a file to the one this code writes: forward only, with a copy beside the file first."""

import contextlib
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aiosqlite

from proxy.stores.ledger import reading, schema
from proxy.stores.ledger.contract import CannotOpen

# What the tables were that later versions have changed.
_FACTS_1: Final = ", ".join(f"{name} TEXT NOT NULL DEFAULT ''" for name in schema.FACTS)
_COLUMNS_1: Final = f"id, kind, hold, at_s, {schema.FACT_NAMES}, credits, calls, basis, ending, uncertain, quarter"
_ENTRIES_2: Final = f"""
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, hold TEXT NOT NULL, at_s REAL NOT NULL, {_FACTS_1},
        credits INTEGER NOT NULL DEFAULT 0, calls INTEGER NOT NULL DEFAULT 0, basis TEXT NOT NULL DEFAULT '',
        ending TEXT NOT NULL DEFAULT '', uncertain INTEGER NOT NULL DEFAULT 0, quarter INTEGER,
        reason TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT ''
    ) STRICT;
"""
_TURNS_2: Final = f"""
    CREATE TABLE turns (
        id TEXT NOT NULL PRIMARY KEY, {_FACTS_1}, reserves INTEGER NOT NULL, spends INTEGER NOT NULL,
        tokens INTEGER NOT NULL, at_s REAL NOT NULL, boot_id TEXT NOT NULL, boot_s REAL NOT NULL,
        written_s REAL, written_boot_s REAL
    ) STRICT;
"""
_SPENT_3: Final = "CREATE TABLE spent (team TEXT NOT NULL PRIMARY KEY, credits INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
_PLACES_5: Final = f"{schema.PLACES} ALTER TABLE entries ADD COLUMN place INTEGER REFERENCES places (id);"

_COUNTED_7: Final = "reserves, spends, tokens, at_s, boot_id, boot_s, written_s, written_boot_s"


def _numbered(table: str) -> str:
    """The number of the facts that a row of an earlier table has in texts."""
    same = " AND ".join(f"facts.{name} = {table}.{name}" for name in schema.FACTS)
    return f"(SELECT id FROM facts WHERE {same})"  # noqa: S608  (names of ours, no input)


TO_NEXT: Final[Mapping[int, str]] = {
    # The entries gain kinds of their own for what is done by hand, and the running totals leave them.
    1: f"""
        DROP TRIGGER totalled; DROP TRIGGER entries_stay; DROP TRIGGER entries_keep;
        ALTER TABLE entries RENAME TO entries_1;
        {_ENTRIES_2}
        INSERT INTO entries ({_COLUMNS_1}) SELECT {_COLUMNS_1} FROM entries_1 ORDER BY id;
        DROP TABLE entries_1;
        {schema.INDEXES} {schema.RIDERS} {_TURNS_2}
    """,  # noqa: S608  (names of ours, no input)
    # What a start goes by is kept, instead of being added up from all entries.
    2: f"""
        {schema.OPEN_HOLDS} {_SPENT_3}
        INSERT INTO open_holds {reading.OPEN_BY_ENTRIES};
        INSERT INTO spent SELECT team, sum(credits) FROM totals GROUP BY team;
    """,  # noqa: S608  (names of ours, no input)
    # What was learned about text is kept, and which keys took over from which.
    3: schema.SINCE_4,
    # Entries keep where their price stands; those that are there already do not know it. Rows of turns used to say when
    # a request was written, and say now when it was counted, a second later at most.
    4: f"""
        UPDATE turns SET written_s = written_s + 1, written_boot_s = written_boot_s + 1;
        {_PLACES_5}
    """,  # noqa: S608  (names of ours, no input)
    # The tables stay; the rows that a call is made of come two in one.
    5: "",
    # Rows have the number of what they are about, instead of eight texts.
    6: f"""
        DROP TRIGGER entries_stay; DROP TRIGGER entries_keep;
        ALTER TABLE entries RENAME TO entries_6;
        ALTER TABLE totals RENAME TO totals_6;
        ALTER TABLE turns RENAME TO turns_6;
        DROP TABLE spent;
        {schema.FACTS_TABLE} {schema.ENTRIES} {schema.SUMS} {schema.TURNS}
        CREATE UNIQUE INDEX known ON facts ({schema.FACT_NAMES});
        INSERT INTO facts ({schema.FACT_NAMES})
        SELECT {schema.FACT_NAMES} FROM entries_6 WHERE kind NOT IN ('void', 'expire')
        UNION SELECT {schema.FACT_NAMES} FROM totals_6 UNION SELECT {schema.FACT_NAMES} FROM turns_6;
        INSERT INTO entries (
            id, kind, hold, at_s, facts, credits, calls, basis, ending, uncertain, quarter, reason, who, place
        ) SELECT id, kind, hold, at_s, CASE WHEN kind NOT IN ('void', 'expire') THEN {_numbered("entries_6")} END,
            credits, calls, basis, ending, uncertain, quarter, reason, who, place FROM entries_6 ORDER BY id;
        INSERT INTO totals SELECT quarter, {_numbered("totals_6")}, credits, calls FROM totals_6;
        INSERT INTO spent SELECT facts, sum(credits) FROM totals GROUP BY facts;
        INSERT INTO turns SELECT id, {_numbered("turns_6")}, {_COUNTED_7} FROM turns_6;
        DROP INDEX known; DROP TABLE entries_6; DROP TABLE totals_6; DROP TABLE turns_6;
        {schema.INDEXES}
    """,  # noqa: S608  (names of ours, no input)
}
"""What brings the tables of a version to those of the next one."""


def copy_of(path: Path, version: int) -> Path:
    """Where the copy of a file stands that was made before it left a version."""
    return path.with_name(f"{path.name}.version-{version}")


async def migrate(database: aiosqlite.Connection, path: Path, version: int) -> None:
    """Bring a file that is open and locked to `schema.VERSION`, in one transaction. Raises CannotOpen.

    What fails leaves the file as it was.
    """
    copy = copy_of(path, version)
    try:
        await _copy(database, copy)
        tables = "".join(TO_NEXT[step] for step in range(version, schema.VERSION))
        script = f"{schema.NO_TRIGGERS} {tables} {schema.TRIGGERS} PRAGMA user_version = {schema.VERSION};"
        await database.executescript(f"BEGIN; {script} COMMIT;")
    except (sqlite3.Error, OSError) as error:
        with contextlib.suppress(sqlite3.Error):
            await database.execute_fetchall("ROLLBACK")
        raise CannotOpen(
            f"{path} could not be brought from version {version} to {schema.VERSION} ({error}); it is as it was. Make "
            "room beside it or mend what the message names, or go on with the program that wrote it"
        ) from error


async def _copy(database: aiosqlite.Connection, copy: Path) -> None:
    """A whole copy, readable by the owner alone; one that was begun earlier is replaced only by a whole one."""
    begun = copy.with_name(f"{copy.name}.part")
    begun.unlink(missing_ok=True)
    os.close(os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        target = sqlite3.connect(begun, check_same_thread=False)
        try:
            await database.backup(target)
        finally:
            target.close()
        begun.replace(copy)
    except BaseException:
        # What is half a copy would take the room that the program needs which goes on with the file.
        begun.unlink(missing_ok=True)
        raise
