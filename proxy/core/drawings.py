"""Drawings: which accounts there are, and on which of them each kind of call draws.

Accounts are made from facts under the current policy, never stored. The time only goes forward here: a clock that steps
back reopens nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import inf
from typing import Final

from proxy.core.account import Account, opened
from proxy.core.facts import Facts
from proxy.core.limits import Budget, drawn
from proxy.core.windows import Calendar, Window

Key = tuple[str, tuple[str, ...], float]
"""Name of the budget, group, and where the calendar window begins; 0 for one that slides."""

PRUNED_FROM: Final = 1024
"""Accounts below this number are all kept; above it, ended and unused ones go each time the number has doubled."""

DRAWN_MAX: Final = 4096
"""Kinds of calls whose budgets are remembered, so that not every call is matched with every budget."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Where one kind of call draws: the same accounts for all of them, until a window ends.

    from_s, until_s: the instants for which these are the accounts.      sliding: those of sliding windows.
    """

    accounts: Sequence[Account]
    from_s: float
    until_s: float
    sliding: Sequence[Account]


class Drawings:
    """The accounts under one policy."""

    def __init__(
        self, budgets: Iterable[Budget], needed: Callable[[], AbstractSet[Account]], turned: Callable[[], None]
    ) -> None:
        """needed: the accounts that may not go.      turned: called when what is promised may be in an ended window."""
        self.budgets: Final = tuple(budgets)
        self.now_s = -inf
        """The latest instant known."""
        self._needed: Final = needed
        self._promise_anew: Final = turned
        self._turned = False
        self._accounts: Final[dict[Key, Account]] = {}
        self._prune_at = PRUNED_FROM
        self._drawn: Final[dict[Facts, Drawing]] = {}
        self._windows: Final[dict[str, Window]] = {}

    def __len__(self) -> int:
        return len(self._accounts)

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def dated(self, at_s: float) -> float:
        """The instant that what happens now is dated: the latest one known, where a clock has stepped back."""
        if at_s <= self.now_s:
            return self.now_s
        self.now_s = at_s
        return at_s

    def of(self, facts: Facts, at_s: float) -> Sequence[Account]:
        """The accounts that such a call draws on."""
        known = self._drawn.get(facts)
        if known is None or not known.from_s <= at_s < known.until_s:
            known = self._draw(facts, at_s)
        else:
            for account in known.sliding:
                account.forget(self.now_s)
        return known.accounts

    def account(self, budget: Budget, group: tuple[str, ...], at_s: float) -> Account:
        """The account of a budget and a group, an empty one where nothing has happened yet."""
        window = self._window(budget, at_s)
        key = (budget.name, group, window.start_s if window else 0.0)
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = opened(window, budget, group)
        account.forget(self.now_s)
        return account

    def in_use(self, budget: Budget, at_s: float) -> list[Account]:
        """All accounts that a budget has in the window of an instant and into which anything was booked."""
        start_s = budget.window.window(at_s).start_s if isinstance(budget.window, Calendar) else 0.0
        groups = [held for name, held, begun_s in self._accounts if (name, begun_s) == (budget.name, start_s)]
        # Callers may name any model, and explaining or refusing a call opens accounts, too.
        found = [self.account(budget, one, at_s) for one in groups]
        return [account for account in found if account.in_use]

    def prune(self) -> None:
        """Let go of windows that have ended, and of accounts without use, where nobody needs them."""
        needed = self._needed()
        for key, account in list(self._accounts.items()):
            account.forget(self.now_s)
            ended = account.window is not None and account.window.end_s <= self.now_s
            if (ended or account.spare) and account not in needed:
                del self._accounts[key]
        self._drawn.clear()
        self._prune_at = max(PRUNED_FROM, 2 * len(self._accounts))

    def _draw(self, facts: Facts, at_s: float) -> Drawing:
        # Callers may ask for any model, so what is remembered is bounded.
        if len(self._drawn) >= DRAWN_MAX:
            self._drawn.clear()
        # Before any account of this call is made, as an empty one would be let go of.
        if len(self._accounts) >= self._prune_at:
            self.prune()
        accounts = tuple([self.account(one, one.group(facts), at_s) for one in drawn(self.budgets, facts)])
        windows = [account.window for account in accounts if account.window is not None]
        known = self._drawn[facts] = Drawing(
            accounts,
            max((window.start_s for window in windows), default=-inf),
            min((window.end_s for window in windows), default=inf),
            tuple([account for account in accounts if account.window is None]),
        )
        if self._turned:
            self._turned = False
            self._promise_anew()
        return known

    def _window(self, budget: Budget, at_s: float) -> Window | None:
        """The calendar window of an instant; nearly every call falls into that of the call before."""
        if not isinstance(budget.window, Calendar):
            return None
        window = self._windows.get(budget.name)
        if window is None or not window.start_s <= at_s < window.end_s:
            self._turned = self._turned or window is not None
            window = self._windows[budget.name] = budget.window.window(at_s)
        return window
