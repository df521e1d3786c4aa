import time

import pytest

from proxy.emulator.clock import HandClock, RealClock
from proxy.emulator.limits import KEY_MINUTE, Counters
from proxy.emulator.options import Options


def test_time_can_pass_faster_than_it_does():
    clock = RealClock(60)
    before_s, now_s, after_s = time.monotonic(), clock.now_s(), time.monotonic()
    assert before_s * 60 <= now_s <= after_s * 60


def test_time_never_stands_still_or_runs_backwards():
    for scale in (0, -1):
        with pytest.raises(ValueError, match="above 0"):
            RealClock(scale)


def test_waits_are_told_in_real_seconds():
    clock = HandClock(1000)
    clock.scale = 60
    counters = Counters(Options(), clock)
    for _ in range(30):
        assert counters.take([(KEY_MINUTE, "a")]) is None
    clock.forward(30)
    full = counters.take([(KEY_MINUTE, "a")])
    assert full is not None
    assert (full.limit, full.wait_s) == (KEY_MINUTE, 0.5)
