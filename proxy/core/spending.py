"""What was spent, by team, key, model, route, suite, tool or day: totals of quarters of an hour, summed up. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import Enum
from typing import Final, TypeVar

from proxy.core.facts import Facts
from proxy.core.names import folded

Word = TypeVar("Word", str, tuple[str, ...])


class By(Enum):
    """What sums are kept apart by."""

    TEAM = "team"
    KEY = "key"
    MODEL = "model"
    ROUTE = "route"
    SUITE = "suite"
    TOOL = "tool"
    DAY = "day"


_SPELT: Final = frozenset({By.MODEL, By.SUITE, By.TOOL})
"""Names that calls spell: all spellings of one are one row, as limits and prices take them for one name."""


@dataclass(frozen=True, slots=True)
class Total:
    """One quarter of an hour of one kind of call. begun_s: of the quarter. credits: units of 1e-8 credit."""

    begun_s: float
    facts: Facts
    credits: int
    calls: int


@dataclass(frozen=True, slots=True)
class Spent:
    """One row. words: in the order asked for, a name as most was spent under it. calls: of tools."""

    words: tuple[str, ...]
    credits: int
    calls: int


def spending(totals: Iterable[Total], by: Sequence[By], zone: tzinfo = UTC) -> list[Spent]:
    """Sums, days in order and what is most first."""
    totals = list(totals)
    shown = {one: _shown(totals, one) for one in by if one in _SPELT}

    def words(total: Total) -> tuple[str, ...]:
        said = [(one, _word(total, one, zone)) for one in by]
        return tuple([shown[one][word] if one in shown else word for one, word in said])

    rows = [Spent(said, *figures) for said, figures in _sums(totals, words).items()]
    days = [place for place, one in enumerate(by) if one is By.DAY]
    return sorted(rows, key=lambda row: ([row.words[place] for place in days], -row.credits, row.words))


def _shown(totals: Iterable[Total], by: By) -> Mapping[str, str]:
    """For every spelling of a name the one under which most was spent, else most called, else the first of all."""
    sums = _sums(totals, lambda total: _word(total, by))
    spellings = sorted(sums, key=lambda word: (-sums[word][0], -sums[word][1], word))
    first: dict[str, str] = {}
    return {word: first.setdefault(folded(word), word) for word in spellings}


def _sums(totals: Iterable[Total], of: Callable[[Total], Word]) -> dict[Word, tuple[int, int]]:
    """Credits and calls of what is told apart by `of`."""
    sums: dict[Word, tuple[int, int]] = {}
    for total in totals:
        word = of(total)
        credits_, calls = sums.get(word, (0, 0))
        sums[word] = (credits_ + total.credits, calls + total.calls)
    return sums


def _word(total: Total, by: By, zone: tzinfo = UTC) -> str:
    if by is By.DAY:
        return datetime.fromtimestamp(total.begun_s, zone).date().isoformat()
    return getattr(total.facts, by.value) or ""
