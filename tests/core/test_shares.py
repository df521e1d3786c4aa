"""Shares: a team has had what its calls were sent for, and one that has nothing to send saves nothing up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.shares import Share

COSTS = {"red": 1.0, "blue": 0.25, "green": 3.0}
TEAMS = sorted(COSTS)


@given(st.lists(st.one_of(st.none(), st.integers(0, 10))))
def test_the_claims_of_teams_that_always_wait_are_what_their_calls_were_sent_for(steps):
    """None: the next call starts. A number: one of those that started is not sent after all."""
    share, open_ = Share(), []
    for step in steps:
        if step is None:
            team = min(TEAMS, key=share.claim)
            share.take(team, COSTS[team])
            open_.append(team)
        elif open_:
            team = open_.pop(step % len(open_))
            share.give_back(team, COSTS[team])
        for team in TEAMS:
            assert share.claim(team) == pytest.approx(open_.count(team) * COSTS[team])


@given(st.integers(0, 100), st.integers(1, 100))
def test_a_team_that_sent_nothing_for_long_has_no_more_by_one_call_that_was_not_sent_than_that_call(before, meanwhile):
    share = Share()
    for _ in range(before):
        share.take("blue", 1.0)
    share.take("red", 1.0)
    for _ in range(meanwhile):
        share.take("blue", 1.0)
    began = share.start_tag
    share.give_back("red", 1.0)
    assert share.claim("red") >= began - 1.0
    assert share.start_tag >= began - 1.0
