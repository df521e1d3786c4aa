from proxy.core.account import Standing
from proxy.core.facts import Facts
from proxy.core.limits import Budget, Each, Match
from proxy.core.runway import Trouble, burned, runway
from proxy.core.spending import Total
from proxy.core.windows import Calendar, Per, Sliding

DAY = Calendar(Per.DAY)
HOUR_S = 3600.0


def standing(settled, *, window=DAY, ends_s=24 * HOUR_S, reached=()):
    return Standing(Budget("b", 100, window), (), 100, settled, 0, ends_s, reached)


def test_what_lasts_longer_than_its_window_is_fine():
    found = runway(standing(50), 24, 24 * HOUR_S, 0.0)
    assert (found.per_hour, found.lasts_s, found.trouble) == (1, 50 * HOUR_S, Trouble.FINE)


def test_what_ends_before_its_window_runs_out():
    assert runway(standing(50), 240, 24 * HOUR_S, 0.0).trouble is Trouble.RUNS_OUT


def test_nothing_left_is_the_worst_whatever_the_pace():
    assert runway(standing(100), 0, 24 * HOUR_S, 0.0).trouble is Trouble.EXHAUSTED
    assert Trouble.EXHAUSTED < Trouble.RUNS_OUT < Trouble.WARNED < Trouble.FINE


def test_a_reached_share_is_told_though_it_lasts():
    assert runway(standing(80, reached=(0.8,)), 0, HOUR_S, 0.0).trouble is Trouble.WARNED


def test_a_sliding_window_runs_out_only_if_it_fills_at_this_pace():
    """What slides out comes back, so the first instant at which something does says nothing."""
    window = Sliding(10 * HOUR_S)
    calm = runway(standing(80, window=window, ends_s=HOUR_S), 9 * 24, 24 * HOUR_S, 0.0)
    busy = runway(standing(10, window=window, ends_s=HOUR_S), 11 * 24, 24 * HOUR_S, 0.0)
    assert (calm.trouble, busy.trouble) == (Trouble.FINE, Trouble.RUNS_OUT)


def test_a_total_runs_out_when_it_lasts_less_than_a_day():
    never = {"window": Calendar(Per.TOTAL), "ends_s": None}
    assert runway(standing(50, **never), 24 * 3, 24 * HOUR_S, 0.0).trouble is Trouble.RUNS_OUT
    assert runway(standing(50, **never), 24, 24 * HOUR_S, 0.0).trouble is Trouble.FINE


def test_a_minute_of_watching_does_not_make_a_day():
    assert runway(standing(10), 5, 60.0, 0.0).per_hour == 5


def test_each_account_has_its_own_burn():
    budgets = (
        Budget("all", 100, DAY),
        Budget("red", 100, DAY, Match(team="red")),
        Budget("key", 9, DAY, each=Each.KEY),
    )
    totals = [Total(0.0, Facts("red", "a", "chat"), 5, 0), Total(900.0, Facts("blue", "b", "chat"), 7, 0)]
    assert burned(budgets, totals) == {
        ("all", ()): 12,
        ("red", ()): 5,
        ("key", ("red", "a")): 5,
        ("key", ("blue", "b")): 7,
    }
