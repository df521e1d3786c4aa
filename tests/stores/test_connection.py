"""The ledger's file in a thread of its own: what is asked is done in its turn, and who asked is told once, in the loop."""

import asyncio
import sqlite3
import threading

import pytest

from proxy.stores.ledger.connection import Connection


@pytest.fixture
async def connection(tmp_path):
    connection = await Connection.open(tmp_path / "a.db")
    await connection.execute_fetchall("CREATE TABLE a (b INTEGER UNIQUE)")
    yield connection
    await connection.close()


async def test_what_is_appended_is_there_and_told_in_the_loop_before_whoever_asked_goes_on(connection):
    told = []
    await connection.append("INSERT INTO a VALUES (?)", [1], lambda: told.append(threading.current_thread()))
    assert told == [threading.current_thread()]
    assert await connection.execute_fetchall("SELECT b FROM a WHERE b = ?", [1]) == [(1,)]


async def test_what_failed_is_raised_and_told_to_nobody(connection):
    told = []
    for _ in range(2):
        asked = connection.append("INSERT INTO a VALUES (1)", [], lambda: told.append(1))
        if told:
            with pytest.raises(sqlite3.IntegrityError):
                await asked
        else:
            await asked
    assert told == [1]
    assert await connection.execute_fetchall("SELECT count(*) FROM a") == [(1,)], "and the thread goes on"


async def test_who_is_cancelled_is_not_told_and_what_was_asked_is_done_all_the_same(connection):
    faults, told = [], []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    asked = asyncio.create_task(connection.append("INSERT INTO a VALUES (1)", [], lambda: told.append(1)))
    await asyncio.sleep(0)
    asked.cancel()
    assert await connection.execute_fetchall("SELECT count(*) FROM a") == [(1,)]
    assert (told, faults, asked.cancelled()) == ([1], [], True)


async def test_a_closed_one_says_so_and_its_thread_has_ended(tmp_path):
    connection = await Connection.open(tmp_path / "a.db")
    last = asyncio.create_task(connection.executescript("CREATE TABLE a (b INTEGER);"))
    await asyncio.sleep(0)
    await connection.close()
    await last
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        await connection.execute_fetchall("SELECT 1")
    await asyncio.to_thread(connection._thread.join, 20)
    assert not connection._thread.is_alive()
    await connection.close()


async def test_a_file_that_cannot_be_opened_leaves_no_thread(tmp_path):
    before = threading.active_count()
    with pytest.raises(sqlite3.OperationalError):
        await Connection.open(tmp_path / "no" / "a.db")
    async with asyncio.timeout(20):
        while threading.active_count() > before:  # noqa: ASYNC110  (a thread ends and tells nobody)
            await asyncio.sleep(0.01)


def test_a_loop_that_is_gone_is_not_told(tmp_path):
    left = []

    async def leaves():
        connection = await Connection.open(tmp_path / "a.db")
        gate = threading.Event()
        connection._asked.put((gate.wait, lambda _given, _why: None))
        left.extend([connection, gate])

    asyncio.run(leaves())
    connection, gate = left
    gate.set()
    connection._asked.put(None)
    connection._thread.join(20)
    assert not connection._thread.is_alive()
