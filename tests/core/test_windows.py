"""Windows begin when the clock on the wall says so, and none is ever missing or twice."""

from datetime import UTC, datetime
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.windows import ALWAYS, Calendar, Per

ZONES = [UTC, *(ZoneInfo(name) for name in ("Asia/Seoul", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe",
                                            "Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Apia"))]  # fmt: skip


def at(text, zone=UTC):
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


# fmt: off
ROWS = [
    # per         zone                            instant (in the zone)   begins                  ends
    (Per.HOUR,    UTC,                            "2026-02-28T23:59:59",  "2026-02-28T23:00:00",  "2026-03-01T00:00:00"),
    (Per.DAY,     UTC,                            "2026-12-31T23:59:59",  "2026-12-31T00:00:00",  "2027-01-01T00:00:00"),
    (Per.DAY,     ZoneInfo("Asia/Seoul"),         "2026-06-01T00:00:00",  "2026-06-01T00:00:00",  "2026-06-02T00:00:00"),
    (Per.DAY,     ZoneInfo("Europe/Berlin"),      "2026-03-29T12:00:00",  "2026-03-29T00:00:00",  "2026-03-30T00:00:00"),
    (Per.WEEK,    UTC,                            "2026-03-01T12:00:00",  "2026-02-23T00:00:00",  "2026-03-02T00:00:00"),
    (Per.MONTH,   ZoneInfo("Asia/Seoul"),         "2024-02-29T23:59:59",  "2024-02-01T00:00:00",  "2024-03-01T00:00:00"),
    (Per.MONTH,   UTC,                            "2026-12-15T00:00:00",  "2026-12-01T00:00:00",  "2027-01-01T00:00:00"),
    (Per.HOUR,    ZoneInfo("Asia/Kathmandu"),     "2026-06-01T10:30:00",  "2026-06-01T10:00:00",  "2026-06-01T11:00:00"),
]
# fmt: on


@pytest.mark.parametrize(("per", "zone", "instant", "begins", "ends"), ROWS)
def test_when_a_window_begins_and_ends(per, zone, instant, begins, ends):
    window = Calendar(per, zone).window(at(instant, zone))
    assert window == (at(begins, zone), at(ends, zone))


def test_a_total_has_no_end():
    assert Calendar(Per.TOTAL).window(0.0) is ALWAYS
    assert (-inf, inf) == ALWAYS


INSTANTS = st.floats(at("2005-01-01"), at("2045-01-01"))


@given(INSTANTS, st.sampled_from([Per.HOUR, Per.DAY, Per.WEEK, Per.MONTH]), st.sampled_from(ZONES))
def test_every_instant_is_in_its_window_and_windows_join(instant, per, zone):
    calendar = Calendar(per, zone)
    window = calendar.window(instant)
    assert window.start_s <= instant < window.end_s
    if per is not Per.HOUR:
        assert calendar.window(window.end_s).start_s == window.end_s
        assert calendar.window(window.start_s) == window


@given(INSTANTS, st.sampled_from([Per.HOUR, Per.DAY, Per.WEEK, Per.MONTH]), st.sampled_from(ZONES))
def test_windows_are_aligned_to_quarters_of_an_hour(instant, per, zone):
    """Totals kept per quarter of an hour are enough to fill any window."""
    assert Calendar(per, zone).window(instant).start_s % 900 == 0
