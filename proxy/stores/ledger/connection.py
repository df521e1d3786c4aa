"""The ledger's file in a thread of its own: what is asked of it is done one after the other, and told in the loop.

A call is not sent before its hold is on the disk, so the way to this thread and back is part of what it waits for.
Whoever waits for a commit is told in the first turn of the loop after it, by a function; told by the coroutine that
asked for it, it would be one turn later.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")
_Work = tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]
"""What is done in the thread, and who is told in the loop what came of it."""


class Connection:
    """One file. Call its methods in the loop in which it was opened."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._asked: Final[SimpleQueue[_Work | None]] = SimpleQueue()
        self._database: sqlite3.Connection | None = None
        # A process that ends without closing must not wait for this; what was acknowledged is on the disk.
        self._thread: Final = threading.Thread(target=self._work, name="ledger", daemon=True)

    @classmethod
    async def open(cls, path: Path) -> "Connection":
        """Raises sqlite3 errors."""
        connection = cls()
        connection._thread.start()
        try:
            connection._database = await connection._ask(lambda: sqlite3.connect(path, isolation_level=None))
        except BaseException:
            await connection.close()
            raise
        return connection

    def _work(self) -> None:
        # Nearly nothing follows after somebody was told: the loop waits for the interpreter until this thread sleeps.
        while (work := self._asked.get()) is not None:
            do, tell = work
            try:
                given, why = do(), None
            except BaseException as error:  # noqa: BLE001  (whatever it is, nobody may wait for ever)
                given, why = None, error
            with contextlib.suppress(RuntimeError):  # the loop is gone, and so is everybody who waits
                self._loop.call_soon_threadsafe(tell, given, why)
            # Nothing is kept of it while this sleeps.
            del work, do, tell, given, why

    async def _ask(self, do: Callable[[], T], then: Callable[[], None] | None = None) -> T:
        """then: called once it is done, before whoever asked goes on."""
        done: asyncio.Future[T] = self._loop.create_future()

        def tell(given: T, why: BaseException | None) -> None:
            if why is None and then is not None:
                then()
            if done.done():
                return
            if why is None:
                done.set_result(given)
            else:
                done.set_exception(why)

        self._asked.put((do, tell))
        return await done

    @property
    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            raise sqlite3.ProgrammingError("the ledger is closed")
        return self._database

    async def append(self, statement: str, values: Sequence[Any], then: Callable[[], None]) -> None:
        """Run a statement that gives nothing back and commits by itself, and call a function. Raises sqlite3 errors."""
        database = self._open
        await self._ask(lambda: database.execute(statement, values).close(), then)

    async def execute_fetchall(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that a statement gives. Raises sqlite3 errors."""
        database = self._open
        return await self._ask(lambda: database.execute(statement, values).fetchall())

    async def executescript(self, script: str) -> None:
        """Run several statements. Raises sqlite3 errors."""
        database = self._open
        await self._ask(lambda: database.executescript(script).close())

    async def backup(self, target: sqlite3.Connection) -> None:
        """Copy all of it into another file. Raises sqlite3 errors."""
        database = self._open
        await self._ask(lambda: database.backup(target))

    async def close(self) -> None:
        """Do what was asked before, then let go of the file."""
        database, self._database = self._database, None
        try:
            if database is not None:
                await self._ask(database.close)
        finally:
            self._asked.put(None)
