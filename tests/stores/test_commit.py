"""A batch on its way: who waits for it may leave, who is told of it cannot disturb it, and it is over once."""

import asyncio

import pytest

from proxy.core.ledger import Outcome
from proxy.stores.ledger.commit import Commit, LedgerUnavailable


async def test_all_who_wait_hear_of_it_and_who_leaves_takes_nothing_from_the_others():
    commit = Commit([])
    leaves, stays = (asyncio.ensure_future(_outcomes(commit)) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    assert not commit.over
    commit.written([Outcome.OK])
    assert await stays == await commit == commit.outcomes == [Outcome.OK]


async def test_nothing_of_it_was_written_is_told_to_all():
    commit = Commit([])
    waits = asyncio.ensure_future(_outcomes(commit))
    await asyncio.sleep(0)
    commit.refused("full")
    for asks in (lambda: waits, lambda: _outcomes(commit)):
        with pytest.raises(LedgerUnavailable, match="full"):
            await asks()


async def test_what_was_written_is_not_refused_afterwards():
    """A batch may be in the first of two statements, of which the second fails."""
    commit, told = Commit([]), []
    commit.then(told.append)
    commit.written([Outcome.OK])
    commit.refused("full")
    await asyncio.sleep(0)
    assert (commit.outcomes, told) == ([Outcome.OK], [commit])


async def test_a_fault_of_who_is_told_is_none_of_who_writes():
    commit, told, faults = Commit([]), [], []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["exception"]))
    commit.then(lambda _: 1 / 0)
    commit.then(told.append)
    commit.written([])
    await asyncio.sleep(0)
    assert (len(faults), told) == (1, [commit])
    commit.then(told.append)
    assert told == [commit, commit], "it is over already"


async def _outcomes(commit):
    return await commit
