"""Windows of time that limits count in: calendar ones and sliding ones. Pure: instants come as arguments.

All instants are wall-clock seconds since the epoch. A calendar window is half open, [start, end).
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import Enum
from math import floor, inf
from typing import Final, NamedTuple

HOUR_S: Final = 3600


class Per(Enum):
    """Length of a calendar window."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TOTAL = "total"


class Window(NamedTuple):
    """From `start_s` up to but not including `end_s`; a total never ends."""

    start_s: float
    end_s: float


ALWAYS: Final = Window(-inf, inf)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Windows that begin when the clock on the wall of a zone says so; weeks begin on Monday."""

    per: Per
    zone: tzinfo = UTC

    def window(self, at_s: float) -> Window:
        """The window an instant falls into."""
        if self.per is Per.TOTAL:
            return ALWAYS
        local = datetime.fromtimestamp(at_s, self.zone)
        if self.per is Per.HOUR:
            offset_s = (local.utcoffset() or timedelta()).total_seconds()
            start_s = floor((at_s + offset_s) / HOUR_S) * HOUR_S - offset_s
            return Window(start_s, start_s + HOUR_S)
        first, following = _days(self.per, local.date())
        return Window(self._midnight(first), self._midnight(following))

    def _midnight(self, day: date) -> float:
        # Where the clock jumps over midnight, the day begins when it has jumped; where it is set back, at the first.
        return datetime(day.year, day.month, day.day, tzinfo=self.zone).timestamp()


def _days(per: Per, day: date) -> tuple[date, date]:
    """First day of a window, and first day of the next."""
    if per is Per.DAY:
        return day, day + timedelta(days=1)
    if per is Per.WEEK:
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=7)
    first = day.replace(day=1)
    return first, (first + timedelta(days=32)).replace(day=1)


@dataclass(frozen=True, slots=True)
class Sliding:
    """The last so many seconds, whenever one asks."""

    seconds: float


def spoken(window: Calendar | Sliding) -> str:
    """A window in words, as policies are shown."""
    if isinstance(window, Sliding):
        return f"within {window.seconds:g} s"
    return f"per {window.per.value}, {getattr(window.zone, 'key', window.zone)}"
