"""What was spent, by team, key, model, route, suite, tool or day: totals of quarters of an hour, summed up. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import Enum

from proxy.core.facts import Facts


class By(Enum):
    """What sums are kept apart by."""

    TEAM = "team"
    KEY = "key"
    MODEL = "model"
    ROUTE = "route"
    SUITE = "suite"
    TOOL = "tool"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Total:
    """One quarter of an hour of one kind of call. begun_s: of the quarter. credits: units of 1e-8 credit."""

    begun_s: float
    facts: Facts
    credits: int
    calls: int


@dataclass(frozen=True, slots=True)
class Spent:
    """One row. words: in the order asked for. calls: of tools."""

    words: tuple[str, ...]
    credits: int
    calls: int


def spending(totals: Iterable[Total], by: Sequence[By], zone: tzinfo = UTC) -> list[Spent]:
    """Sums, days in order and what is most first."""
    sums: dict[tuple[str, ...], tuple[int, int]] = {}
    for total in totals:
        words = tuple(_word(total, one, zone) for one in by)
        credits_, calls = sums.get(words, (0, 0))
        sums[words] = (credits_ + total.credits, calls + total.calls)
    rows = [Spent(words, *figures) for words, figures in sums.items()]
    days = [place for place, one in enumerate(by) if one is By.DAY]
    return sorted(rows, key=lambda row: ([row.words[place] for place in days], -row.credits, row.words))


def _word(total: Total, by: By, zone: tzinfo) -> str:
    if by is By.DAY:
        return datetime.fromtimestamp(total.begun_s, zone).date().isoformat()
    return getattr(total.facts, by.value) or ""
