"""What each ending costs, as tables and as a property."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.charges import CALL_COUNTS, CHARGE, Basis, Ending, Figures, Rule, charge
from tests.stories import play, rows


def test_every_ending_has_a_charge_and_a_count():
    assert set(CHARGE) == set(Ending)
    assert set(CALL_COUNTS) == set(Ending)
    for story in (CHARGES, CALLS):
        assert {given["ending"] for _, given, _ in rows(story)} == {ending.value for ending in Ending}


# fmt: off
CHARGES = """
    # ending           gateway reported metered | credits basis    uncertain
    answered                 7        5       6 | 7       gateway  False
    answered                 -        5       6 | 5       usage    False
    answered                 -        -       6 | 6       metered  False
    answered                 -        -       - | 100     hold     True
    answered                 -        0       - | 0       usage    False
    caller_left              -        -       6 | 6       metered  True
    caller_left              -        -     106 | 100     metered  True
    answered                 -      106     106 | 106     usage    False
    caller_left              -        -       - | 100     hold     True
    upstream_broke           -        -       - | 100     hold     True
    timed_out                -        -       6 | 6       metered  True
    proxy_stopped            -        -       - | 100     hold     True
    never_sent               7        5       6 | 0       nothing  False
    refused                  -        -       - | 0       nothing  False
    hit                      -        5       - | 0       nothing  False
    gateway_refused          7        5       6 | 0       nothing  False
    gateway_failed           7        5       6 | 0       nothing  True
"""
CALLS = """
    # ending           | calls uncertain
    answered           | 1     False
    caller_left        | 1     True
    upstream_broke     | 1     True
    timed_out          | 1     True
    never_sent         | 0     False
    gateway_refused    | 0     False
    gateway_failed     | 0     True
    hit                | 0     False
    refused            | 0     False
    proxy_stopped      | 1     True
"""
# fmt: on


def test_what_each_ending_costs():
    def step(row):
        known = Figures(*(None if row[name] == "-" else int(row[name]) for name in ("gateway", "reported", "metered")))
        cost = charge(Ending(row["ending"]), known, 100)
        return {"credits": cost.credits, "basis": cost.basis.value, "uncertain": cost.uncertain}

    play(CHARGES, step)


def test_what_each_ending_of_a_tool_call_counts():
    def step(row):
        cost = charge(Ending(row["ending"]), Figures(reported=3), 3, is_call=True)
        return {"calls": cost.calls, "uncertain": cost.uncertain}

    play(CALLS, step)


@given(st.sampled_from(Ending), st.integers(1, 10**15))
def test_a_call_that_may_have_been_charged_is_never_free_because_usage_is_missing(ending, held):
    cost = charge(ending, Figures(), held)
    if CHARGE[ending] in (Rule.USAGE, Rule.METERED_ELSE_HELD):
        assert (cost.credits, cost.basis) == (held, Basis.HOLD)
