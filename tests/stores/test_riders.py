"""What rides with the entries is read back as it was written, in every home; in a file across restarts."""

import pytest

from proxy.core.charges import Basis, Charge, Ending
from proxy.core.facts import Facts
from proxy.core.holds import OpenHold
from proxy.core.ledger import Adjust, Hold, Outcome, Resolve, Settle, Void
from proxy.core.operations import Operation
from proxy.core.prices import FLAT
from proxy.core.riders import (
    Begin,
    Finish,
    Forget,
    IssueKey,
    Keep,
    KeptKey,
    KeptOutcome,
    KeptOwner,
    KeptTurn,
    Learned,
    Own,
    Promise,
    Release,
    RevokeKey,
    Shelf,
    Turn,
    TurnWritten,
    Used,
)
from proxy.stores.ledger.memory import MemoryLedger
from proxy.stores.ledger.sqlite import SqliteLedger
from tests.stores.test_contract import BUDGETS, NOW_S, RED

DAY_S = 86_400.0
TURN = Turn("t1", RED, True, True, 7, NOW_S, "boot", 100.0, hold="a")
PROMISE = Promise("red", "once", "00ff", NOW_S, hold="a")


@pytest.fixture(params=["memory", "sqlite"])
async def place(request, tmp_path):
    """Opens the same home again: a restart, where there is a file."""
    path, homes = tmp_path / "ledger.db", []

    async def open_again():
        if request.param == "memory":
            if not homes:
                homes.append(MemoryLedger(BUDGETS))
        else:
            if homes:
                await homes.pop().close()
            homes.append(await SqliteLedger.open(path, BUDGETS, now_s=NOW_S))
        return homes[0]

    yield open_again
    for home in homes:
        if isinstance(home, SqliteLedger):
            assert await home.verify() == []
        await home.close()


async def test_the_first_team_an_id_was_answered_to_keeps_it(place):
    home = await place()
    own = Own("resp_1", "red", "m", NOW_S)
    await home.apply(
        [own, Own("resp_1", "blue", "m", NOW_S), Used("resp_1", 30, 12, NOW_S), Own("b", "red", None, 1.0)]
    )
    home = await place()
    assert await home.owners(2.0) == [KeptOwner(own, 30, 12)]
    await home.apply([Forget(Shelf.OWNERS, 2.0)])
    assert [kept.own.id for kept in await home.owners(0.0)] == ["resp_1"]


async def test_an_open_operation_keeps_its_hold_and_is_not_in_doubt(place):
    home = await place()
    work = Operation("op/1", "red", "video", "v", OpenHold("a", 60, False, 3, FLAT, True), NOW_S)
    await home.apply([Hold("a", RED, 60, NOW_S), Begin(work)])
    home = await place()
    assert await home.operations() == [work]
    assert home.unknown == frozenset()
    assert home.projection.holds["a"].held == 60
    await home.apply([Settle("a", Charge(50, Basis.USAGE), Ending.ANSWERED, NOW_S), Finish("op/1", NOW_S)])
    home = await place()
    assert await home.operations() == []
    assert home.projection.spent["red"] == 50


async def test_an_outcome_is_kept_until_its_key_is_released(place):
    home = await place()
    keep = Keep("red", "once", 200, (("content-type", "application/json"),), b"{\x00\xff}", NOW_S)
    await home.apply([Hold("a", RED, 1, NOW_S), PROMISE])
    home = await place()
    assert await home.outcome("red", "once") == KeptOutcome(PROMISE)
    assert await home.outcome("blue", "once") is None
    await home.apply([keep])
    home = await place()
    assert await home.outcome("red", "once") == KeptOutcome(PROMISE, keep)
    await home.apply([Release("red", "once", NOW_S)])
    assert await home.outcome("red", "once") is None
    await home.apply([PROMISE])
    await home.apply([Forget(Shelf.OUTCOMES, NOW_S + DAY_S)])
    assert await home.outcome("red", "once") is None


async def test_what_rides_with_a_hold_is_not_taken_without_it(place):
    home = await place()
    await home.apply([Hold("z", RED, 75, NOW_S)])
    over = [Outcome.OVER_BUDGET, Outcome.NO_SUCH_HOLD, Outcome.NO_SUCH_HOLD]
    assert await home.apply([Hold("a", RED, 60, NOW_S), TURN, PROMISE]) == over
    home = await place()
    assert await home.turns(0.0) == []
    assert await home.outcome("red", "once") is None


async def test_what_rides_with_the_rows_of_a_call_is_judged_by_itself(place):
    """A turn is in the row of its hold, and its end in that of the settlement, only where that was taken."""
    home = await place()
    turn = TURN._replace(id="a")
    over = [Outcome.OVER_BUDGET, Outcome.NO_SUCH_HOLD]
    assert await home.apply([Hold("z", RED, 75, NOW_S)]) == [Outcome.OK]
    assert await home.apply([Hold("a", RED, 60, NOW_S), turn]) == over
    assert await home.turns(0.0) == []
    assert await home.apply([Hold("a", RED, 1, NOW_S), turn]) == [Outcome.OK] * 2
    charge = Charge(1, Basis.USAGE, 1)
    assert await home.apply([Settle("a", charge, Ending.ANSWERED, NOW_S)]) == [Outcome.OK]
    late = [Settle("a", charge, Ending.ANSWERED, NOW_S), TurnWritten("a", NOW_S + 1, 101.0)]
    assert await home.apply(late) == [Outcome.ALREADY_RESOLVED, Outcome.OK]
    home = await place()
    assert [one.written for one in await home.turns(0.0)] == [late[1]]


async def test_keys_are_kept_and_the_earliest_revocation_counts(place):
    home = await place()
    key, other = (
        IssueKey("ci", "red", "ab12", NOW_S, NOW_S + DAY_S, "for the pipeline"),
        IssueKey("x", "red", "", 1.0, account="ci"),
    )
    await home.apply([key, other, RevokeKey("ci", NOW_S + 50, NOW_S), RevokeKey("ci", NOW_S + 90, NOW_S)])
    home = await place()
    assert await home.keys() == [KeptKey(key, NOW_S + 50), KeptKey(other)]


async def test_turns_are_read_since_a_time_and_those_never_written_always(place):
    home = await place()
    free = Turn("t2", Facts("red", "k", "models"), False, False, 0, NOW_S - DAY_S, "boot", 1.0)
    late = Turn("t3", RED, False, True, 0, NOW_S - DAY_S, "boot", 2.0)
    written = TurnWritten("t3", NOW_S, 150.0)
    await home.apply([Hold("a", RED, 1, NOW_S), TURN, free, late, written, TurnWritten("t1", NOW_S + 1, 101.0)])
    home = await place()
    kept = {turn.turn.id: turn for turn in await home.turns(NOW_S)}
    assert kept.keys() == {"t1", "t2", "t3"}
    assert (kept["t2"], kept["t3"]) == (KeptTurn(free), KeptTurn(late, written))
    assert kept["t1"].turn.facts == RED
    await home.apply([Forget(Shelf.TURNS, NOW_S)])
    assert {turn.turn.id for turn in await home.turns(0.0)} == {"t1", "t3"}


async def test_the_newest_word_on_a_model_is_what_was_learned(place):
    home = await place()
    other = Learned("native", "claude", 300, 2, NOW_S)
    await home.apply([Learned("chat", "gpt", 250, 1, NOW_S), other, Learned("chat", "gpt", 240, 2, NOW_S + 1)])
    home = await place()
    assert {(one.route, one.model): one for one in await home.learned()} == {
        ("chat", "gpt"): Learned("chat", "gpt", 240, 2, NOW_S + 1),
        ("native", "claude"): other,
    }


async def test_an_adjustment_moves_what_is_spent_in_its_window(place):
    home = await place()
    assert await home.apply([Adjust("j1", RED, 90, "a bill from before", "lead", NOW_S)]) == [Outcome.OK]
    assert await home.apply([Adjust("j1", RED, 90, "again", "lead", NOW_S)]) == [Outcome.DUPLICATE_HOLD]
    assert await home.apply([Hold("a", RED, 20, NOW_S)]) == [Outcome.OVER_BUDGET]
    home = await place()
    assert home.projection.accounts.used(BUDGETS[0], (), NOW_S) == (90, 0)
    assert home.projection.accounts.used(BUDGETS[1], BUDGETS[1].group(RED), NOW_S) == (90, 0)
    await home.apply([Adjust("j2", RED, -60, "half of it was wrong", "lead", NOW_S)])
    home = await place()
    assert home.projection.spent["red"] == 30
    assert home.projection.accounts.used(BUDGETS[1], BUDGETS[1].group(RED), NOW_S) == (30, 0)
    assert await home.apply([Hold("a", RED, 20, NOW_S)]) == [Outcome.OK]


async def test_an_uncertain_ending_is_resolved_by_hand_once(place):
    home = await place()
    uncertain = Charge(30, Basis.HOLD, 1, uncertain=True)
    await home.apply([Hold("a", RED, 30, NOW_S), Settle("a", uncertain, Ending.TIMED_OUT, NOW_S)])
    await home.apply([Hold("b", RED, 20, NOW_S), Void("b", Ending.GATEWAY_FAILED, NOW_S, uncertain=True)])
    await home.apply([Hold("c", RED, 9, NOW_S), Settle("c", Charge(9, Basis.USAGE), Ending.ANSWERED, NOW_S)])
    home = await place()
    assert [hold for hold, _ in await home.doubtful()] == ["a", "b"]
    for hold, cost, says in (("a", 10, Outcome.OK), ("b", 5, Outcome.OK), ("a", 1, Outcome.NOT_IN_DOUBT),
                                ("c", 1, Outcome.NOT_IN_DOUBT)):  # fmt: skip
        assert await home.remember(hold) is not None
        assert await home.apply([Resolve(hold, cost, "the bill says so", "lead", NOW_S + 5)]) == [says], hold
    home = await place()
    assert await home.doubtful() == []
    assert home.projection.spent["red"] == 24
    assert home.projection.accounts.used(BUDGETS[0], (), NOW_S) == (24, 0)
    assert home.projection.accounts.used(BUDGETS[1], BUDGETS[1].group(RED), NOW_S) == (24, 0)
    assert await home.remember("nobody") is None


async def test_a_hold_without_an_ending_is_resolved_by_hand_and_a_running_one_is_not(tmp_path):
    home = await SqliteLedger.open(tmp_path / "ledger.db", BUDGETS, now_s=NOW_S)
    resolve = Resolve("a", 12, "the bill says so", "lead", NOW_S)
    await home.apply([Hold("a", RED, 30, NOW_S)])
    assert await home.apply([resolve]) == [Outcome.NOT_IN_DOUBT]
    await home.close()
    home = await SqliteLedger.open(tmp_path / "ledger.db", BUDGETS, now_s=NOW_S)
    assert home.unknown == {"a"}
    assert await home.apply([resolve]) == [Outcome.OK]
    assert (home.unknown, home.projection.spent) == (frozenset(), {"red": 12})
    assert await home.apply([Settle("a", Charge(9, Basis.USAGE), Ending.ANSWERED, NOW_S)]) == [Outcome.ALREADY_RESOLVED]
    assert await home.verify() == []
    await home.close()
