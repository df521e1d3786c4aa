"""Accounts: what each budget has settled and held, per group and window, and whether one more hold fits.

Accounts are made from facts under the current policy, never stored: a budget that is renamed, added or narrowed starts
with what its window already used. All that happens to a hold belongs to the window of its admission. The time only goes
forward here: a clock that steps back reopens nothing.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from math import ceil, inf
from typing import Final

from proxy.core.facts import Facts
from proxy.core.limits import Budget, drawn
from proxy.core.windows import Calendar, Sliding, Window


class Why(Enum):
    """Why a hold does not fit."""

    NEVER = "never"  # it is larger than the whole budget
    EXHAUSTED = "exhausted"  # too much is settled
    BUSY = "busy"  # it would fit if the holds of open calls ended at nothing, or is another call's turn


@dataclass(frozen=True, slots=True)
class Refusal:
    """What stands in the way of a hold; the tightest budget of all that do.

    amount, settled, held, asked: units of 1e-8 credit; held: what is promised, too.
    reopens_s: when the window ends or has room again, None where waiting does not help.
    """

    budget: Budget
    group: tuple[str, ...]
    why: Why
    amount: int
    settled: int
    held: int
    asked: int
    reopens_s: float | None


@dataclass(frozen=True, slots=True)
class Standing:
    """One account as it stands. amount, settled, held: units of 1e-8 credit.

    ends_s:  when its window ends; of a sliding one, when the oldest of what is in it slides out. None: never.
    reached: the shares of `warn_at` that are spent.
    """

    budget: Budget
    group: tuple[str, ...]
    amount: int
    settled: int
    held: int
    ends_s: float | None
    reached: tuple[float, ...] = ()

    @property
    def left(self) -> int:
        """What a hold may still take; not below zero."""
        return max(0, self.amount - self.settled - self.held)


@dataclass(frozen=True, slots=True)
class Crossed:
    """An account whose settled credits came to a share of its amount at which somebody wants to know."""

    budget: Budget
    group: tuple[str, ...]
    share: float
    amount: int
    settled: int


@dataclass(slots=True)
class Drawn:
    """One hold in one account: how much it takes there now."""

    at_s: float
    amount: int
    open: bool = True
    waits: bool = True  # an operation's hold runs for hours: nobody waits for it
    gone: bool = False  # slid out of the window: a late ending changes nothing any more


@dataclass(slots=True, eq=False)
class Account:
    """One budget × one group × one window. A sliding window keeps each hold apart, a calendar one only sums.

    amount: what the budget allows it, in units of 1e-8 credit.
    marks:  settled amounts at which somebody wants to know, rising.
    passed: how many of them are behind.
    promised: what calls may hold that were let go and whose holds are not taken yet.
    """

    window: Window | None
    budget: Budget
    group: tuple[str, ...] = ()
    amount: int = 0
    marks: tuple[int, ...] = ()
    passed: int = 0
    settled: int = 0
    held: int = 0
    lasting: int = 0  # part of `held` that belongs to operations
    promised: int = 0
    log: deque[Drawn] = field(default_factory=deque)

    @property
    def free(self) -> int:
        """What one more hold may take."""
        return self.amount - self.settled - self.held - self.promised

    @property
    def in_use(self) -> bool:
        """Whether anything is settled or held; what was refused or cost nothing leaves neither."""
        return self.settled != 0 or self.held != 0

    @property
    def spare(self) -> bool:
        """Whether a new one in its place would tell the same from now on."""
        return not self.in_use and not self.passed and all(one.amount == 0 and not one.open for one in self.log)

    def forget(self, now_s: float, span_s: float) -> None:
        """Let go of what has slid out of a window of that length."""
        # Reckoned as `_reopens` does, so that who comes back then finds the room.
        while self.log and self.log[0].at_s + span_s <= now_s:
            gone = self.log.popleft()
            if gone.open:
                self.held -= gone.amount
                self.lasting -= 0 if gone.waits else gone.amount
            else:
                self.settled -= gone.amount
            gone.gone = True
        while self.passed and self.settled < self.marks[self.passed - 1]:
            self.passed -= 1


Key = tuple[str, tuple[str, ...], float]

PRUNED_FROM: Final = 1024
"""Accounts below this number are all kept; above it, ended and unused ones go each time the number has doubled."""


Place = tuple[Budget, tuple[str, ...], Account]
"""A budget that a call draws on, whose account it is, and the account."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Where one kind of call draws: the same accounts for all of them, until a window ends.

    from_s, until_s: the instants for which these are the accounts.      slides: some of them are of sliding windows.
    """

    places: Sequence[Place]
    from_s: float
    until_s: float
    slides: bool


DRAWN_MAX: Final = 4096
"""Kinds of calls whose budgets are remembered, so that not every call is matched with every budget."""

NOBODY: Final[AbstractSet[Account]] = frozenset()

CROSSED_MAX: Final = 1000
"""Reached shares kept until they are asked for."""


class Accounts:
    """All accounts under one policy."""

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        self.budgets: Final = tuple(budgets)
        self._accounts: Final[dict[Key, Account]] = {}
        self._holds: Final[dict[str, list[tuple[Account, Drawn]]]] = {}
        self.promised: Final[dict[str, tuple[Facts, int, Sequence[Place]]]] = {}
        """What calls were let go for, by hold."""
        self._turned = False  # a window has ended in which something may be promised
        self._now_s = -inf
        self._prune_at = PRUNED_FROM
        self._crossed: Final[deque[Crossed]] = deque(maxlen=CROSSED_MAX)
        self._drawn: Final[dict[Facts, Drawing]] = {}
        self._windows: Final[dict[str, Window]] = {}
        self._flowed: Final[dict[tuple[str, tuple[str, ...]], int]] = {}

    def _window(self, budget: Budget, at_s: float) -> Window | None:
        """The calendar window of an instant; nearly every call falls into that of the call before."""
        if not isinstance(budget.window, Calendar):
            return None
        window = self._windows.get(budget.name)
        if window is None or not window.start_s <= at_s < window.end_s:
            self._turned = self._turned or window is not None
            window = self._windows[budget.name] = budget.window.window(at_s)
        return window

    def dated(self, at_s: float) -> float:
        """The instant that what happens now is dated: the latest one known, where a clock has stepped back."""
        self._now_s = max(at_s, self._now_s)
        return self._now_s

    def _account(self, budget: Budget, group: tuple[str, ...], at_s: float) -> Account:
        window = self._window(budget, at_s)
        key = (budget.name, group, window.start_s if window else 0.0)
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = _opened(window, budget, group)
        if isinstance(budget.window, Sliding):
            account.forget(self._now_s, budget.window.seconds)
        return account

    def _places(self, facts: Facts, at_s: float) -> Sequence[Place]:
        known = self._drawn.get(facts)
        if known is None or not known.from_s <= at_s < known.until_s:
            known = self._draw(facts, at_s)
        elif known.slides:
            for budget, _, account in known.places:
                if isinstance(budget.window, Sliding):
                    account.forget(self._now_s, budget.window.seconds)
        return known.places

    def _draw(self, facts: Facts, at_s: float) -> Drawing:
        # Callers may ask for any model, so what is remembered is bounded.
        if len(self._drawn) >= DRAWN_MAX:
            self._drawn.clear()
        # Before any account of this call is made, as an empty one would be let go of.
        if len(self._accounts) >= self._prune_at:
            self.prune()
        draws = [(budget, budget.group(facts)) for budget in drawn(self.budgets, facts)]
        places = tuple([(budget, group, self._account(budget, group, at_s)) for budget, group in draws])
        windows = [account.window for _, _, account in places if account.window is not None]
        known = self._drawn[facts] = Drawing(
            places,
            max((window.start_s for window in windows), default=-inf),
            min((window.end_s for window in windows), default=inf),
            slides=len(windows) < len(places),
        )
        if self._turned:
            self._turned = False
            self._promise_anew()
        return known

    def _promise_anew(self) -> None:
        """Holds that are taken from now on are the new window's, so what is promised is promised there."""
        for hold, (facts, amount, _) in list(self.promised.items()):
            self.take_back(hold)
            self.promise(hold, facts, amount, self._now_s)

    def _log(self, account: Account, drawing: Drawn) -> bool:
        """Note a hold where each is kept apart, in the order of time; False for one that has slid out already."""
        window = account.budget.window
        if not isinstance(window, Sliding):
            return True
        if drawing.at_s + window.seconds <= self._now_s:
            drawing.gone = True
            return False
        log = account.log
        if log and log[-1].at_s > drawing.at_s:
            # Only at a start, when holds come after what was settled later than they were taken.
            log.insert(next(at for at, one in enumerate(log) if one.at_s > drawing.at_s), drawing)
        else:
            log.append(drawing)
        return True

    def judge(self, facts: Facts, asked: int, at_s: float, kept: AbstractSet[Account] = NOBODY) -> Refusal | None:
        """Whether a hold fits every budget it draws on; the refusal that lasts longest where it does not.

        What costs nothing always fits. kept: accounts whose next room is another call's.
        """
        self._now_s = at_s = max(at_s, self._now_s)
        if asked == 0:
            return None
        refusals = [
            refusal
            for budget, _, account in self._places(facts, at_s)
            if budget.acts and (refusal := _refusal(account, asked, at_s, kept)) is not None
        ]
        return max(refusals, key=_lasting) if refusals else None

    def short(self, facts: Facts, asked: int, at_s: float) -> dict[Account, float]:
        """The accounts in which a hold does not fit, and when each has room if nothing else happens, inf for never."""
        self._now_s = at_s = max(at_s, self._now_s)
        short = [account for budget, _, account in self._places(facts, at_s) if budget.acts and account.free < asked]
        opens = [_reopens(account, asked - account.free, at_s) for account in short]
        return {account: inf if at_s is None else at_s for account, at_s in zip(short, opens, strict=True)}

    def drawn_by(self, facts: Facts, at_s: float) -> list[Account]:
        """The accounts that a call draws on."""
        self._now_s = at_s = max(at_s, self._now_s)
        return [account for _, _, account in self._places(facts, at_s)]

    def promise(self, hold: str, facts: Facts, amount: int, at_s: float) -> list[Account]:
        """Let nobody else have what a call was let go for, until its hold is judged or it is taken back.

        Returns the accounts in which it is promised.
        """
        self._now_s = at_s = max(at_s, self._now_s)
        places = self._places(facts, at_s)
        for _, _, account in places:
            account.promised += amount
        self.promised[hold] = facts, amount, places
        return [account for _, _, account in places]

    def take_back(self, hold: str) -> None:
        """Nothing is promised to a call any more; does nothing where nothing was."""
        if (promise := self.promised.pop(hold, None)) is not None:
            _, amount, places = promise
            for _, _, account in places:
                account.promised -= amount

    def follow(self, earlier: "Accounts") -> None:
        """Be the accounts after these: their time goes on, and what they promised is promised."""
        self.dated(earlier.dated(-inf))
        for hold, (facts, amount, _) in earlier.promised.items():
            self.promise(hold, facts, amount, self._now_s)

    def hold(self, hold: str, facts: Facts, amount: int, at_s: float) -> None:
        """Book a hold that was judged to fit, or one that an earlier policy let in."""
        self._now_s = max(at_s, self._now_s)
        places = []
        for _, _, account in self._places(facts, at_s):
            drawing = Drawn(at_s, amount)
            if account.window is not None or self._log(account, drawing):
                account.held += amount
            places.append((account, drawing))
        if places:
            self._holds[hold] = places

    def lasts(self, hold: str) -> None:
        """The hold belongs to an operation from now on."""
        for account, drawing in self._holds.get(hold, ()):
            if drawing.waits and drawing.open and not drawing.gone:
                drawing.waits = False
                account.lasting += drawing.amount

    def end(self, hold: str, charged: int) -> None:
        """A hold ended at a charge, 0 for one that was voided."""
        for account, drawing in self._holds.pop(hold, ()):
            if drawing.gone:
                continue
            account.held -= drawing.amount
            account.lasting -= 0 if drawing.waits else drawing.amount
            account.settled += charged
            if charged:
                place = (account.budget.name, account.group)
                self._flowed[place] = self._flowed.get(place, 0) + charged
            drawing.amount, drawing.open = charged, False
            if account.marks:
                self._pass_marks(account)

    def _pass_marks(self, account: Account, *, told: bool = True) -> None:
        while account.passed < len(account.marks) and account.settled >= account.marks[account.passed]:
            share = sorted(account.budget.warn_at)[account.passed]
            account.passed += 1
            if told:
                self._crossed.append(Crossed(account.budget, account.group, share, account.amount, account.settled))

    def crossed(self) -> list[Crossed]:
        """The shares that were reached since this was last asked; each once in a window."""
        found = list(self._crossed)
        self._crossed.clear()
        return found

    def flowed(self) -> dict[tuple[str, tuple[str, ...]], int]:
        """What holds came to since this was last asked, by budget and group, in units of 1e-8 credit."""
        found = dict(self._flowed)
        self._flowed.clear()
        return found

    def spent(self, facts: Facts, amount: int, at_s: float, among: Collection[str] | None = None) -> None:
        """Book what was settled before this policy, or before a start.

        among: names of the budgets that it is booked into, where it is known of some only.
        """
        self._now_s = max(at_s, self._now_s)
        for budget, _, account in self._places(facts, at_s):
            if among is not None and budget.name not in among:
                continue
            if self._log(account, Drawn(at_s, amount, open=False)):
                account.settled += amount
            # What is filled in at a start was told before it.
            self._pass_marks(account, told=among is None)

    def used(self, budget: Budget, group: tuple[str, ...], at_s: float) -> tuple[int, int]:
        """What an account has settled and held at an instant."""
        self._now_s = max(at_s, self._now_s)
        account = self._account(budget, group, self._now_s)
        return account.settled, account.held

    def drawn_on(self, facts: Facts, at_s: float) -> list[Standing]:
        """The accounts that a call draws on."""
        self._now_s = at_s = max(at_s, self._now_s)
        return [_standing(account, at_s) for _, _, account in self._places(facts, at_s)]

    def standing(self, budget: Budget, at_s: float, group: tuple[str, ...] | None = None) -> list[Standing]:
        """The accounts that a budget has in the window of an instant: that of a group, else all in use."""
        self._now_s = at_s = max(at_s, self._now_s)
        if group is not None or budget.each is None:
            return [_standing(self._account(budget, group or (), at_s), at_s)]
        start_s = budget.window.window(at_s).start_s if isinstance(budget.window, Calendar) else 0.0
        groups = [held for name, held, begun_s in self._accounts if (name, begun_s) == (budget.name, start_s)]
        # Callers may name any model, and explaining or refusing a call opens accounts, too.
        found = [self._account(budget, one, at_s) for one in groups]
        return [_standing(account, at_s) for account in found if account.in_use]

    def prune(self) -> None:
        """Let go of windows that have ended, and of accounts without use, where no open hold needs them."""
        needed = {account for places in self._holds.values() for account, _ in places}
        needed.update(account for _, _, places in self.promised.values() for _, _, account in places)
        span_s = {budget.name: budget.window.seconds for budget in self.budgets if isinstance(budget.window, Sliding)}
        for key, account in list(self._accounts.items()):
            if account.window is None:
                account.forget(self._now_s, span_s[key[0]])
            ended = account.window is not None and account.window.end_s <= self._now_s
            if (ended or account.spare) and account not in needed:
                del self._accounts[key]
        self._drawn.clear()
        self._prune_at = max(PRUNED_FROM, 2 * len(self._accounts))


def _opened(window: Window | None, budget: Budget, group: tuple[str, ...]) -> Account:
    """An empty account. Marks are rounded up: 80 % are reached when they are spent, not before; of nothing, never."""
    amount = budget.amount_for(group)
    shares = budget.warn_at if amount else ()
    marks = tuple(sorted(ceil(amount * Decimal(str(share))) for share in shares))
    return Account(window, budget, group, amount, marks)


def _standing(account: Account, at_s: float) -> Standing:
    budget, ends_s = account.budget, _reopens(account, 1, at_s)
    reached = tuple(sorted(budget.warn_at)[: account.passed])
    return Standing(budget, account.group, account.amount, account.settled, account.held, ends_s, reached)


def _refusal(account: Account, asked: int, at_s: float, kept: AbstractSet[Account]) -> Refusal | None:
    amount, missing = account.amount, asked - account.free
    if missing <= 0 and account not in kept:
        return None
    spent = account.settled + account.lasting
    why = Why.NEVER if asked > amount else Why.EXHAUSTED if spent + asked > amount else Why.BUSY
    return Refusal(
        account.budget,
        account.group,
        why,
        amount,
        account.settled,
        account.held + account.promised,
        asked,
        _reopens(account, missing, at_s) if missing > 0 else None,
    )


def _reopens(account: Account, missing: int, at_s: float) -> float | None:
    """When so much more is free if nothing else happens after an instant."""
    if account.window is not None:
        return account.window.end_s if account.window.end_s != inf else None
    window = account.budget.window
    assert isinstance(window, Sliding)
    for drawing in account.log:
        missing -= drawing.amount
        if missing <= 0:
            return drawing.at_s + window.seconds
    # Holds that are only promised are taken any moment.
    return at_s + window.seconds if missing <= account.promised else None


_RANK: Final = {Why.BUSY: 0, Why.EXHAUSTED: 1, Why.NEVER: 2}


def _lasting(refusal: Refusal) -> tuple[int, float]:
    return _RANK[refusal.why], inf if refusal.reopens_s is None else refusal.reopens_s
