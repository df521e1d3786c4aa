"""The ledger's file when it is opened: the owner's alone, locked, checked, and of this version."""

import asyncio
import contextlib
import os
import sqlite3
import stat
from pathlib import Path
from typing import Final

import aiosqlite

from proxy.stores.ledger import schema
from proxy.stores.ledger.contract import CannotOpen
from proxy.stores.ledger.migrate import migrate

CHECKED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Largest file that is checked whole at each start; a check reads some 500 MB a second."""

UNCHECKED: Final = "PRAGMA ignore_check_constraints = ON"
"""Kinds of entries are words of our triggers, and looking for one in the list of all costs as much as the entry. It is
looked at when a file is opened or verified."""

LOG_BYTES: Final = 32 + 1100 * (24 + 4096)
"""Size of the log beside the file: its header, and a few more pages than are in it before they go into the file."""

_ZEROS: Final = bytes(64 * 1024)


def make_private(path: Path) -> None:
    """The folder is the owner's alone, and so is the file, from its first byte on. Raises CannotOpen."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            if mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise CannotOpen(f"{path} cannot be written ({error.strerror}); give another folder with --data") from error


async def prepare(database: aiosqlite.Connection, path: Path, *, full: bool) -> None:
    """Lock the file, check it, and bring it to this version. Raises CannotOpen and sqlite3 errors."""
    for pragma in (
        "busy_timeout = 0",
        "locking_mode = EXCLUSIVE",
        "journal_mode = WAL",
        f"synchronous = {'FULL' if full else 'NORMAL'}",
        "journal_size_limit = 67108864",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "foreign_keys = ON",
    ):
        await database.execute_fetchall(f"PRAGMA {pragma}")
    # The lock is taken by the first transaction and kept until the connection closes.
    await database.execute_fetchall("BEGIN IMMEDIATE")
    await database.execute_fetchall("COMMIT")
    if os.stat(path).st_size <= CHECKED_BYTES_MAX:  # noqa: PTH116  (one call, at the start)
        found = [row[0] for row in await database.execute_fetchall("PRAGMA quick_check")]
        if found != ["ok"]:
            raise sqlite3.DatabaseError(str(found[0]))
    await database.execute_fetchall(UNCHECKED)
    version = next(iter(await database.execute_fetchall("PRAGMA user_version")))[0]
    if version == 0:
        await database.executescript(f"BEGIN; {schema.CREATE} COMMIT;")
    elif version < schema.VERSION:
        await migrate(database, path, version)
    elif version > schema.VERSION:
        raise CannotOpen(f"{path} was written by a newer version of this program; use that one")
    await asyncio.to_thread(_lengthen, path.with_name(f"{path.name}-wal"))


def _lengthen(log: Path) -> None:
    """Make the log as long as it will become, so that no commit has to write down a new length of it as well.

    That makes a commit a third longer. What stands behind the last commit in a log is never read. Where there
    is no room, the log grows as it is written.
    """
    with contextlib.suppress(OSError), log.open("r+b", buffering=0) as file:
        at = file.seek(0, os.SEEK_END)
        while at < LOG_BYTES:
            at += os.pwrite(file.fileno(), _ZEROS[: LOG_BYTES - at], at)
        os.fsync(file.fileno())
