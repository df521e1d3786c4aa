from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from proxy.core.instants import ago, ahead

SEOUL = ZoneInfo("Asia/Seoul")


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOW_S = at("2026-11-10T12:00")


def test_an_instant_is_a_span_from_now_a_day_or_itself():
    assert ago("7d", NOW_S) == at("2026-11-03T12:00")
    assert ago("2026-11-02", NOW_S, SEOUL) == at("2026-11-01T15:00")
    assert ago("2026-11-02T10:00:00Z", NOW_S) == at("2026-11-02T10:00")
    assert ahead("90d", NOW_S) == NOW_S + 90 * 86_400
    assert ahead("2026-12-01", NOW_S) == at("2026-12-01T00:00")


def test_what_is_no_instant_or_has_passed_is_refused():
    with pytest.raises(ValueError, match="not a duration"):
        ago("yesterday", NOW_S)
    with pytest.raises(ValueError, match="has passed"):
        ahead("2026-11-09", NOW_S)


@pytest.mark.parametrize("read", [ago, ahead])
def test_a_span_beyond_any_calendar_is_refused(read):
    with pytest.raises(ValueError, match="further away"):
        read("99999999999d", NOW_S)
