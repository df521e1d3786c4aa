"""The spool: every reader gets every byte, the writer never runs further ahead than the bound."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.server.spool import MOMENT_S, FellBehind, Spool

PIECES = st.lists(st.binary(min_size=1, max_size=30), max_size=20)


async def read_all(spool, reader, *, pause_at=None, gate=None):
    seen = []
    while piece := await spool.read(reader):
        if pause_at is not None and len(seen) == pause_at:
            await gate.wait()
        seen.append(piece)
    return b"".join(seen)


@given(PIECES, st.integers(1, 100), st.integers(1, 4))
def test_every_reader_gets_every_byte_in_order(pieces, bound, count):
    async def run():
        spool = Spool(bound)
        readers = [asyncio.ensure_future(read_all(spool, spool.join())) for _ in range(count)]
        for piece in pieces:
            await spool.write(piece)
            assert spool._size <= bound or not spool.readers
        spool.finish()
        assert set(await asyncio.gather(*readers)) == {b"".join(pieces)}

    asyncio.run(run())


async def test_the_writer_waits_for_the_slowest_reader_and_no_longer_than_it_stays():
    spool, gate = Spool(10), asyncio.Event()
    slow = spool.join()
    quick = asyncio.ensure_future(read_all(spool, spool.join()))
    reading = asyncio.ensure_future(read_all(spool, slow, pause_at=0, gate=gate))
    writing = asyncio.ensure_future(spool.write(b"a" * 20))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not writing.done()
    reading.cancel()
    spool.leave(slow)
    await writing
    spool.finish()
    assert await quick == b"a" * 20


async def test_whoever_is_far_behind_loses_its_place_once_others_have_waited_long_enough():
    spool, gate = Spool(10, patience_s=0.05), asyncio.Event()
    slow, quick = spool.join(), spool.join()
    lagging = asyncio.ensure_future(read_all(spool, slow, pause_at=1, gate=gate))
    reading = asyncio.ensure_future(read_all(spool, quick))
    for _ in range(20):
        await spool.write(b"a" * 8)
    spool.finish()
    assert await reading == b"a" * 160
    gate.set()
    with pytest.raises(FellBehind):
        await lagging


async def test_who_lost_its_place_reads_no_further_although_the_next_piece_is_there():
    spool = Spool(10, patience_s=0.0)
    slow, quick = spool.join(), spool.join()
    reading = asyncio.ensure_future(read_all(spool, quick))
    await spool.write(b"a" * 8)
    assert await spool.read(slow) == b"a" * 8
    await spool.write(b"b" * 8)
    with pytest.raises(FellBehind):
        await spool.read(slow)
    spool.finish()
    assert await reading == b"a" * 8 + b"b" * 8


async def test_who_reads_and_only_has_not_had_its_turn_keeps_its_place():
    """Also once others' patience is used up."""
    spool = Spool(10, patience_s=0.0)
    slow, quick = spool.join(), spool.join()

    async def busy():
        seen = []
        while piece := await spool.read(slow):
            for _ in range(5):
                await asyncio.sleep(0)
            seen.append(piece)
        return b"".join(seen)

    readings = [asyncio.ensure_future(busy()), asyncio.ensure_future(read_all(spool, quick))]
    for _ in range(20):
        await spool.write(b"a" * 8)
    spool.finish()
    assert await asyncio.gather(*readings) == [b"a" * 160] * 2


async def test_nobody_loses_its_place_because_the_process_itself_was_held_up():
    spool = Spool(10, patience_s=0.0)
    slow, quick = spool.join(), spool.join()
    reading = asyncio.ensure_future(read_all(spool, quick))
    await spool.write(b"a" * 8)
    assert await spool.read(slow) == b"a" * 8
    writing = asyncio.ensure_future(spool.write(b"b" * 8))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not writing.done(), "it waits for the slow one, as the quick one has everything"
    time.sleep(2 * MOMENT_S + 0.1)  # noqa: ASYNC251  (it is what happens here: nobody has a turn)
    for _ in range(10):
        await asyncio.sleep(0)
    assert await spool.read(slow) == b"b" * 8
    await writing
    spool.finish()
    assert await spool.read(slow) == b""
    assert await reading == b"a" * 8 + b"b" * 8


async def test_nobody_is_dropped_where_nobody_waits_for_it():
    spool, gate = Spool(10, patience_s=0.0), asyncio.Event()
    readings = [asyncio.ensure_future(read_all(spool, spool.join(), pause_at=1, gate=gate)) for _ in range(2)]

    async def write():
        for _ in range(5):
            await spool.write(b"a" * 8)
        spool.finish()

    writing = asyncio.ensure_future(write())
    for _ in range(50):
        await asyncio.sleep(0)
    assert not writing.done()
    gate.set()
    assert await asyncio.gather(*readings) == [b"a" * 40] * 2


async def test_newcomers_may_join_while_the_first_byte_is_still_there():
    spool = Spool(10)
    first = asyncio.ensure_future(read_all(spool, spool.join()))
    await spool.write(b"12345")
    assert spool.whole
    second = asyncio.ensure_future(read_all(spool, spool.join()))
    await spool.write(b"6789012345")
    assert not spool.whole
    spool.finish()
    assert await first == await second == b"123456789012345"


async def test_without_readers_the_writer_never_waits():
    spool = Spool(10)
    for _ in range(100):
        await spool.write(b"a" * 9)
    assert spool._size <= 18


async def test_who_gave_its_place_up_reads_nothing_that_is_not_its_own():
    spool = Spool(10)
    left, stays = spool.join(), spool.join()
    spool.put(b"123456")
    assert await spool.read(left) == b"123456"
    spool.leave(left)
    for piece in (b"789012", b"345678", b"901234"):
        assert await spool.read(stays)
        spool.put(piece)
    assert await spool.read(stays) == b"901234"
    assert not spool.whole
    with pytest.raises(FellBehind):
        await spool.read(left)
