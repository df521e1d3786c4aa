"""Every home of the cache keeps what it was given, within its bound, and never fails whoever asks."""

import asyncio
import random
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.stores.cache.contract import Entry, Which
from proxy.stores.cache.keys import Keys
from proxy.stores.cache.memory import MemoryCache
from proxy.stores.cache.sqlite import BATCH_MAX, BATCH_SHARE, GATHER_S, KEYS_AT_ONCE, SqliteCache
from proxy.units import Credits

MIB = 1024 * 1024


def an_entry(number=0, *, body=b"said", **more):
    given = {
        "scope": "red", "route": "chat", "model": "m", "status": 200, "headers": {"content-type": "application/json"},
        "stored_s": 10.0, "until_s": 20.0, "credits": Credits(7), "usage": {"input": 3}, **more,
    }  # fmt: skip
    return Entry(key=number.to_bytes(32), body=body, **given)


@pytest.fixture(params=["memory", "sqlite"])
async def home(request, tmp_path):
    cache = MemoryCache(4 * MIB) if request.param == "memory" else await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    yield cache
    await cache.close()


async def put(home, *entries):
    for entry in entries:
        home.put(entry)
    await home.written()


async def test_an_entry_comes_back_as_it_was_put(home):
    entry = an_entry(body=bytes(range(256)) * 40)
    await put(home, entry)
    assert await home.get(entry.key) == entry
    assert await home.get(b"\xff" * 32) is None


async def test_a_new_entry_takes_the_place_of_the_old_one(home):
    await put(home, an_entry(body=b"old"), an_entry(body=b"new"))
    await put(home, an_entry(body=b"newest"))
    assert (await home.get(an_entry().key)).body == b"newest"
    assert home.stats.entries == 1


async def test_what_was_used_last_stays_when_room_is_needed(home):
    for number in range(300):
        await put(home, an_entry(number, body=b"x" * 30_000, stored_s=float(number)))
        home.touch(an_entry(0).key, float(number))
        await home.get(an_entry(0).key)
    assert home.stats.evicted
    assert home.stats.bytes <= home.stats.limit_bytes
    assert await home.get(an_entry(0).key), "used all the time"
    assert await home.get(an_entry(299).key), "the newest"
    assert await home.get(an_entry(1).key) is None, "nobody asked for it"


async def test_an_entry_larger_than_the_cache_can_bear_is_not_kept(home):
    await put(home, an_entry(body=b"x" * 3 * MIB))
    assert home.stats.entries == 0


async def test_sweeping_lets_go_of_what_has_ended_only(home):
    await put(home, an_entry(1, until_s=5.0), an_entry(2, until_s=50.0))
    assert await home.sweep(20.0) == 1
    assert await home.get(an_entry(1).key) is None
    assert await home.get(an_entry(2).key) is not None
    assert (home.stats.entries, home.stats.expired) == (1, 1)


@pytest.mark.parametrize(
    ("which", "left"),
    [
        (Which(), set()),
        (Which(scope="red"), {3}),
        (Which(model="m"), {2}),
        (Which(route="native"), {1, 2, 3}),
        (Which(older_than_s=15.0), {2, 3}),
        (Which(scope="red", model="other"), {1, 3}),
    ],
)
async def test_a_purge_takes_what_fits_all_its_words(home, which, left):
    await put(home, an_entry(1), an_entry(2, model="other", stored_s=20.0), an_entry(3, scope="blue", stored_s=20.0))
    await home.purge(which)
    assert {number for number in (1, 2, 3) if await home.get(an_entry(number).key)} == left


async def test_the_largest_come_first_and_without_their_bodies(home):
    await put(home, *(an_entry(number, body=b"x" * number) for number in (5, 900, 70)))
    assert [entry.key for entry in await home.largest(2)] == [an_entry(900).key, an_entry(70).key]
    assert {entry.body for entry in await home.largest(9)} == {b""}


# --- the file ---


async def test_the_file_stays_under_its_bound_whatever_is_put(tmp_path):
    path = tmp_path / "c.db"
    cache = await SqliteCache.open(path, 4 * MIB)
    for number in range(3000):
        cache.put(an_entry(number, body=bytes([number % 251]) * (number % 9000), stored_s=float(number)))
        if number % 64 == 0:
            await cache.written()
    await cache.written()
    taken = sum(file.stat().st_size for file in tmp_path.iterdir())
    await cache.close()
    assert taken <= 4 * MIB * 1.35, "bound, and a write-ahead log of at most 1 MiB"
    assert path.stat().st_size <= 4 * MIB


async def test_entries_survive_a_restart(tmp_path):
    for attempt in range(2):
        cache = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
        if attempt == 0:
            await put(cache, an_entry(1))
        assert await cache.get(an_entry(1).key) == an_entry(1)
        assert cache.stats.entries == 1
        await cache.close()


async def test_the_file_is_its_owners_alone(tmp_path):
    await (await SqliteCache.open(tmp_path / "new" / "c.db", 4 * MIB)).close()
    assert (tmp_path / "new" / "c.db").stat().st_mode & 0o077 == 0
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "rubbish", [b"not a database at all, not even nearly" * 40, b"SQLite format 3\x00" + b"x" * 9000]
)
async def test_a_damaged_file_is_made_anew(tmp_path, rubbish):
    (tmp_path / "c.db").write_bytes(rubbish)
    cache = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    await put(cache, an_entry(1))
    assert await cache.get(an_entry(1).key) == an_entry(1)
    assert cache.stats.faults == 1
    await cache.close()


@pytest.mark.parametrize("instead", ["nothing", "another file"])
async def test_a_file_that_was_taken_away_is_made_anew_at_the_next_sweep(tmp_path, instead):
    path = tmp_path / "cache.db"
    cache = await SqliteCache.open(path, 4 * MIB)
    await put(cache, an_entry(1))
    path.rename(tmp_path / "away.db")
    if instead == "another file":
        path.write_bytes(b"")
    await cache.sweep(0.0)
    assert await cache.get(an_entry(1).key) is None
    await put(cache, an_entry(2))
    await cache.close()
    again = await SqliteCache.open(path, 4 * MIB)
    assert await again.get(an_entry(2).key) == an_entry(2)
    await again.close()


async def test_damage_that_shows_later_is_a_miss_and_then_a_new_file(tmp_path):
    path = tmp_path / "c.db"
    cache = await SqliteCache.open(path, 4 * MIB)
    await put(cache, *(an_entry(number, body=b"y" * 3000) for number in range(300)))
    await cache.close()
    whole = path.read_bytes()
    # The first page tells of tables; all others are overwritten.
    path.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
    cache = await SqliteCache.open(path, 4 * MIB)
    for number in range(300):
        assert await cache.get(an_entry(number).key) is None
    await put(cache, an_entry(1))
    assert await cache.get(an_entry(1).key) == an_entry(1)
    await cache.close()


async def test_a_file_of_another_version_is_made_anew(tmp_path):
    with sqlite3.connect(tmp_path / "c.db") as database:
        database.executescript("CREATE TABLE entries (key BLOB); PRAGMA user_version = 99;")
    database.close()
    cache = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    await put(cache, an_entry(1))
    assert await cache.get(an_entry(1).key) == an_entry(1)
    await cache.close()


async def test_a_folder_that_cannot_be_written_means_misses(tmp_path):
    (tmp_path / "file").write_text("")
    cache = await SqliteCache.open(tmp_path / "file" / "c.db", 4 * MIB)
    await put(cache, an_entry(1))
    assert await cache.get(an_entry(1).key) is None
    assert await cache.purge(Which()) == 0
    assert cache.stats.faults
    await cache.close()


async def test_a_second_process_on_the_file_goes_without(tmp_path):
    first = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    await put(first, an_entry(1))
    second = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    await put(second, an_entry(2))
    assert await second.get(an_entry(1).key) is None
    assert await first.get(an_entry(1).key) == an_entry(1), "and takes nothing away"
    await second.close()
    await first.close()
    third = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    assert await third.get(an_entry(1).key) == an_entry(1)
    await third.close()


# --- which keys there are ---


async def learnt(cache):
    await asyncio.wait([cache._learner])
    return cache


async def test_of_a_key_that_was_never_put_it_is_known_that_it_is_not_there(home):
    if isinstance(home, SqliteCache):
        assert home.may_have(an_entry(7).key), "as long as it is not known"
        await learnt(home)
    assert not home.may_have(an_entry(7).key)
    home.put(an_entry(7))
    assert home.may_have(an_entry(7).key), "before it is written, too"
    await home.written()
    assert home.may_have(an_entry(7).key)


async def test_keys_of_a_file_are_learnt_when_it_is_opened(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", 8 * MIB)
    entries = [an_entry(number * 2**200 + number) for number in range(KEYS_AT_ONCE + 500)]
    for entry in entries:
        cache.put(entry)
    await cache.close()
    cache = await learnt(await SqliteCache.open(tmp_path / "c.db", 8 * MIB))
    assert all(cache.may_have(entry.key) for entry in entries)
    assert not cache.may_have(b"\xff" * 32)
    await cache.close()


async def test_what_is_put_while_keys_are_learnt_is_known_behind_it(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", 8 * MIB)
    assert cache._keys is None
    cache.put(an_entry(7))
    await learnt(cache)
    assert cache.may_have(an_entry(7).key)
    assert not cache.may_have(b"\xff" * 32)
    cache.put(an_entry(8))
    cache._learn_soon()
    await learnt(cache)
    assert cache.may_have(an_entry(8).key), "it waited for its write"
    await cache.close()


async def test_keys_are_learnt_anew_once_too_many_were_added(tmp_path):
    cache = await learnt(await SqliteCache.open(tmp_path / "c.db", MIB))
    worn = cache._keys
    while not worn.is_worn:
        worn.add(random.Random(worn._count).randbytes(32))
    assert sum(cache.may_have(random.Random(-number).randbytes(32)) for number in range(1, 100)) > 50
    await cache.sweep(0.0)
    await learnt(cache)
    assert cache._keys is not worn
    assert not any(cache.may_have(random.Random(-number).randbytes(32)) for number in range(1, 100))
    await cache.close()


async def test_where_keys_could_not_be_learnt_the_file_is_asked_and_they_are_learnt_later(tmp_path):
    cache = await learnt(await SqliteCache.open(tmp_path / "c.db", MIB))
    await cache._database.execute_fetchall("ALTER TABLE entries RENAME TO away")
    cache._learn_soon()
    await learnt(cache)
    assert cache.may_have(an_entry(7).key)
    await cache._database.execute_fetchall("ALTER TABLE away RENAME TO entries")
    await cache.sweep(0.0)
    await learnt(cache)
    assert not cache.may_have(an_entry(7).key)
    await cache.close()


async def test_a_file_that_is_no_good_any_more_is_asked_about_every_key(tmp_path):
    cache = await learnt(await SqliteCache.open(tmp_path / "c.db", MIB))
    await cache._fault(sqlite3.OperationalError("disk I/O error"))
    assert cache.may_have(an_entry(7).key)
    await cache.close()


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=200), st.integers(0, 3000))
def test_a_key_that_was_added_is_always_found(added, fits):
    keys = Keys(fits)
    for key in added:
        was = key in keys
        assert keys.add(key) is was
    assert all(key in keys for key in added)


def test_few_of_the_keys_that_were_not_added_are_found():
    keys, chance = Keys(4096), random.Random(1)
    for _ in range(4096):
        keys.add(chance.randbytes(32))
    assert 0 < sum(chance.randbytes(32) in keys for _ in range(10_000)) < 200


async def test_entries_gather_before_they_are_written(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    statements = []
    await cache._database.set_trace_callback(statements.append)
    for number in range(20):
        cache.put(an_entry(number))
        await asyncio.sleep(0)
    assert not [one for one in statements if one.startswith("INSERT")], "not one by one"
    await cache.written()
    assert len([one for one in statements if one.startswith("INSERT")]) == 2, "of sixteen and of four"
    cache.put(an_entry(21))
    gathering = cache._gathering
    assert gathering is not None, "and without being asked"
    assert gathering.when() <= asyncio.get_running_loop().time() + GATHER_S
    gathering._run()
    await asyncio.wait([cache._writer])
    assert len([one for one in statements if one.startswith("INSERT")]) == 3
    await cache.close()


async def test_what_gathered_is_written_whole(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    for number in range(127):
        cache.put(an_entry(number))
    cache._gathering._run()
    await asyncio.wait([cache._writer])
    assert (cache.stats.entries, cache._waiting, cache._gathering) == (127, {}, None)
    await cache.close()


async def test_what_is_put_again_and_again_takes_its_room_once(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", 64 * MIB)
    for _ in range(20):
        cache.put(an_entry(1, body=b"x" * MIB))
    cache.put(an_entry(2))
    await cache.written()
    assert (cache.stats.entries, cache._waiting_bytes) == (2, 0)
    await cache.close()


def test_what_is_put_again_and_again_takes_its_room_in_memory_once():
    cache = MemoryCache(MIB)
    for _ in range(3):
        cache.put(an_entry(1))
    assert (cache.stats.entries, cache.stats.bytes) == (1, an_entry(1).size)


async def test_many_entries_go_out_in_statements_that_are_known_again(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", 4 * MIB)
    statements = []
    await cache._database.set_trace_callback(statements.append)
    for number in range(32 + 7):
        cache.put(an_entry(number))
    cache._gathering._run()
    await asyncio.sleep(0)
    cache.put(an_entry(39))
    assert await cache.get(an_entry(38).key) == an_entry(38), "it is found while it waits"
    await asyncio.wait([cache._writer])
    rows = [one.count("), (") + 1 for one in statements if one.startswith("INSERT")]
    assert rows == [32, 8], "powers of two, with what came meanwhile where it makes one"
    await cache.close()


@pytest.mark.parametrize(
    ("body", "count"), [(b"{}", BATCH_MAX), (b"x" * (MIB // 16), 8 * 16 // BATCH_SHARE)], ids=["many", "large"]
)
async def test_as_many_entries_as_go_together_wait_no_longer(tmp_path, body, count):
    cache = await SqliteCache.open(tmp_path / "c.db", 8 * MIB)
    for number in range(count):
        assert cache._writer is None
        cache.put(an_entry(number, body=body))
    assert cache._writer is not None
    await asyncio.wait([cache._writer])
    assert cache.stats.entries
    await cache.close()


async def test_what_does_not_fit_one_statement_is_written_in_several(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", 8 * MIB)
    for number in range(2 * BATCH_MAX + 7):
        cache.put(an_entry(number))
    await cache.written()
    assert cache.stats.entries == 2 * BATCH_MAX + 7
    assert not cache._waiting
    await cache.close()


async def test_rows_that_take_the_place_of_others_are_counted_once(tmp_path):
    cache = await learnt(await SqliteCache.open(tmp_path / "c.db", 4 * MIB))
    for text in (b"one", b"two"):
        for number in range(20):
            cache.put(an_entry(number, body=text))
        await cache.written()
    assert cache.stats.entries == 20
    ((rows,),) = await cache._database.execute_fetchall("SELECT count(*) FROM entries")
    assert rows == 20
    await cache.close()


async def test_what_is_put_again_while_it_is_written_is_counted_once(tmp_path):
    cache = await learnt(await SqliteCache.open(tmp_path / "c.db", 4 * MIB))
    for number in range(50):
        cache.put(an_entry(number, body=b"one"))
    cache._write_now()
    writing = cache._writer
    await asyncio.sleep(0)
    assert not writing.done()
    for number in range(50):
        cache.put(an_entry(number, body=b"two"))
    await cache.written()
    assert cache.stats.entries == 50
    assert (await cache.get(an_entry(7).key)).body == b"two"
    await cache.close()


async def test_a_batch_is_small_beside_the_bound(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", MIB)
    for number in range(1000):
        cache.put(an_entry(number, body=b"x" * 15_000, stored_s=float(number)))
    await cache.written()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= MIB * 2.35, "bound, and a log of at most 1 MiB"
    await cache.close()
    assert (tmp_path / "c.db").stat().st_size <= MIB


async def test_nothing_is_left_of_what_could_not_be_written(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", MIB)
    await cache._fault(sqlite3.OperationalError("disk I/O error"))
    for number in range(500):
        cache.put(an_entry(number))
    await cache.written()
    assert (len(cache._waiting), cache._waiting_bytes) == (0, 0)
    await cache.close()


async def test_a_row_with_a_key_of_another_length_is_passed_over(tmp_path):
    cache = await SqliteCache.open(tmp_path / "c.db", MIB)
    short, other = (an_entry()._replace(key=random.Random(number).randbytes(32)) for number in (7, 8))
    await put(cache, short)
    await cache._database.execute_fetchall("UPDATE entries SET key = x'00'")
    await put(cache, other)
    cache._learn_soon()
    await learnt(cache)
    assert not cache.may_have(short.key)
    assert cache.may_have(other.key)
    await cache.close()


def test_size_counts_more_than_the_body():
    assert an_entry().size > len(b"said")
    assert an_entry()._replace(body=b"x" * 100).size - an_entry().size == 96
