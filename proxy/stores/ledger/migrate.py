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

_COLUMNS_1: Final = f"id, kind, hold, at_s, {schema.FACT_NAMES}, credits, calls, basis, ending, uncertain, quarter"

TO_NEXT: Final[Mapping[int, str]] = {
    # The entries gain kinds of their own for what is done by hand, and the running totals leave them.
    1: f"""
        DROP TRIGGER totalled; DROP TRIGGER entries_stay; DROP TRIGGER entries_keep;
        ALTER TABLE entries RENAME TO entries_1;
        {schema.ENTRIES}
        INSERT INTO entries ({_COLUMNS_1}) SELECT {_COLUMNS_1} FROM entries_1 ORDER BY id;
        DROP TABLE entries_1;
        {schema.INDEXES} {schema.RIDERS} {schema.TRIGGERS}
        PRAGMA user_version = 2;
    """,  # noqa: S608  (names of ours, no input)
    # What a start goes by is kept, instead of being added up from all entries.
    2: f"""
        {schema.NO_TRIGGERS}
        {schema.SUMS}
        INSERT INTO open_holds {reading.OPEN_BY_ENTRIES};
        INSERT INTO spent SELECT team, sum(credits) FROM totals GROUP BY team;
        {schema.TRIGGERS}
        PRAGMA user_version = 3;
    """,  # noqa: S608  (names of ours, no input)
    # What was learned about text is kept, and which keys took over from which.
    3: f"""
        {schema.NO_TRIGGERS}
        {schema.SINCE_4} {schema.TRIGGERS}
        PRAGMA user_version = 4;
    """,
    # Entries keep where their price stands; those that are there already do not know it. Rows of turns used to say when
    # a request was written, and say now when it was counted, a second later at most.
    4: f"""
        UPDATE turns SET written_s = written_s + 1, written_boot_s = written_boot_s + 1;
        {schema.NO_TRIGGERS}
        {schema.SINCE_5} {schema.TRIGGERS}
        PRAGMA user_version = 5;
    """,  # noqa: S608  (names of this module, no input)
    # The tables stay; the rows that a call is made of come two in one.
    5: f"""
        {schema.NO_TRIGGERS} {schema.TRIGGERS}
        PRAGMA user_version = 6;
    """,
}
"""What brings a file of a version to the next one."""


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
        script = "".join(TO_NEXT[step] for step in range(version, schema.VERSION))
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
    target = sqlite3.connect(begun, check_same_thread=False)
    try:
        await database.backup(target)
    finally:
        target.close()
    begun.replace(copy)
