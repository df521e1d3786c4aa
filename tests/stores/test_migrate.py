"""A file of an earlier version is brought to this one whole, or stays as it was; a copy of it is kept either way."""

import sqlite3
import stat
from pathlib import Path

import pytest

from proxy.core.facts import Facts
from proxy.core.ledger import Hold, Outcome
from proxy.stores.ledger import schema
from proxy.stores.ledger.migrate import copy_of
from proxy.stores.ledger.rows import texts
from proxy.stores.ledger.sqlite import CannotOpen, SqliteLedger
from tests.stores.test_contract import BUDGETS, NOW_S, RED
from tests.stores.test_sqlite import figures, settle

ALL = [(Path(__file__).parent / f"version{number}.sql").read_text() for number in range(1, schema.VERSION)]
VERSION_1, *LATER = ALL
VERSION_4, VERSION_5, VERSION_6 = LATER[2:]


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


def tables(path):
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


@pytest.mark.parametrize("script", LATER, ids=range(2, schema.VERSION))
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


@pytest.mark.parametrize("script", ALL, ids=range(1, schema.VERSION))
async def test_a_migrated_file_has_the_tables_of_a_new_one(script, tmp_path):
    old, new = made(tmp_path, script), tmp_path / "new.db"
    for path in (old, new):
        await (await opened(path)).close()
    assert [name for name, _ in tables(old)] == [name for name, _ in tables(new)]
    words = [[" ".join(sql.replace('"', "").split()) for _, sql in tables(path)] for path in (old, new)]
    assert words[0] == words[1]


@pytest.mark.parametrize("script", ALL, ids=range(1, schema.VERSION))
async def test_entries_from_before_places_were_kept_say_so(script, tmp_path):
    path = made(tmp_path, script)
    home = await opened(path)
    try:
        old = await home.entry_page(0, 100)
        says = {"hold": "not kept", "settle": "not kept"}
        assert [entry["place"] for entry in old] == [says.get(entry["kind"], "") for entry in old]
        await home.apply([Hold("new", RED, 1, NOW_S, "team.yaml:7:5"), settle("new", 1)])
        new = await home.entry_page(old[-1]["id"], 100)
        assert [entry["place"] for entry in new] == ["team.yaml:7:5"] * 2
        assert await home.verify() == []
    finally:
        await home.close()


async def test_what_version_4_kept_beside_the_entries_is_still_there(tmp_path):
    home = await opened(made(tmp_path, VERSION_4))
    try:
        assert [(one.route, one.model, one.density) for one in await home.learned()] == [("chat", "m", 310)]
        assert [(kept.issued.id, kept.issued.account) for kept in await home.keys()] == [("new", "k")]
    finally:
        await home.close()


@pytest.mark.parametrize("script", ALL, ids=range(1, schema.VERSION))
async def test_entries_and_totals_are_about_what_they_were_about(script, tmp_path):
    path = made(tmp_path, script)
    about = asked(path, f"SELECT id, {schema.FACT_NAMES} FROM entries ORDER BY id")
    totals = asked(path, f"SELECT quarter * 900, credits, calls, {schema.FACT_NAMES} FROM totals")
    home = await opened(path)
    try:
        assert [tuple(one[name] for name in ("id", *schema.FACTS)) for one in await home.entry_page(0, 100)] == about
        told = [(one.begun_s, one.credits, one.calls, *texts(one.facts)) for one in await home.totals(0.0)]
        assert sorted(told) == sorted(totals)
    finally:
        await home.close()


@pytest.mark.parametrize("script", [VERSION_5, VERSION_6], ids=[5, 6])
async def test_a_turn_that_was_kept_is_still_there(script, tmp_path):
    home = await opened(made(tmp_path, script))
    try:
        kept, *others = await home.turns(0.0)
        assert [(one.turn.id, one.turn.facts) for one in others] == [("f", Facts("red", "k", "models"))] * (
            script is VERSION_6
        )
        assert (kept.turn.id, kept.turn.tokens, kept.turn.boot_id) == ("b", 500, "a start")
        assert kept.turn.facts == RED
        assert kept.written is not None
        assert kept.written.boot_s == 51.0
    finally:
        await home.close()


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
    before = tables(old), asked(old, "SELECT * FROM entries")
    with pytest.raises(CannotOpen, match=rf"could not be brought from version 1 to {schema.VERSION} .*it is as it was"):
        await opened(old)
    assert (tables(old), asked(old, "SELECT * FROM entries")) == before
    assert asked(old, "PRAGMA user_version") == [(1,)]


async def test_a_copy_that_cannot_be_made_stops_the_migration(old):
    copy_of(old, 1).mkdir()
    with pytest.raises(CannotOpen, match="it is as it was"):
        await opened(old)
    assert not list(old.parent.glob("*.part")), "half a copy would take room that somebody needs"
    assert asked(old, "PRAGMA user_version") == [(1,)]
