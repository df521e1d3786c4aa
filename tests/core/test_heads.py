"""Heads: the order of teams is that of their claims, also where one of them or the clock has gone back."""

from math import inf

from proxy.core.facts import Facts
from proxy.core.heads import Crowd
from proxy.core.lanes import Lane
from proxy.core.limits import Draw
from proxy.core.shares import Share
from proxy.core.turns import Waiter


def test_a_team_that_was_due_still_comes_when_the_clock_has_gone_back_behind_its_claim():
    share = Share(start_tag=2.0, finish_tags={"blue": 1.5})
    lane = Lane("lane", "blue")
    lane.waiters[7] = Waiter("w", Draw(Facts("blue", "k", "chat"), "m"), inf, seq=7)
    crowd = Crowd(share)
    crowd.push(lane)
    assert crowd.top() == (0.0, 7)
    share.give_back("red", 1.0)
    assert crowd.top() == (0.5, 7)
    assert crowd.pop() is lane
