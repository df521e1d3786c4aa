"""The ledger in a file: what is acknowledged is there after anything, and the file can always say what it adds up to."""

import asyncio
import os
import resource
import signal
import sqlite3
import stat
import sys
import textwrap

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proxy.core.charges import Basis, Charge, Ending
from proxy.core.facts import Facts
from proxy.core.holds import OpenHold
from proxy.core.ledger import Adjust, Expire, Hold, Outcome, Resolve, Settle, Void
from proxy.core.limits import Budget, drawn
from proxy.core.operations import Operation
from proxy.core.riders import Begin, Finish, Forget, Learned, Own, Promise, Shelf, Turn, TurnWritten
from proxy.core.windows import Calendar, Per
from proxy.stores.ledger import numbers
from proxy.stores.ledger.commit import LedgerUnavailable
from proxy.stores.ledger.numbers import FACTS_MAX
from proxy.stores.ledger.opening import LOG_BYTES
from proxy.stores.ledger.rows import values
from proxy.stores.ledger.schema import FORGOTTEN_AT_ONCE, ROWS_MAX, WIDTH
from proxy.stores.ledger.sqlite import ROWS_A_TURN, CannotOpen, SqliteLedger, _in_turns
from proxy.units import Credits
from tests.core.test_projection import CRASH, step_of
from tests.stores.test_contract import BUDGETS, NOW_S, RED
from tests.stories import rows

BLUE = Facts("blue", "k", "mcp", None, "calc", "add")


def settle(hold, amount, at_s=NOW_S):
    return Settle(hold, Charge(amount, Basis.USAGE, 1), Ending.ANSWERED, at_s)


async def reopened(path, budgets=BUDGETS, now_s=NOW_S):
    return await SqliteLedger.open(path, budgets, now_s=now_s)


def figures(home, now_s):
    accounts = home.projection.accounts
    return {
        (budget.name, facts.team): accounts.used(budget, budget.group(facts), now_s)
        for facts in (RED, BLUE)
        for budget in drawn(accounts.budgets, facts)
    }


async def test_the_log_is_as_long_as_it_will_be_before_the_first_commit(tmp_path):
    """Else each commit writes down its length as well, which makes it a third longer."""
    path, log = tmp_path / "ledger.db", tmp_path / "ledger.db-wal"
    for _ in range(2):
        home = await reopened(path)
        assert log.stat().st_size == LOG_BYTES
        await home.apply([Hold("a", RED, 3, NOW_S)])
        for number in range(400):
            await home.apply([Adjust(f"j{path.stat().st_size}-{number}", RED, 1, "a bill", "lead", NOW_S)])
        assert log.stat().st_size == LOG_BYTES, "what is in it goes into the file before it is full"
        await home.close()


async def test_what_is_behind_the_last_commit_in_a_log_is_not_read(tmp_path):
    home = await reopened(tmp_path / "ledger.db")
    await home.apply([Hold("a", RED, 3, NOW_S)])
    (tmp_path / "cut").mkdir()
    for name in ("ledger.db", "ledger.db-wal"):
        (tmp_path / "cut" / name).write_bytes((tmp_path / name).read_bytes())
    again = await reopened(tmp_path / "cut" / "ledger.db")
    assert again.unknown == {"a"}
    assert await again.verify() == []
    await again.close()
    await home.close()


async def test_a_disk_without_room_for_a_log_of_that_length_opens_all_the_same(tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LOG_BYTES // 2, limit[1]))
    try:
        home = await reopened(tmp_path / "ledger.db")
        assert await home.apply([Hold("a", RED, 3, NOW_S)]) == [Outcome.OK]
        await home.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


async def test_a_restart_knows_what_was_spent_and_what_is_held(tmp_path):
    path = tmp_path / "data" / "ledger.db"
    home = await reopened(path)
    await home.apply([Hold("a", RED, 30, NOW_S), Hold("b", BLUE, 20, NOW_S), Hold("c", RED, 10, NOW_S)])
    await home.apply([settle("a", 25), Void("b", Ending.NEVER_SENT, NOW_S)])
    before = figures(home, NOW_S)
    await home.close()
    again = await reopened(path)
    assert figures(again, NOW_S) == before
    assert again.projection.spent == {"red": 25}
    assert again.unknown == {"c"}, "a hold without an ending counts as spent until somebody says what it cost"
    assert await again.apply([settle("c", 7)]) == [Outcome.OK]
    assert await again.verify() == []
    await again.close()


async def test_the_story_of_a_crash_is_the_same_in_a_file(tmp_path):
    home = await reopened(tmp_path / "ledger.db", ())
    try:
        for text, words, expected in rows(CRASH):
            says = Outcome.OK
            if words["step"] == "crash":
                await home.close()
                home = await reopened(tmp_path / "ledger.db", ())
            else:
                (says,) = await home.apply([step_of(words["step"], words["hold"], int(words["amount"]), NOW_S)])
            books = home.projection
            seen = (books.held.get("red", 0), books.spent.get("red", 0), books.open_holds)
            doubt = "".join(sorted(home.unknown)) or "-"
            assert (*map(str, seen), doubt, says.value) == tuple(expected.values()), text
        said = [entry for entry in await home.entry_page(0, 100) if entry["who"]]
        assert [(one["kind"], one["hold"], one["credits"], one["basis"]) for one in said] == [
            ("settle", "h1", 12, "hand"),
            ("settle", "h3", 0, "hand"),
        ], "what an open hold has cost is its settlement"
        assert await home.verify() == []
    finally:
        await home.close()


async def test_a_place_is_written_once_with_the_first_hold_that_names_it_and_outlives_a_restart(tmp_path):
    path = tmp_path / "ledger.db"
    home = await reopened(path, ())
    holds = [Hold(f"h{n}", RED, 1, NOW_S, f"team.yaml:{n % 3}:5") for n in range(6)]
    try:
        await asyncio.gather(*(home.apply([hold]) for hold in holds))
    finally:
        await home.close()
    home = await reopened(path, ())
    try:
        await home.apply([Hold("h6", RED, 1, NOW_S, "team.yaml:2:5"), Hold("h7", RED, 1, NOW_S, "team.yaml:9:5")])
        shown = [entry["place"] for entry in await home.entry_page(0, 100)]
    finally:
        await home.close()
    assert shown == [*(hold.place for hold in holds), "team.yaml:2:5", "team.yaml:9:5"]
    database = sqlite3.connect(path)
    written = database.execute("SELECT text FROM places ORDER BY id").fetchall()
    database.close()
    assert written == [(f"team.yaml:{line}:5",) for line in (0, 1, 2, 9)]


async def test_a_place_whose_commit_failed_is_written_with_the_next_hold_that_names_it(tmp_path):
    home = await reopened(tmp_path / "ledger.db", ())
    try:
        await home._database.execute_fetchall("PRAGMA query_only = ON")
        with pytest.raises(LedgerUnavailable):
            await home.apply([Hold("a", RED, 1, NOW_S, "team.yaml:7:5")])
        await home._database.execute_fetchall("PRAGMA query_only = OFF")
        await home.apply([Hold("b", RED, 1, NOW_S, "team.yaml:7:5")])
        assert [(one["hold"], one["place"]) for one in await home.entry_page(0, 9)] == [("b", "team.yaml:7:5")]
    finally:
        await home.close()


async def test_facts_are_written_once_and_known_after_a_restart(tmp_path):
    for number in range(2):
        home = await reopened(tmp_path / "ledger.db", ())
        await home.apply(
            [Hold(f"a{number}", RED, 1, NOW_S), Hold(f"b{number}", BLUE, 1, NOW_S), settle(f"a{number}", 1)]
        )
        assert await home._all("SELECT id, team FROM facts ORDER BY id") == [(1, "red"), (2, "blue")]
        await home.close()


async def test_facts_whose_commit_failed_are_written_with_the_next_row_that_has_them(tmp_path):
    home = await reopened(tmp_path / "ledger.db", ())
    try:
        await home._database.execute_fetchall("PRAGMA query_only = ON")
        with pytest.raises(LedgerUnavailable):
            await home.apply([Hold("a", RED, 1, NOW_S)])
        await home._database.execute_fetchall("PRAGMA query_only = OFF")
        await home.apply([Hold("b", RED, 1, NOW_S)])
        assert [(one["hold"], one["team"]) for one in await home.entry_page(0, 9)] == [("b", "red")]
    finally:
        await home.close()


async def test_facts_that_come_again_after_many_others_add_up_with_those_before(tmp_path):
    """Callers name models, so there is no end to them; what is remembered of them has one."""
    path = tmp_path / "ledger.db"
    home = await reopened(path, ())
    red = Facts("red", "k", "chat", "m")
    others = [Facts("red", "k", "chat", f"m-{number}") for number in range(FACTS_MAX)]
    for number, batch in enumerate(([red], others, [red])):
        await home.apply([Hold(f"{number}-{at}", facts, 2, NOW_S) for at, facts in enumerate(batch)])
        await home.apply([settle(f"{number}-{at}", 1) for at in range(len(batch))])
    for _ in range(2):
        assert len(home._facts._numbers) <= FACTS_MAX
        assert await home._all("SELECT count(*) FROM facts WHERE model = 'm'") == [(2,)]
        assert await home.verify() == []
        assert home.projection.spent == {"red": FACTS_MAX + 2}
        totals = [(one.facts, one.credits) for one in await home.totals(0.0)]
        assert sum(amount for facts, amount in totals if facts == red) == 2
        await home.close()
        home = await reopened(path, ())
    await home.close()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["hold", "hold", "hold", "settle", "void", "expire", "restart", "doubt", "resolve", "adjust", "rebudget"]
        ),
        st.integers(0, 9),
        st.integers(0, 60),
        st.sampled_from([0.0, 1.0, 600.0, 4000.0, 90_000.0]),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
@example([("hold", 1, 1, 0.0), ("hold", 0, 0, 4000.0), ("adjust", 0, 0, 0.0), ("restart", 0, 0, 0.0)])
def test_after_any_history_a_restart_agrees_with_the_running_books(tmp_path_factory, words):
    async def run():
        path = tmp_path_factory.mktemp("ledger") / "ledger.db"
        home, now_s, adjusted = await reopened(path), NOW_S, 0
        try:
            for word, number, amount, gap_s in words:
                now_s += gap_s
                name = f"h{number}"
                match word:
                    case "hold":
                        # Names come again here, which ids do not: what ended before a restart has to be looked up.
                        await home.remember(name)
                        await home.apply([Hold(name, RED if number % 2 else BLUE, amount, now_s)])
                    case "settle":
                        await home.apply([settle(name, amount, now_s)])
                    case "void":
                        await home.apply([Void(name, Ending.NEVER_SENT, now_s)])
                    case "expire":
                        await home.apply([Expire(name, now_s)])
                    case "doubt":
                        await home.apply([Void(name, Ending.GATEWAY_FAILED, now_s, uncertain=True)])
                    case "resolve":
                        await home.remember(name)
                        await home.apply([Resolve(name, amount, "by hand", "lead", now_s)])
                    case "adjust":
                        adjusted += 1
                        await home.apply([Adjust(f"a{adjusted}", RED, amount - 30, "by hand", "lead", now_s)])
                    case "rebudget":
                        await home.rebudget(BUDGETS)
                    case "restart":
                        used, spent, holds = figures(home, now_s), home.projection.spent, set(home.projection.holds)
                        await home.close()
                        home = await reopened(path, now_s=now_s)
                        assert figures(home, now_s) == used
                        assert nonzero(home.projection.spent) == nonzero(spent)
                        assert set(home.projection.holds) == holds
            assert await home.verify() == []
        finally:
            # Its thread would keep a failed run from ending.
            await home.close()

    asyncio.run(run())


def nonzero(amounts):
    return {team: amount for team, amount in amounts.items() if amount}


async def test_a_second_process_is_told_that_the_file_is_in_use(tmp_path):
    path = tmp_path / "ledger.db"
    home = await reopened(path)
    with pytest.raises(CannotOpen, match="in use by another process"):
        await reopened(path)
    await home.close()
    await (await reopened(path)).close()


async def test_folder_and_file_are_the_owners_alone(tmp_path):
    path = tmp_path / "data" / "ledger.db"
    await (await reopened(path)).close()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_damaged_file_is_refused_and_not_replaced(tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"not a database at all" * 100)
    before = path.read_bytes()
    with pytest.raises(CannotOpen, match="damaged"):
        await reopened(path)
    assert path.read_bytes() == before


async def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "ledger.db"
    await (await reopened(path)).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(CannotOpen, match="newer version"):
        await reopened(path)


async def test_entries_are_never_changed_or_removed(tmp_path):
    home = await reopened(tmp_path / "ledger.db")
    await home.apply([Hold("a", RED, 1, NOW_S)])
    for statement in ("UPDATE entries SET credits = 0", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            await home._database.execute_fetchall(statement)
    await home.close()


async def test_a_failed_commit_admits_nothing_and_the_books_are_read_again(tmp_path):
    """A statement that the file refuses stands in for a full disk."""
    home = await reopened(tmp_path / "ledger.db")
    await home.apply([Hold("a", RED, 30, NOW_S)])
    await home._database.execute_fetchall(
        "CREATE TRIGGER full_disk BEFORE INSERT ON entries BEGIN SELECT RAISE (ABORT, 'disk full'); END"
    )
    with pytest.raises(LedgerUnavailable):
        await home.apply([Hold("b", RED, 30, NOW_S), settle("a", 10)])
    await home._database.execute_fetchall("DROP TRIGGER full_disk")
    assert await home.apply([settle("a", 10)]) == [Outcome.OK]
    assert figures(home, NOW_S)["day", "red"] == (10, 0)
    assert home.unknown == frozenset(), "holds of this process are known"
    assert await home.verify() == []
    await home.close()


@pytest.mark.parametrize(
    ("begins", "ends", "says"),
    [
        ("max_page_count = 1", "max_page_count = 1073741823", "disk is full"),
        ("query_only = ON", "query_only = OFF", "readonly database"),
    ],
    ids=["full", "read-only"],
)
async def test_a_disk_that_takes_no_more_admits_nothing_until_it_does(tmp_path, begins, ends, says):
    """The file refuses as SQLITE_FULL and SQLITE_READONLY; nothing of what it refused is there afterwards."""
    home = await reopened(tmp_path / "ledger.db")
    await home.apply([Hold("a", RED, 30, NOW_S)])
    await home._database.execute_fetchall(f"PRAGMA {begins}")
    taken, said = 0, ""
    while taken < 1000 and not said:
        try:
            # A page has room for some entries more.
            await home.apply([Hold(f"b{taken}", BLUE, 0, NOW_S)])
            taken += 1
        except LedgerUnavailable as error:
            said = str(error)
    assert says in said
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match=says):
            await home.apply([Hold(f"c{at}", BLUE, 0, NOW_S) for at in range(500)])
    await home._database.execute_fetchall(f"PRAGMA {ends}")
    assert await home.apply([settle("a", 10)]) == [Outcome.OK]
    assert home.projection.open_holds == taken
    assert await home.verify() == []
    await home.close()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE totals SET credits = 24", 2),  # it is neither what entries say nor what the team's sum says
        ("UPDATE spent SET credits = 24", 1),
        ("DELETE FROM open_holds", 1),
        ("INSERT INTO open_holds VALUES ('a')", 1),
        ("INSERT INTO entries (kind, hold, at_s) VALUES ('gift', 'c', 0.0)", 2),  # nor does it say what it is about
        ("UPDATE totals SET facts = 77", 3),  # a number for nothing, and what entries and the team's sum say is missing
        ("UPDATE spent SET facts = 77", 2),
        ("UPDATE turns SET facts = 77", 1),
        ("DROP TRIGGER facts_keep; DELETE FROM facts", 4),
        ("DROP TRIGGER entries_stay; UPDATE entries SET facts = NULL WHERE kind = 'hold'", 2),
        ("DROP TRIGGER entries_stay; UPDATE entries SET facts = 2 WHERE kind = 'settle'", 1),
    ],
)
async def test_verify_finds_a_sum_that_does_not_add_up(tmp_path, change, found):
    home = await reopened(tmp_path / "ledger.db")
    turn = Turn("t", BLUE, False, True, 0, NOW_S, "boot", 1.0)
    await home.apply([Hold("a", RED, 30, NOW_S), settle("a", 25), Hold("b", RED, 5, NOW_S), turn])
    assert await home.verify() == []
    await home._database.executescript(f"PRAGMA foreign_keys = OFF; {change}")
    assert len(await home.verify()) == found, await home.verify()
    await home.close()


@pytest.mark.parametrize("change", ["UPDATE facts SET team = 'blue'", "DELETE FROM facts"])
async def test_what_entries_are_about_is_never_changed(tmp_path, change):
    home = await reopened(tmp_path / "ledger.db")
    await home.apply([Hold("a", RED, 30, NOW_S)])
    with pytest.raises(sqlite3.IntegrityError, match="never"):
        await home._database.execute_fetchall(change)
    await home.close()


async def test_facts_with_two_numbers_keep_the_newest_and_the_next_number_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers, "FACTS_MAX", 2)
    facts = [Facts("red", "k", "chat", model) for model in "abcade"]
    path = tmp_path / "ledger.db"
    home = await reopened(path)
    for number, one in enumerate(facts[:4]):
        await home.apply([Hold(f"h{number}", one, 1, NOW_S)])
    await home.close()
    home = await reopened(path)
    assert home._facts.number(facts[0], []) == 4, "a had 1 before its number was forgotten"
    for number, one in enumerate(facts[4:]):
        assert await home.apply([Hold(f"i{number}", one, 1, NOW_S), settle(f"i{number}", 1)]) == [Outcome.OK] * 2
    assert await home.verify() == []
    await home.close()


async def test_verify_tells_what_it_finds_in_one_order(tmp_path):
    """So that what it said twice can be compared."""
    home = await reopened(tmp_path / "ledger.db", ())
    teams = [f"t{number:02}" for number in range(12)]
    for team in teams:
        await home.apply([Hold(team, Facts(team, "k", "chat"), 30, NOW_S), settle(team, 25)])
    await home._database.execute_fetchall("UPDATE totals SET credits = 24")
    found = await home.verify()
    assert [said.split()[7] for said in found[:12]] == teams
    assert [said.split()[2] for said in found[12:]] == teams
    await home.close()


def riders_of(name):
    """With its hold a turn and a promise, before its answer the owner and the operation, and its end."""
    work = Operation(name, "red", "video", "m", OpenHold(name, 5, False, 0), NOW_S)
    return (
        Turn(name, RED, True, True, 0, NOW_S, "boot", 1.0, hold=name),
        Promise("red", name, "00", NOW_S, hold=name),
        Begin(work),
        Own(name, "red", "m", NOW_S),
        Finish(name, NOW_S),
    )


CHILD = """
    import asyncio, sys
    from pathlib import Path
    from proxy.stores.ledger.sqlite import SqliteLedger
    from tests.stores.test_contract import NOW_S, RED
    from tests.stores.test_sqlite import riders_of, settle
    from proxy.core.ledger import Hold

    async def main():
        home = await SqliteLedger.open(Path(sys.argv[1]), (), now_s=NOW_S)
        async def one(n):
            for k in range(10_000):
                name = f"{sys.argv[2]}-{n}-{k}"
                riders = riders_of(name)
                await home.apply([Hold(name, RED, 5, NOW_S), riders[0], riders[1]])
                print("h", name, flush=True)
                await home.apply([riders[2], riders[3]])
                print("o", name, flush=True)
                await home.apply([settle(name, 3), riders[4]])
                print("s", name, flush=True)
        await asyncio.gather(*(one(n) for n in range(4)))

    asyncio.run(main())
"""


async def test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path):
    """A process writes holds and settlements, says each one it was told of, and is killed in the middle, many times."""
    path, told = tmp_path / "ledger.db", {"h": set(), "o": set(), "s": set()}
    for turn in range(10):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", textwrap.dedent(CHILD), str(path), str(turn), stdout=asyncio.subprocess.PIPE
        )
        for _ in range(20 + turn * 13):
            line = await process.stdout.readline()
            assert line, "it ended by itself"
            word, name = line.decode().split()
            told[word].add(name)
        os.kill(process.pid, signal.SIGKILL)
        rest, _ = await process.communicate()
        # What it had said before it died was acknowledged too; a line cut in half was not.
        for line in rest.decode().splitlines(keepends=True):
            if line.endswith("\n"):
                told[line.split()[0]].add(line.split()[1])
    home = await SqliteLedger.open(path, (), now_s=NOW_S)
    kinds = {"hold": set(), "settle": set()}
    for kind, hold in await home._all("SELECT kind, hold FROM entries"):
        kinds[kind].add(hold)
    assert told["h"] <= kinds["hold"]
    assert told["s"] <= kinds["settle"]
    assert await home.verify() == []
    assert home.projection.spent["red"] == 3 * len(kinds["settle"])
    # What rode in a batch is there when the batch is, and only then.
    owned = {kept.own.id for kept in await home.owners(0.0)}
    assert told["o"] <= owned
    assert {kept.turn.id for kept in await home.turns(0.0)} == kinds["hold"]
    assert {key for (key,) in await home._all("SELECT key FROM outcomes")} == kinds["hold"]
    assert {one.id for one in await home.operations()} == owned - kinds["settle"]
    assert home.unknown == kinds["hold"] - owned, "what an operation holds is known"
    await home.close()


async def test_an_ending_that_nobody_waits_for_rides_with_the_next_hold(tmp_path):
    home = await reopened(tmp_path / "ledger.db")
    await home.apply([Hold("a", RED, 30, NOW_S)])
    ending = home.submit([settle("a", 25)], soon=False)
    assert await home.apply([Hold("b", RED, 5, NOW_S)]) == [Outcome.OK]
    assert ending.over, "it was written before what came after it was acknowledged"
    assert await home._all("SELECT kind, hold FROM entries ORDER BY id") == [
        ("hold", "a"),
        ("settle", "a"),
        ("hold", "b"),
    ]
    await home.close()


async def test_an_ending_that_nobody_waits_for_is_decided_at_once_and_written_soon(tmp_path):
    home = await reopened(tmp_path / "ledger.db")
    await home.apply([Hold("a", RED, 30, NOW_S)])
    ending = home.submit([settle("a", 25)], soon=False)
    await asyncio.sleep(0)
    assert home.projection.spent == {"red": 25}
    assert not ending.over
    assert await ending == [Outcome.OK]
    await home.close()


async def test_what_was_not_to_be_written_soon_is_written_when_it_is_pushed_and_at_the_end(tmp_path):
    home = await SqliteLedger.open(tmp_path / "ledger.db", BUDGETS, now_s=NOW_S, later_s=3600.0)
    await home.apply([Hold(name, RED, 10, NOW_S) for name in "abc"])
    ending = home.submit([settle("a", 5)], soon=False)
    home.push()
    assert await ending == [Outcome.OK]
    waits = home.submit([settle("b", 5)], soon=False)
    await home.rebudget(BUDGETS[:1])
    assert await waits == [Outcome.OK], "new accounts are made from a file that knows it"
    assert home.projection.accounts.used(BUDGETS[0], (), NOW_S) == (10, 10)
    last = home.submit([settle("c", 5)], soon=False)
    await home.close()
    assert last.over
    again = await reopened(tmp_path / "ledger.db")
    assert again.projection.spent == {"red": 15}
    await again.close()


@pytest.mark.parametrize("turns", range(0, 24, 2))
async def test_budgets_that_change_while_accounts_are_made_of_others_are_the_ones_that_hold(tmp_path, turns):
    home = await reopened(tmp_path / "ledger.db")
    await home.apply([Hold("a", RED, 30, NOW_S), settle("a", 25)])
    first = home.rebudget(BUDGETS[1:])
    for _ in range(turns):
        await asyncio.sleep(0)
    await asyncio.gather(first, home.rebudget(BUDGETS[:1]))
    assert home.projection.accounts.budgets == tuple(BUDGETS[:1])
    assert home.projection.accounts.used(BUDGETS[0], (), NOW_S) == (25, 0)
    await home.close()


async def test_others_have_their_turns_while_many_rows_are_booked():
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    rows = [row async for row in _in_turns(range(1000))]
    task.cancel()
    assert rows == list(range(1000))
    assert turns >= 1000 // ROWS_A_TURN


async def test_what_is_handed_in_while_accounts_are_made_is_judged_by_them(tmp_path):
    home = await reopened(tmp_path / "ledger.db")
    wide = [Budget("wide", 10**6, Calendar(Per.DAY))]
    await home.rebudget(wide)
    many = [Facts("red", f"k{number}", "chat", "m") for number in range(1000)]
    await home.apply([Hold(facts.key, facts, 2, NOW_S) for facts in many])
    await home.apply([settle(facts.key, 1) for facts in many])
    made = home.rebudget(wide)
    turns = 0
    while not made.over:
        turns += 1
        if turns == 5:
            late = home.submit([Hold("late", RED, 1, NOW_S)])
        await asyncio.sleep(0)
    assert await late == [Outcome.OK]
    assert home.projection.accounts.used(wide[0], (), NOW_S) == (1000, 1)
    await home.close()


async def test_steps_of_one_call_are_written_the_same_together_and_one_by_one(tmp_path):
    turns = [Turn(name, RED, True, False, 7, NOW_S + 1, "boot", 100.0, hold=name) for name in ("a", "b")]
    steps = [
        *([Hold(turn.id, RED, 30, NOW_S, "team.yaml:7:5"), turn] for turn in turns),
        *([settle(turn.id, 25, NOW_S + 2), TurnWritten(turn.id, NOW_S + 3, 102.0)] for turn in turns),
        # Of two calls, or the other way round: nothing to put together.
        [Hold("c", RED, 1, NOW_S), Turn("d", RED, False, True, 0, NOW_S, "boot", 1.0)],
        [TurnWritten("d", NOW_S, 2.0), settle("c", 1)],
        [Hold("e", RED, 1, NOW_S), Turn("e", BLUE, False, True, 0, NOW_S, "boot", 1.0, "e")],
        [settle("e", 1), TurnWritten("e", NOW_S, 2.0), Learned("chat", "m", 300, 1, NOW_S)],
        [Hold("f", RED, 1, NOW_S), Hold("g", RED, 1, NOW_S), Turn("g", RED, True, True, 3, NOW_S, "boot", 1.0, "g")],
        [settle("f", 1), TurnWritten("g", NOW_S, 2.0)],
    ]
    told = []
    for name, batches in (("together", steps), ("one by one", [[one] for both in steps for one in both])):
        home = await reopened(tmp_path / name)
        for batch in batches:
            assert set(await home.apply(batch)) == {Outcome.OK}
        assert await home.verify() == []
        tables = ("entries", "totals", "turns", "open_holds", "spent", "places", "facts", "learned")
        told.append([list(await home._database.execute_fetchall(f"SELECT * FROM {table}")) for table in tables])
        await home.close()
    assert told[0] == told[1]
    turns_kept = {row[0]: row[2:] for row in told[0][2]}
    assert turns_kept["a"] == (1, 0, 7, NOW_S + 1, "boot", 100.0, NOW_S + 3, 102.0)


def test_statements_are_few_and_hardly_longer_than_what_they_write():
    sizes = {count: values([("finish", "a", 1.0)] * count) for count in range(1, ROWS_MAX + 1)}
    assert all(count <= size <= count * 5 / 4 for count, (size, _) in sizes.items())
    assert all(len(given) == size * (1 + WIDTH) for size, given in sizes.values())
    assert len({size for size, _ in sizes.values()}) <= 40


async def test_the_oldest_turns_are_let_go_of_first_and_some_at_a_time(tmp_path):
    home = await reopened(tmp_path / "ledger.db", ())
    ids = [f"{number:04}" for number in range(2 * FORGOTTEN_AT_ONCE)]
    await home.apply([Turn(name, RED, False, False, 0, NOW_S, "boot", 1.0) for name in ids])
    for left in (ids[FORGOTTEN_AT_ONCE:], []):
        await home.apply([Forget(Shelf.TURNS, NOW_S + 1)])
        assert [kept.turn.id for kept in await home.turns(0.0)] == left
    await home.close()


async def test_more_rows_than_one_statement_takes_are_all_written(tmp_path):
    home = await reopened(tmp_path / "ledger.db", ())
    await asyncio.gather(*(home.apply([Hold(f"h{n}", RED, 1, NOW_S)]) for n in range(2500)))
    assert await home._all("SELECT count(*) FROM entries") == [(2500,)]
    await home.close()


async def test_a_backup_is_whole_and_the_owners_alone_and_never_over_a_file(tmp_path):
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0)
    await ledger.apply([Hold("a", Facts("red", "k", "chat"), 5, 0.0)])
    path = tmp_path / "backups" / "copy.db"
    await ledger.backup(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(LedgerUnavailable, match="cannot be written"):
        await ledger.backup(path)
    await ledger.close()
    copy = await SqliteLedger.open(path, now_s=1.0)
    assert (copy.unknown, list(await copy.verify())) == ({"a"}, [])
    await copy.close()


async def test_a_step_that_nobody_can_take_keeps_nobody_waiting(tmp_path):
    """A fault of ours in one step is told to all who wait for that commit, and the next one is taken."""
    home = await SqliteLedger.open(tmp_path / "ledger.db", BUDGETS, now_s=NOW_S)
    odd = Hold("odd", RED, Credits(5), None)
    waits = [home.submit([odd]), home.submit([Hold("beside", RED, Credits(5), NOW_S)])]
    for wait in waits:
        with pytest.raises(LedgerUnavailable):
            await wait
    assert await home.apply([Hold("next", RED, Credits(5), NOW_S)]) == [Outcome.OK]
    assert home.projection.accounts.used(BUDGETS[0], (), NOW_S) == (0, 5)
    await home.close()
