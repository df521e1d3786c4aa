from math import inf

import pytest

from proxy.core.pauses import BREAK_UNKNOWN_S, PAUSE_MAX_S, Gates, pause_s
from proxy.core.refusals import Refusals, Said


@pytest.mark.parametrize(("told", "paused"), [(None, 5.0), (0.0, 1.0), (7.0, 7.0), (90.0, 60.0), (3e8, 60.0)])
def test_a_pause_is_what_was_said_within_bounds(told, paused):
    assert pause_s(told) == paused


def test_five_failures_in_ten_seconds_shut_a_gate_and_ever_longer_while_it_fails():
    gates = Gates()
    for at_s in (0.0, 3.0, 6.0, 9.0, 12.0):
        gates.failed("g", at_s)
    assert gates.opens_s(("g",), 12.0) == 12.0, "that was not in ten seconds"
    gates.failed("g", 12.5)
    assert gates.opens_s(("g",), 12.5) == 17.5
    gates.pass_through(("g",))
    assert gates.opens_s(("g",), 17.5) == inf, "one is out to look"
    gates.failed("g", 18.0)
    assert gates.opens_s(("g",), 18.0) == 28.0
    gates.pass_through(("g",))
    gates.answered(("g",), 29.0)
    assert gates.opens_s(("g",), 29.0) == 29.0
    assert not gates.all_shut(29.0)


def test_an_answer_between_failures_does_not_forget_them():
    gates = Gates()
    for at_s in range(4):
        gates.failed("g", float(at_s))
        gates.answered(("g",), at_s + 0.5)
    gates.failed("g", 4.0)
    assert gates.opens_s(("g",), 4.0) > 4.0


def test_an_answer_to_a_call_from_before_a_break_opens_nothing():
    gates = Gates()
    gates.break_("g", 60.0)
    gates.answered(("g",), 30.0)
    assert gates.opens_s(("g",), 30.0) == 60.0


def test_a_pause_is_never_shortened_and_opens_for_all():
    gates = Gates()
    gates.pause("m", 10.0)
    gates.pause("m", 5.0)
    assert gates.opens_s(("m", "other"), 6.0) == 10.0
    assert gates.shut(("other", "m"), 6.0) == "m"
    gates.pass_through(("m",))
    assert gates.opens_s(("m",), 10.0) == 10.0
    assert BREAK_UNKNOWN_S <= PAUSE_MAX_S


def test_names_that_callers_invent_do_not_pile_up():
    gates = Gates()
    for number in range(5000):
        gates.failed(f"chat/{number}", number * 1.0)
    assert len(gates._gates) <= 1024


def test_a_latch_holds_calls_that_cost_as_much_and_no_others():
    refusals = Refusals()
    refusals.no_credits("", 0, 0.0)
    assert refusals.latched_s("", 5, 0.0) is None
    refusals.no_credits("", 100, 0.0)
    refusals.no_credits("", 200, 1.0)
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
