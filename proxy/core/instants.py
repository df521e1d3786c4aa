"""Instants as people write them: a day, a time, or a span from now, which comes as seconds since the epoch. Pure."""

from datetime import UTC, date, datetime, time, tzinfo

from proxy.units import seconds_of


def ago(text: str, now_s: float, zone: tzinfo = UTC) -> float:
    """`7d` is seven days ago; `2026-11-01` its midnight, `2026-11-01T12:00:00Z` itself. Raises ValueError."""
    written = _written(text, zone)
    return now_s - seconds_of(text) if written is None else written


def ahead(text: str, now_s: float, zone: tzinfo = UTC) -> float:
    """`90d` is in ninety days. Raises ValueError for what has passed, too."""
    written = _written(text, zone)
    found = now_s + seconds_of(text) if written is None else written
    if found < now_s:
        raise ValueError(f"{text!r} has passed already")
    return found


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
