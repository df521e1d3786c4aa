"""A file of an earlier version is brought to this one whole, or stays as it was; a copy of it is kept either way."""

import sqlite3
import stat
from pathlib import Path

import pytest

from proxy.core.ledger import Outcome
from proxy.stores.ledger.migrate import copy_of
from proxy.stores.ledger.sqlite import CannotOpen, SqliteLedger
from tests.stores.test_contract import BUDGETS, NOW_S
from tests.stores.test_sqlite import figures, settle

VERSION_1, VERSION_2, VERSION_3 = ((Path(__file__).parent / f"version{number}.sql").read_text() for number in (1, 2, 3))


def made(folder, script):
    path = folder / "ledger.db"
    database = sqlite3.connect(path)
    database.executescript(script)
    database.close()
    return path


@pytest.fixture
def old(tmp_path):
    return made(tmp_path, VERSION_1)


def asked(path, statement):
    database = sqlite3.connect(path)
    try:
        return database.execute(statement).fetchall()
    finally:
        database.close()


def schema(path):
    return sorted(asked(path, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))


async def opened(path):
    return await SqliteLedger.open(path, BUDGETS, now_s=NOW_S)


async def test_a_file_of_version_1_says_the_same_afterwards(old):
    home = await opened(old)
    assert figures(home, NOW_S)["day", "red"] == (29, 10)
    assert home.projection.spent == {"red": 29}
    assert home.unknown == {"c"}
    assert [hold for hold, _ in await home.doubtful()] == ["b"]
    assert await home.apply([settle("c", 7)]) == [Outcome.OK]
    assert await home.verify() == []
    await home.close()


@pytest.mark.parametrize("script", [VERSION_2, VERSION_3], ids=["2", "3"])
async def test_a_later_file_says_the_same_afterwards(script, tmp_path):
    path = made(tmp_path, script)
    home = await opened(path)
    assert figures(home, NOW_S)["day", "red"] == (41, 10)
    assert home.projection.spent == {"red": 29, "blue": 12}
    assert home.unknown == {"c"}, "neither what ended nor what expired"
    assert [hold for hold, _ in await home.doubtful()] == ["b"]
    assert await home.apply([settle("c", 7)]) == [Outcome.OK]
    assert home.unknown == set()
    assert await home.verify() == []
    await home.close()


@pytest.mark.parametrize("script", [VERSION_1, VERSION_2, VERSION_3], ids=["1", "2", "3"])
async def test_a_migrated_file_has_the_tables_of_a_new_one(script, tmp_path):
    old, new = made(tmp_path, script), tmp_path / "new.db"
    for path in (old, new):
        await (await opened(path)).close()
    assert [name for name, _ in schema(old)] == [name for name, _ in schema(new)]
    words = [[" ".join(sql.replace('"', "").split()) for _, sql in schema(path)] for path in (old, new)]
    assert words[0] == words[1]


async def test_a_copy_for_the_owner_alone_stands_beside_the_file(old):
    await (await opened(old)).close()
    copy = copy_of(old, 1)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert asked(copy, "PRAGMA user_version") == [(1,)]
    assert asked(copy, "SELECT count(*) FROM entries") == [(8,)]


async def test_a_migration_that_fails_leaves_the_file_as_it_was_and_says_so(old):
    """A table that is in the way stands in for whatever may go wrong in the middle."""
    database = sqlite3.connect(old)
    database.execute("CREATE TABLE turns (mine TEXT)")
    database.close()
    before = schema(old), asked(old, "SELECT * FROM entries")
    with pytest.raises(CannotOpen, match=r"could not be brought from version 1 to 4 .*it is as it was"):
        await opened(old)
    assert (schema(old), asked(old, "SELECT * FROM entries")) == before
    assert asked(old, "PRAGMA user_version") == [(1,)]


async def test_a_copy_that_cannot_be_made_stops_the_migration(old):
    copy_of(old, 1).mkdir()
    with pytest.raises(CannotOpen, match="it is as it was"):
        await opened(old)
    assert asked(old, "PRAGMA user_version") == [(1,)]
