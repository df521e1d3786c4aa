"""What callers are told of their rates, in whatever order these stand."""

from itertools import permutations

import pytest

from proxy.core.facts import Facts
from proxy.core.limits import Counts, Draw, Excess, Rate
from proxy.core.slots import Slots
from proxy.core.turns import Waiter
from proxy.server.waits import tell_rates


def taken(name, counts, amount, used, window_s=60.0, **more):
    slots = Slots(Rate(name, counts, amount, window_s, **more), (), amount)
    if used:
        slots.ends(slots.take(used), 30.0)
    return slots


CALLS = taken("calls", Counts.REQUESTS, 10, 4)
FEW = taken("few", Counts.REQUESTS, 10, 8)
TEXT = taken("text", Counts.TOKENS, 1000, 100)
MUCH = taken("much", Counts.TOKENS, 1000, 900)
UNUSED = taken("unused", Counts.TOKENS, 1000, 0)
AT_ONCE = taken("at-once", Counts.IN_FLIGHT, 2, 2, window_s=0.0)
SHADOW = taken("shadow", Counts.REQUESTS, 2, 2, shadow=True)
WARNS = taken("warns", Counts.REQUESTS, 2, 2, excess=Excess.WARN)


def lines(slots, *, openai=True, now_s=10.0):
    said = {"server": "sluicegate"}
    waiter = Waiter("a", Draw(Facts("red", "red", "chat")), 0.0, wants=tuple((one, 1) for one in slots))
    tell_rates(said, waiter, openai=openai, now_s=now_s)
    return said


@pytest.mark.parametrize(
    ("slots", "tightest", "requests", "tokens"),
    [
        ([CALLS], '"calls";r=6;t=20', "6", None),
        ([CALLS, FEW], '"few";r=2;t=20', "2", None),
        ([CALLS, FEW, TEXT], '"few";r=2;t=20', "2", "900"),
        ([CALLS, FEW, MUCH, TEXT], '"much";r=100;t=20', "2", "100"),
        ([UNUSED], '"unused";r=1000;t=60', None, "1000"),
        ([CALLS, AT_ONCE, SHADOW, WARNS, UNUSED], '"calls";r=6;t=20', "6", "1000"),
    ],
)
def test_the_tightest_rate_is_told_and_the_tightest_of_those_that_count_otherwise(slots, tightest, requests, tokens):
    for order in permutations(slots):
        said = lines(order)
        assert said["ratelimit"] == tightest
        assert said.get("x-ratelimit-remaining-requests") == requests
        assert said.get("x-ratelimit-remaining-tokens") == tokens
        told = [one.told for one in order if one not in (AT_ONCE, SHADOW, WARNS)]
        assert said["ratelimit-policy"] == ", ".join(told)


def test_of_two_that_are_as_tight_the_first_is_told():
    assert lines([CALLS, taken("others", Counts.TOKENS, 100, 40)])["ratelimit"].startswith('"calls"')
    assert lines([taken("others", Counts.TOKENS, 100, 40), CALLS])["ratelimit"].startswith('"others"')


def test_only_those_who_read_them_get_the_lines_of_one_vendor():
    assert lines([CALLS], openai=False).keys() == {"server", "ratelimit", "ratelimit-policy"}
    assert lines([CALLS, UNUSED])["x-ratelimit-reset-requests"] == "20.000s"
    assert lines([CALLS, UNUSED])["x-ratelimit-reset-tokens"] == "60.000s"


def test_without_a_rate_that_acts_nothing_is_told():
    assert lines([AT_ONCE, SHADOW, WARNS]) == lines([]) == {"server": "sluicegate"}
