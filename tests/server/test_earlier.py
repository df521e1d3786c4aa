"""Turns of an earlier process: what their rows leave open only lengthens waits, whatever the clocks did meanwhile."""

import time

import pytest

from proxy.core.facts import Facts
from proxy.core.limits import Counts, Rate
from proxy.core.riders import KeptTurn, Turn, TurnWritten
from proxy.core.slots import GUARD_MAX_S, Slots
from proxy.server.boot import Boot, this_boot
from proxy.server.earlier import Earlier

NOW_S, WALL_S, SINCE_S = 500.0, 1_000_000.0, 20_000.0
MINUTE, DAY = 60.0, 86_400.0


def left_s(*, boot, window_s, ago_s=None, wall_ago_s=None, uptime_s=SINCE_S):
    """Seconds until the place is free. ago_s: by the machine's clock, when it was counted; None: never seen to end."""
    row = Turn("t", Facts("red", "k", "chat"), True, True, 0, WALL_S, boot, SINCE_S)
    written = None if ago_s is None else TurnWritten("t", WALL_S - (wall_ago_s or ago_s), SINCE_S - ago_s)
    slots = Slots(Rate("r", Counts.REQUESTS, 1, window_s), (), 1)
    ends_s = Earlier(KeptTurn(row, written), Boot("this"), NOW_S, WALL_S, uptime_s, NOW_S).ends_s(slots)
    guarded = ago_s is None or boot != "this"
    return ends_s - NOW_S - (slots.span_s - window_s) - (slots.guard_s if guarded else 0.0)


def test_a_request_that_ended_is_as_old_as_it_is():
    assert left_s(boot="this", window_s=MINUTE, ago_s=45.0) == pytest.approx(15.0)


def test_what_may_be_counted_in_a_moment_is_waited_out_but_no_row_is_believed_beyond_that():
    assert left_s(boot="this", window_s=MINUTE, ago_s=-0.75) == pytest.approx(MINUTE + 0.75)
    assert left_s(boot="this", window_s=MINUTE, ago_s=-9999.0) == pytest.approx(MINUTE + GUARD_MAX_S)


@pytest.mark.parametrize("wall_ago_s", [-3600.0, 7200.0])
def test_a_clock_that_was_set_changes_nothing(wall_ago_s):
    assert left_s(boot="this", window_s=MINUTE, ago_s=45.0, wall_ago_s=wall_ago_s) == pytest.approx(15.0)


def test_a_request_that_nobody_saw_written_may_have_been_just_now():
    assert left_s(boot="this", window_s=MINUTE) == pytest.approx(MINUTE)
    assert left_s(boot="other", window_s=DAY) == pytest.approx(DAY)


def test_after_a_start_of_the_machine_it_is_at_least_as_old_as_that():
    early = {"boot": "other", "ago_s": 1.0, "uptime_s": 40.0}
    assert left_s(window_s=MINUTE, wall_ago_s=9999.0, **early) == pytest.approx(MINUTE - 40.0)
    # Nobody waits out a day because a machine was started anew: there the clock on the wall is believed.
    assert left_s(window_s=DAY, wall_ago_s=DAY / 2, **early) == pytest.approx(DAY / 2)


def test_a_machine_that_does_not_tell_its_starts_is_never_the_same():
    slots = Slots(Rate("r", Counts.REQUESTS, 1, MINUTE), (), 1)
    row = Turn("t", Facts("red", "k", "chat"), True, True, 0, WALL_S, "", 0.0)
    kept = KeptTurn(row, TurnWritten("t", WALL_S, 0.0))
    ends_s = Earlier(kept, Boot(""), NOW_S, WALL_S, SINCE_S, NOW_S).ends_s(slots)
    assert ends_s <= NOW_S + slots.span_s + slots.guard_s
    assert this_boot() == this_boot()
    assert 0 < Boot.since_s() <= time.clock_gettime(time.CLOCK_BOOTTIME) + 1
