from dataclasses import replace

import pytest

from proxy.core.facts import Facts
from proxy.core.limits import Budget, Counts, Draw, Match, Rate, RateMatch
from proxy.core.policy import Policy, Team
from proxy.core.simulation import Arrival, Simulation
from proxy.core.windows import Calendar, Per

MEMBER = Rate("member", Counts.REQUESTS, 10, 10.0)


def policy(*rates, wait_max_s=1000.0, budgets=(), **weights):
    teams = {name: Team(name, weight=weights.get(name, 1.0), wait_max_s=wait_max_s) for name in ("red", "blue")}
    return Policy(teams=teams, rates=rates, budgets=budgets)


def arrivals(team, count, every_s=0.0, **more):
    draw = Draw(Facts(team, "k", "chat"), "m", spends=more.get("held", 0) > 0)
    return [Arrival(number * every_s, draw, **more) for number in range(count)]


def both(*traffic):
    return sorted((arrival for calls in traffic for arrival in calls), key=lambda arrival: arrival.at_s)


def test_calls_wait_as_they_would_and_the_allowance_is_used():
    outcome = Simulation(policy(MEMBER), 0.0).run(arrivals("red", 50))
    red = outcome.teams["red"]
    assert (red.calls, len(red.waits_s), red.refused) == (50, 50, {})
    assert red.wait_s(0.0) == 0.0
    assert red.wait_s(1.0) == pytest.approx(44.0, abs=0.1), "a window, its guard of a second, four times"
    assert outcome.used["member"] == pytest.approx(1.0, abs=0.15)


def test_teams_share_by_weight():
    traffic = both(arrivals("red", 300), arrivals("blue", 300))
    outcome = Simulation(policy(MEMBER, red=3.0), 0.0).run(traffic)
    early = [one.draw.facts.team for at_s, one in outcome.grants if 20 < at_s < 200]
    assert early.count("red") / len(early) == pytest.approx(0.75, abs=0.02)


def test_those_who_would_wait_too_long_are_refused():
    outcome = Simulation(policy(MEMBER, wait_max_s=15.0), 0.0).run(arrivals("red", 50))
    assert outcome.teams["red"].refused == {"turn_too_far": 30}


def test_money_that_is_busy_is_waited_for_and_money_that_is_gone_is_not():
    budget = Budget("b", 100, Calendar(Per.TOTAL))
    rules = policy(Rate("wide", Counts.REQUESTS, 1000, 10.0), budgets=(budget,))
    outcome = Simulation(rules, 0.0).run(arrivals("red", 12, held=50, charged=10, takes_s=1.0))
    red = outcome.teams["red"]
    assert red.charged <= 100
    assert len(red.waits_s) == 6, "while a hold of fifty fits beside what was charged"
    assert red.refused == {"budget_exhausted": 6}


def test_calls_at_once_are_counted_while_they_run():
    calm = Rate("calm", Counts.IN_FLIGHT, 2, 0.0, RateMatch(Match(team="red")))
    outcome = Simulation(policy(calm), 0.0).run(arrivals("red", 6, takes_s=3.0))
    assert sorted(outcome.teams["red"].waits_s) == [0.0, 0.0, 3.0, 3.0, 6.0, 6.0]


def test_the_same_traffic_gives_the_same_grants():
    traffic = both(arrivals("red", 100, 0.3), arrivals("blue", 100, 0.2))
    first, second = (Simulation(policy(MEMBER), 0.0).run(traffic) for _ in range(2))
    assert first.grants == second.grants


def test_another_policy_is_another_outcome():
    traffic = arrivals("red", 30)
    narrow = policy(replace(MEMBER, amount=1))
    assert len(Simulation(narrow, 0.0).run(traffic).grants) == 30
    assert Simulation(narrow, 0.0).run(traffic).teams["red"].wait_s(1.0) > 300


def test_a_place_comes_back_a_window_after_the_answer_began_and_tokens_are_corrected_by_what_was_used():
    one = Rate("one", Counts.REQUESTS, 1, 10.0)
    outcome = Simulation(policy(one), 0.0).run(arrivals("red", 2, takes_s=5.0, head_s=0.5))
    assert outcome.grants[1][0] == pytest.approx(10.5, abs=0.1)
    few = Rate("few", Counts.TOKENS, 100, 10.0)
    outcome = Simulation(policy(few), 0.0).run(arrivals("red", 2, every_s=2.0, tokens=60, used=10))
    assert outcome.grants[1][0] == 2.0


def test_a_caller_waits_no_longer_than_it_said():
    outcome = Simulation(policy(MEMBER), 0.0).run(arrivals("red", 11, wait_max_s=5.0))
    assert outcome.teams["red"].refused == {"turn_too_far": 1}
