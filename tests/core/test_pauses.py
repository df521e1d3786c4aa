from math import inf

import pytest

from proxy.core.pauses import BREAK_UNKNOWN_S, PAUSE_MAX_S, Change, Gates, pause_s
from proxy.core.refusals import Refusals, Said


@pytest.mark.parametrize(("told", "paused"), [(None, 5.0), (0.0, 1.0), (7.0, 7.0), (90.0, 60.0), (3e8, 60.0)])
def test_a_pause_is_what_was_said_within_bounds(told, paused):
    assert pause_s(told) == paused


def failed(gates, at_s, team="red", looks=()):
    gates.failed("g", f"g of {team}", team, at_s, looks)


def answered(gates, at_s, team="red"):
    gates.answered(names(team), "g", team, at_s)


def names(team="red"):
    return ("g", f"g of {team}")


def test_five_failures_in_ten_seconds_shut_a_gate_and_ever_longer_while_it_fails():
    gates = Gates()
    for at_s in (0.0, 3.0, 6.0, 9.0, 12.0):
        failed(gates, at_s)
    assert gates.opens_s(names(), 12.0) == 12.0, "that was not in ten seconds"
    failed(gates, 12.5)
    assert gates.opens_s(names(), 12.5) == 17.5
    looks = gates.pass_through(names(), "red")
    assert gates.opens_s(names(), 17.5) == inf, "one is out to look"
    failed(gates, 18.0, looks=looks)
    assert gates.opens_s(names(), 18.0) == 28.0
    gates.pass_through(names(), "red")
    answered(gates, 29.0)
    assert gates.opens_s(names(), 29.0) == 29.0
    assert not gates.all_shut(29.0)
    failed(gates, 29.5)
    assert gates.opens_s(names(), 29.5) == 29.5, "what failed before it answered does not count any more"


def test_failures_of_calls_from_before_a_break_make_it_no_longer():
    gates = Gates()
    for at_s in range(9):
        failed(gates, at_s * 0.1)
    assert gates.opens_s(names(), 1.0) == pytest.approx(5.4)
    failed(gates, 6.0)
    assert gates.opens_s(names(), 6.0) == 6.0, "it did not look"


def test_an_answer_between_failures_does_not_forget_them():
    gates = Gates()
    for at_s in range(4):
        failed(gates, float(at_s))
        answered(gates, at_s + 0.5)
    failed(gates, 4.0)
    assert gates.opens_s(names(), 4.0) > 4.0


def test_failures_of_one_team_shut_the_way_for_that_team_alone():
    gates = Gates()
    for at_s in range(20):
        failed(gates, at_s * 0.1)
    assert gates.opens_s(names("red"), 2.0) > 2.0
    assert gates.opens_s(names("blue"), 2.0) == 2.0


def test_failures_of_two_teams_shut_the_way_for_all_unless_somebody_is_answered():
    for well, shut in ((None, True), ("green", False)):
        gates = Gates()
        if well is not None:
            answered(gates, 0.0, well)
        for at_s in range(5):
            failed(gates, 1.0 + at_s * 0.1, "red")
        failed(gates, 2.0, "blue")
        assert (gates.opens_s(names("green"), 2.0) > 2.0) is shut


def test_looks_of_one_team_make_the_wait_of_the_others_no_longer():
    gates = Gates()
    for team in ("red", "blue", "red", "blue", "red"):
        failed(gates, 0.0, team)
    now_s = 0.0
    for _ in range(4):
        now_s = gates.opens_s(("g",), now_s)
        failed(gates, now_s, "red", gates.pass_through(names("red"), "red"))
        assert gates.opens_s(("g",), now_s) == now_s + 5.0
    now_s = gates.opens_s(("g",), now_s)
    failed(gates, now_s, "blue", gates.pass_through(names("blue"), "blue"))
    assert gates.opens_s(("g",), now_s) == now_s + 10.0, "two teams looked in vain"


def test_what_is_shut_and_opened_is_told_once():
    gates = Gates()
    gates.pause("member:m", 5.0, "429")
    gates.pause("member:m", 4.0, "429")
    for _ in range(7):
        failed(gates, 1.0)
    answered(gates, 7.0)
    assert gates.changes() == [
        Change("member:m", "429", 5.0),
        Change("g of red", "fails", 6.0),
        Change("g of red", "answered", None),
    ]
    assert gates.changes() == []


def test_an_answer_to_a_call_from_before_a_break_opens_nothing():
    gates = Gates()
    gates.break_("g", 60.0)
    answered(gates, 30.0)
    assert gates.opens_s(("g",), 30.0) == 60.0


def test_a_pause_is_never_shortened_and_opens_for_all():
    gates = Gates()
    gates.pause("m", 10.0)
    gates.pause("m", 5.0)
    assert gates.opens_s(("m", "other"), 6.0) == 10.0
    assert gates.shut(("other", "m"), 6.0) == "m"
    gates.pass_through(("m",), "red")
    assert gates.opens_s(("m",), 10.0) == 10.0
    assert BREAK_UNKNOWN_S <= PAUSE_MAX_S


def test_names_that_callers_invent_do_not_pile_up():
    gates = Gates()
    for number in range(3000):
        for _ in range(5):
            gates.failed(f"chat/{number}", f"chat/{number} of red", "red", number * 10.0)
    assert len(gates._gates) <= 1024
    assert len(gates.ways) <= 1024


def test_a_latch_holds_calls_that_cost_as_much_and_no_others():
    refusals = Refusals()
    refusals.no_credits("", 0, 0.0)
    assert refusals.latched_s("", 5, 0.0) is None
    assert refusals.no_credits("", 100, 0.0)
    assert not refusals.no_credits("", 200, 1.0)
    assert refusals.latched_s("", 100, 2.0) == 14.0
    assert refusals.latched_s("", 99, 2.0) is None
    assert refusals.latched_s("", 0, 2.0) is None
    assert refusals.latched_s("other", 100, 2.0) is None
    assert refusals.latched_s("", 100, 16.0) is None
    refusals.no_credits("", 100, 20.0)
    refusals.has_credits("")
    assert refusals.latched_s("", 100, 20.0) is None


def test_refusals_are_kept_for_seconds_and_in_bounds():
    refusals, said = Refusals(), Said(404, (), "application/json", b"{}")
    for number in range(1000):
        refusals.remember(number, said, 0.0)
    assert len(refusals) == 256
    assert refusals.recall(999, 9.9) is said
    assert refusals.recall(0, 1.0) is None
    assert refusals.recall(999, 10.0) is None
    refusals.remember("new", said, 20.0)
    assert len(refusals) == 1
