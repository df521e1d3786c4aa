from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from proxy.core.facts import Facts
from proxy.core.spending import By, Spent, Total, spending

SEOUL = ZoneInfo("Asia/Seoul")


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def total(when, team, key, amount, model="m", **more):
    return Total(at(when), Facts(team, key, "chat", model, **more), amount, 0)


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
