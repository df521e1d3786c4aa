"""News that somebody wants to be told of: each once, bounded, waiting for whoever delivers it."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

TOLD_MAX: Final = 5000
"""Ids remembered, so that nothing is told twice: budgets × windows of a year and more."""

WAITING_MAX: Final = 1000
"""News that wait for delivery; beyond it the oldest go, as the newest say more."""


@dataclass(frozen=True, slots=True)
class News:
    """One piece of news.

    id:    what it is told by, once; a budget's holds the beginning of its window.
    kind:  budget_warning, budget_exhausted, ledger_drift, breaker_open, policy_refused or gateway_key_refused.
    about: figures and names for programs, all text; never of a body.
    """

    id: str
    kind: str
    at_s: float
    text: str
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return asdict(self)


class Newsroom:
    """What was told, and what waits to be delivered. Without somebody who delivers nothing waits."""

    def __init__(self, *, delivers: bool = False, told: Iterable[str] = (), waiting: Iterable[News] = ()) -> None:
        self._delivers: Final = delivers
        self._told: Final[OrderedDict[str, None]] = OrderedDict.fromkeys(told)
        self._waiting: Final[OrderedDict[str, News]] = OrderedDict((one.id, one) for one in waiting)
        self.changed = False

    def tell(self, news: News) -> None:
        """Take a piece of news, unless it was told before."""
        if not self._delivers or news.id in self._told:
            return
        self.changed = True
        self._told[news.id] = None
        self._waiting[news.id] = news
        if len(self._told) > TOLD_MAX:
            self._told.popitem(last=False)
        if len(self._waiting) > WAITING_MAX:
            self._waiting.popitem(last=False)

    def done(self, news: News) -> None:
        """It was delivered, or given up."""
        self.changed = self._waiting.pop(news.id, None) is not None or self.changed

    @property
    def waiting(self) -> list[News]:
        """Oldest first."""
        return list(self._waiting.values())

    @property
    def told(self) -> list[str]:
        return list(self._told)
