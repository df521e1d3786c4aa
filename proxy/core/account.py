"""One account: what one budget has settled and held for one group in one window, and whether one more hold fits.

All that happens to a hold belongs to the window of its admission. The account of a calendar window only sums, and ends
with it; that of a sliding one keeps each hold apart until it has slid out.
"""

from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from math import ceil, inf

from proxy.core.limits import Budget
from proxy.core.windows import Sliding, Window


class Why(Enum):
    """Why a hold does not fit."""

    NEVER = "never"  # it is larger than the whole budget
    EXHAUSTED = "exhausted"  # too much is settled
    BUSY = "busy"  # it would fit if the holds of open calls ended at nothing, or is another call's turn


@dataclass(frozen=True, slots=True)
class Refusal:
    """What stands in the way of a hold; the tightest budget of all that do.

    amount, settled, held, asked: units of 1e-8 credit; held: what is promised, too.
    doubted:   part of `held` that calls in doubt hold, where the hold could fit without them.
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
    doubted: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """One account as it stands. amount, settled, held: units of 1e-8 credit.

    ends_s:  when its window ends; of a sliding one, when the oldest of what is in it slides out. None: never.
    reached: the shares at which somebody wants to know that are spent.
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
    doubted: bool = False  # nobody is left who would end it, so somebody has to say what it cost
    gone: bool = False  # slid out of the window: a late ending changes nothing any more


@dataclass(slots=True, eq=False)
class Account:
    """One budget × one group × one window.

    window: the calendar window, None where it slides.
    amount: what the budget allows it, in units of 1e-8 credit.
    marks:  settled amounts at which somebody wants to know, rising.
    passed: how many of them are behind.
    promised: what calls may hold that were let go and whose holds are not taken yet.
    log:    of a sliding window, what is in it, oldest first.      span_s: its length; inf for a calendar window.
    """

    window: Window | None
    budget: Budget
    group: tuple[str, ...] = ()
    amount: int = 0
    marks: tuple[int, ...] = ()
    passed: int = 0
    settled: int = 0
    held: int = 0
    lasting: int = 0  # part of `held` that nobody waits for: it belongs to operations, or is in doubt
    doubted: int = 0  # part of `lasting` that is in doubt
    promised: int = 0
    log: deque[Drawn] = field(default_factory=deque)
    span_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.span_s = self.budget.window.seconds if isinstance(self.budget.window, Sliding) else inf

    # --- what is in it ---

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

    def standing(self, at_s: float) -> Standing:
        """How it stands at an instant."""
        reached = self.budget.shares[: self.passed]
        ends_s = self.reopens_s(1, at_s)
        return Standing(self.budget, self.group, self.amount, self.settled, self.held, ends_s, reached)

    # --- what happens to it ---

    def enter(self, drawing: Drawn, now_s: float) -> bool:
        """Note a hold where each is kept apart, in the order of time; False for one that has slid out already."""
        if self.window is not None:
            return True
        if drawing.at_s + self.span_s <= now_s:
            drawing.gone = True
            return False
        log = self.log
        if log and log[-1].at_s > drawing.at_s:
            # Only at a start, when holds come after what was settled later than they were taken.
            log.insert(next(at for at, one in enumerate(log) if one.at_s > drawing.at_s), drawing)
        else:
            log.append(drawing)
        return True

    def last(self, drawing: Drawn, *, doubted: bool) -> None:
        """Nobody waits for this hold from now on."""
        if drawing.waits and drawing.open and not drawing.gone:
            drawing.waits, drawing.doubted = False, doubted
            self.lasting += drawing.amount
            self.doubted += drawing.amount if doubted else 0

    def end(self, drawing: Drawn, charged: int) -> None:
        """A hold that is still in it has ended at a charge."""
        self._let_go(drawing)
        self.settled += charged
        drawing.amount, drawing.open = charged, False

    def _let_go(self, drawing: Drawn) -> None:
        self.held -= drawing.amount
        if not drawing.waits:
            self.lasting -= drawing.amount
            self.doubted -= drawing.amount if drawing.doubted else 0

    def forget(self, now_s: float) -> None:
        """Let go of what has slid out."""
        if self.window is not None:
            return
        log, span_s = self.log, self.span_s
        # Reckoned as `reopens_s` does, so that who comes back then finds the room.
        while log and log[0].at_s + span_s <= now_s:
            gone = log.popleft()
            if gone.open:
                self._let_go(gone)
            else:
                self.settled -= gone.amount
            gone.gone = True
        while self.passed and self.settled < self.marks[self.passed - 1]:
            self.passed -= 1

    def pass_marks(self) -> list[Crossed]:
        """The shares that what is settled has come to since this was last asked."""
        found = []
        while self.passed < len(self.marks) and self.settled >= self.marks[self.passed]:
            share = self.budget.shares[self.passed]
            self.passed += 1
            found.append(Crossed(self.budget, self.group, share, self.amount, self.settled))
        return found

    # --- whether a hold fits ---

    def refusal(self, asked: int, at_s: float, *, kept: bool) -> Refusal | None:
        """Why a hold does not fit; None where it does. kept: its next room is another call's."""
        missing = asked - self.free
        if missing <= 0 and not kept:
            return None
        spent = self.settled + self.lasting
        why = Why.NEVER if asked > self.amount else Why.EXHAUSTED if spent + asked > self.amount else Why.BUSY
        return Refusal(
            self.budget,
            self.group,
            why,
            self.amount,
            self.settled,
            self.held + self.promised,
            asked,
            self.reopens_s(missing, at_s) if missing > 0 else None,
            doubted=self.doubted if spent - self.doubted + asked <= self.amount else 0,
        )

    def reopens_s(self, missing: int, at_s: float) -> float | None:
        """When so much more is free if nothing else happens after an instant; None for never."""
        if self.window is not None:
            return self.window.end_s if self.window.end_s != inf else None
        span_s = self.span_s
        for drawing in self.log:
            missing -= drawing.amount
            if missing <= 0:
                return drawing.at_s + span_s
        # Holds that are only promised are taken any moment.
        return at_s + span_s if missing <= self.promised else None


def opened(window: Window | None, budget: Budget, group: tuple[str, ...]) -> Account:
    """An empty account. Marks are rounded up: 80 % are reached when they are spent, not before; of nothing, never."""
    amount = budget.amount_for(group)
    shares = budget.shares if amount else ()
    marks = tuple(ceil(amount * Decimal(str(share))) for share in shares)
    return Account(window, budget, group, amount, marks)
