"""Instants as people write them: a day, a time, or a span from now, which comes as seconds since the epoch. Pure."""

from datetime import UTC, date, datetime, time, tzinfo
from typing import Final

from proxy.units import seconds_of

LAST_S: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The last day that can be written."""


def ago(text: str, now_s: float, zone: tzinfo = UTC) -> float:
    """`7d` is seven days ago; `2026-11-01` its midnight, `2026-11-01T12:00:00Z` itself. Raises ValueError."""
    written = _written(text, zone)
    return _near(text, now_s - seconds_of(text) if written is None else written)


def ahead(text: str, now_s: float, zone: tzinfo = UTC) -> float:
    """`90d` is in ninety days. Raises ValueError for what has passed, too."""
    written = _written(text, zone)
    found = now_s + seconds_of(text) if written is None else written
    if found < now_s:
        raise ValueError(f"{text!r} has passed already")
    return _near(text, found)


def _near(text: str, at_s: float) -> float:
    if not 0 <= at_s <= LAST_S:
        raise ValueError(f"{text!r} is further away than any calendar goes")
    return at_s


def _written(text: str, zone: tzinfo) -> float | None:
    """The instant of a day or a time; None for what is neither."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        pass
    else:
        return datetime.combine(day, time(), zone).timestamp()
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).timestamp()
