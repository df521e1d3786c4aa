"""Accounts: what happens to holds in all accounts that they draw on, and whether one more fits every one of them.

A budget that is renamed, added or narrowed starts with what its window already used, as accounts are made from facts
(`core/drawings`). What one account knows stands in `core/account`.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from math import inf
from typing import Final

from proxy.core.account import Account, Crossed, Drawn, Refusal, Standing, Why
from proxy.core.drawings import Drawings
from proxy.core.facts import Facts
from proxy.core.limits import Budget

NOBODY: Final[AbstractSet[Account]] = frozenset()

CROSSED_MAX: Final = 1000
"""Reached shares kept until they are asked for."""


class Accounts:
    """All accounts under one policy."""

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        self.budgets: Final = tuple(budgets)
        self._drawings: Final = Drawings(self.budgets, self._needed, self._promise_anew)
        self._holds: Final[dict[str, list[tuple[Account, Drawn]]]] = {}
        self.promised: Final[dict[str, tuple[Facts, int, Sequence[Account]]]] = {}
        """What calls were let go for, by hold."""
        self._crossed: Final[deque[Crossed]] = deque(maxlen=CROSSED_MAX)
        self._flowed: Final[dict[Account, int]] = {}

    def dated(self, at_s: float) -> float:
        """The instant that what happens now is dated: the latest one known, where a clock has stepped back."""
        return self._drawings.dated(at_s)

    def prune(self) -> None:
        """Let go of windows that have ended, and of accounts without use, where no open hold needs them."""
        self._drawings.prune()

    def _needed(self) -> set[Account]:
        needed = {account for places in self._holds.values() for account, _ in places}
        needed.update(account for _, _, accounts in self.promised.values() for account in accounts)
        return needed

    # --- whether a hold fits ---

    def judge(self, facts: Facts, asked: int, at_s: float, kept: AbstractSet[Account] = NOBODY) -> Refusal | None:
        """Whether a hold fits every budget it draws on; the refusal that lasts longest where it does not.

        What costs nothing always fits. kept: accounts whose next room is another call's.
        """
        at_s = self._drawings.dated(at_s)
        if asked == 0:
            return None
        accounts = self._drawings.of(facts, at_s)
        if not kept and _fits(accounts, asked):
            return None
        refusals = [
            refusal
            for account in accounts
            if account.budget.acts and (refusal := account.refusal(asked, at_s, kept=account in kept)) is not None
        ]
        return max(refusals, key=_lasting) if refusals else None

    def short(self, facts: Facts, asked: int, at_s: float) -> dict[Account, float]:
        """The accounts in which a hold does not fit, and when each has room if nothing else happens, inf for never."""
        at_s = self._drawings.dated(at_s)
        short = [one for one in self._drawings.of(facts, at_s) if one.budget.acts and one.free < asked]
        opens = [account.reopens_s(asked - account.free, at_s) for account in short]
        return {account: inf if at_s is None else at_s for account, at_s in zip(short, opens, strict=True)}

    def drawn_by(self, facts: Facts, at_s: float) -> Sequence[Account]:
        """The accounts that a call draws on."""
        return self._drawings.of(facts, self._drawings.dated(at_s))

    # --- what is promised ---

    def promise(self, hold: str, facts: Facts, amount: int, at_s: float) -> Sequence[Account]:
        """Let nobody else have what a call was let go for, until its hold is judged or it is taken back.

        Returns the accounts in which it is promised.
        """
        accounts = self._drawings.of(facts, self._drawings.dated(at_s))
        for account in accounts:
            account.promised += amount
        self.promised[hold] = facts, amount, accounts
        return accounts

    def take_back(self, hold: str) -> None:
        """Nothing is promised to a call any more; does nothing where nothing was."""
        if (promise := self.promised.pop(hold, None)) is not None:
            _, amount, accounts = promise
            for account in accounts:
                account.promised -= amount

    def _promise_anew(self) -> None:
        """Holds that are taken from now on are the new window's, so what is promised is promised there."""
        for hold, (facts, amount, _) in list(self.promised.items()):
            self.take_back(hold)
            self.promise(hold, facts, amount, self._drawings.now_s)

    def follow(self, earlier: "Accounts") -> None:
        """Be the accounts after these: their time goes on, and what they promised is promised."""
        now_s = self.dated(earlier.dated(-inf))
        for hold, (facts, amount, _) in earlier.promised.items():
            self.promise(hold, facts, amount, now_s)

    # --- what happens to holds ---

    def take(self, hold: str, facts: Facts, amount: int, at_s: float) -> bool:
        """Book a hold where it fits every budget; False where it does not.

        What was promised to it is free before it is judged. What costs nothing always fits.
        """
        self.take_back(hold)
        accounts = self._drawings.of(facts, self._drawings.dated(at_s))
        if amount and not _fits(accounts, amount):
            return False
        self._book(hold, accounts, amount, at_s)
        return True

    def hold(self, hold: str, facts: Facts, amount: int, at_s: float) -> None:
        """Book a hold that was let in before: by an earlier policy, or before a start."""
        self._drawings.dated(at_s)
        self._book(hold, self._drawings.of(facts, at_s), amount, at_s)

    def _book(self, hold: str, accounts: Sequence[Account], amount: int, at_s: float) -> None:
        if not accounts:
            return
        now_s = self._drawings.now_s
        places = self._holds[hold] = []
        for account in accounts:
            drawing = Drawn(at_s, amount)
            if account.enter(drawing, now_s):
                account.held += amount
            places.append((account, drawing))

    def lasts(self, hold: str, *, doubted: bool = False) -> None:
        """The hold belongs to an operation from now on; doubted: to nobody, until somebody says what it cost."""
        for account, drawing in self._holds.get(hold, ()):
            account.last(drawing, doubted=doubted)

    def end(self, hold: str, charged: int) -> None:
        """A hold ended at a charge, 0 for one that was voided."""
        for account, drawing in self._holds.pop(hold, ()):
            if drawing.gone:
                continue
            account.end(drawing, charged)
            if charged:
                self._flowed[account] = self._flowed.get(account, 0) + charged
            if account.marks:
                self._crossed.extend(account.pass_marks())

    def spent(self, facts: Facts, amount: int, at_s: float, among: Collection[str] | None = None) -> None:
        """Book what was settled before this policy, or before a start.

        among: names of the budgets that it is booked into, where it is known of some only.
        """
        now_s = self._drawings.dated(at_s)
        for account in self._drawings.of(facts, at_s):
            if among is not None and account.budget.name not in among:
                continue
            if account.enter(Drawn(at_s, amount, open=False), now_s):
                account.settled += amount
            crossed = account.pass_marks()
            # What is filled in at a start was told before it.
            if among is None:
                self._crossed.extend(crossed)

    # --- what is asked of them ---

    def crossed(self) -> list[Crossed]:
        """The shares that were reached since this was last asked; each once in a window."""
        found = list(self._crossed)
        self._crossed.clear()
        return found

    def flowed(self) -> dict[tuple[str, tuple[str, ...]], int]:
        """What holds came to since this was last asked, by budget and group, in units of 1e-8 credit."""
        found: dict[tuple[str, tuple[str, ...]], int] = {}
        for account, amount in self._flowed.items():
            place = (account.budget.name, account.group)
            found[place] = found.get(place, 0) + amount
        self._flowed.clear()
        return found

    def used(self, budget: Budget, group: tuple[str, ...], at_s: float) -> tuple[int, int]:
        """What an account has settled and held at an instant."""
        account = self._drawings.account(budget, group, self._drawings.dated(at_s))
        return account.settled, account.held

    def drawn_on(self, facts: Facts, at_s: float) -> list[Standing]:
        """How the accounts stand that a call draws on."""
        at_s = self._drawings.dated(at_s)
        return [account.standing(at_s) for account in self._drawings.of(facts, at_s)]

    def standing(self, budget: Budget, at_s: float, group: tuple[str, ...] | None = None) -> list[Standing]:
        """How the accounts stand that a budget has in the window of an instant: that of a group, else all in use."""
        at_s = self._drawings.dated(at_s)
        if group is not None or budget.each is None:
            return [self._drawings.account(budget, group or (), at_s).standing(at_s)]
        return [account.standing(at_s) for account in self._drawings.in_use(budget, at_s)]


def _fits(accounts: Iterable[Account], asked: int) -> bool:
    """Whether none of these accounts refuses a hold of so much."""
    for one in accounts:
        if one.budget.acts and one.amount - one.settled - one.held - one.promised < asked:
            return False
    return True


_RANK: Final = {Why.BUSY: 0, Why.EXHAUSTED: 1, Why.NEVER: 2}


def _lasting(refusal: Refusal) -> tuple[int, float]:
    return _RANK[refusal.why], inf if refusal.reopens_s is None else refusal.reopens_s
