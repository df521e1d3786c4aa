from collections import Counter
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.facts import Facts
from proxy.core.limits import Budget, Each
from proxy.core.names import folded
from proxy.core.spending import By, Spent, Total, spending
from proxy.core.windows import Calendar, Per

SEOUL = ZoneInfo("Asia/Seoul")


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def total(when, team, key, amount, model="m", calls=0, **more):
    return Total(at(when), Facts(team, key, "chat", model, **more), amount, calls)


TOTALS = [
    total("2026-11-01T10:00", "red", "ci", 5),
    total("2026-11-01T15:15", "red", "ci", 7),
    total("2026-11-01T15:15", "red", "me", 100),
    total("2026-11-02T00:00", "blue", "ci", 30),
]


def test_sums_are_kept_apart_by_what_was_asked():
    assert spending(TOTALS, [By.TEAM]) == [Spent(("red",), 112, 0), Spent(("blue",), 30, 0)]
    assert [row.words for row in spending(TOTALS, [By.TEAM, By.KEY])] == [
        ("red", "me"),
        ("blue", "ci"),
        ("red", "ci"),
    ]
    assert spending(TOTALS, []) == [Spent((), 142, 0)]
    assert spending([], [By.TEAM]) == []


def test_days_are_those_of_the_zone_and_come_in_order():
    assert [(row.words, row.credits) for row in spending(TOTALS, [By.DAY])] == [
        (("2026-11-01",), 112),
        (("2026-11-02",), 30),
    ]
    assert [(row.words, row.credits) for row in spending(TOTALS, [By.DAY], SEOUL)] == [
        (("2026-11-01",), 5),
        (("2026-11-02",), 137),
    ]


SPELT = [
    total("2026-11-01T10:00", "red", "ci", 5, "gpt-4o"),
    total("2026-11-01T10:00", "red", "me", 6, " GPT-4o\u200b"),
    total("2026-11-02T10:00", "red", "ci", 2, "gpt-4o"),
    total("2026-11-02T10:00", "red", "ci", 1, "gpt-4o-mini"),
]


def test_a_name_is_one_row_however_calls_spell_it_as_most_was_spent():
    assert spending(SPELT, [By.MODEL]) == [Spent(("gpt-4o",), 13, 0), Spent(("gpt-4o-mini",), 1, 0)]
    assert spending(SPELT[:2], [By.MODEL]) == [Spent((" GPT-4o\u200b",), 11, 0)]
    tools = [
        total("2026-11-01T10:00", "red", "ci", 0, None, 1, suite="Docs", tool="Search"),
        total("2026-11-01T10:00", "red", "ci", 0, None, 2, suite="docs", tool="ｓｅａｒｃｈ"),
        total("2026-11-01T10:00", "red", "ci", 0, None, 2, suite="calc", tool="search"),
    ]
    assert spending(tools, [By.TOOL]) == [Spent(("search",), 0, 5)]
    assert spending(tools, [By.SUITE, By.TOOL]) == [Spent(("calc", "search"), 0, 2), Spent(("docs", "search"), 0, 3)]


def test_a_name_is_spelt_alike_on_all_days_and_teams_and_keys_are_as_they_are_spelt():
    rows = [(row.words, row.credits) for row in spending(SPELT, [By.MODEL, By.DAY, By.KEY])]
    assert rows == [
        (("gpt-4o", "2026-11-01", "me"), 6),
        (("gpt-4o", "2026-11-01", "ci"), 5),
        (("gpt-4o", "2026-11-02", "ci"), 2),
        (("gpt-4o-mini", "2026-11-02", "ci"), 1),
    ]
    spelt = [total("2026-11-01T10:00", team, key, 1) for team, key in (("red", "ci"), ("Red", "CI"))]
    assert len(spending(spelt, [By.TEAM])) == len(spending(spelt, [By.KEY])) == 2


NAMES = st.sampled_from(["m", "M", " m", "ｍ", "m\u200b", "n", "N", ""])


@given(st.lists(st.tuples(NAMES, st.integers(-3, 3), st.integers(0, 2))))
def test_rows_are_those_of_an_account_for_each_model_and_lose_nothing(made):
    totals = [Total(0.0, Facts("red", "ci", "chat", name), amount, calls) for name, amount, calls in made]
    budget = Budget("b", 1, Calendar(Per.TOTAL), each=Each.MODEL)
    wanted = Counter()
    for one in totals:
        wanted[budget.group(one.facts)[-1]] += one.credits
    rows = spending(totals, [By.MODEL])
    assert {folded(row.words[0]): row.credits for row in rows} == wanted
    assert len(rows) == len(wanted)
    assert {row.words[0] for row in rows} <= {name for name, _, _ in made}
