"""Ways: whatever one team does, nobody else's way is shut by it alone."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.pauses import Gates
from proxy.core.ways import FAILURES, WITHIN_S, Ways

FAILS = st.sampled_from([True, True, True, False])
LATER_S = st.sampled_from([0.0, 0.0, 0.1, 0.1, 1.0, 6.0, 11.0])
EVENTS = st.lists(st.tuples(st.sampled_from(["red", "blue", "green"]), FAILS, LATER_S), min_size=8, max_size=40)
"""Mostly failures close together, as a way is shut by several within seconds."""


@given(EVENTS)
def test_a_way_is_shut_for_all_only_where_several_teams_fail_and_nobody_is_well(events):
    ways, now_s, past = Ways(), 0.0, []
    for team, fails, later_s in events:
        now_s += later_s
        past.append((now_s, team, fails))
        if not fails:
            ways.answered("w", team, now_s)
            continue
        alone, everybody = ways.failed("w", team, now_s)
        recent = [entry for entry in past if now_s - entry[0] <= WITHIN_S]
        failures = {one: sum(fails for _, who, fails in recent if who == one) for one in ("red", "blue", "green")}
        last = {who: fails for _, who, fails in recent}
        well = [who for who, fails in last.items() if not fails and failures[who] < FAILURES]
        assert alone == (failures[team] >= FAILURES)
        if everybody:
            assert sum(failures.values()) >= FAILURES
            assert sum(1 for count in failures.values() if count) >= 2
            assert not well
        elif sum(failures.values()) >= FAILURES and not well:
            assert sum(1 for count in failures.values() if count) == 1


@given(EVENTS)
def test_whatever_one_team_does_the_others_ways_stay_open(events):
    gates, now_s = Gates(), 0.0
    for _, fails, later_s in events:
        now_s += later_s
        if gates.opens_s(("w", "w of red"), now_s) > now_s:
            continue
        looks = gates.pass_through(("w", "w of red"), "red")
        if fails:
            gates.failed("w", "w of red", "red", now_s, looks)
        else:
            gates.answered(("w", "w of red"), "w", "red", now_s)
        gates.came_back(looks)
        assert gates.opens_s(("w", "w of blue"), now_s) == now_s
