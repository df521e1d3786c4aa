"""What all entries of the books add up to. Pure; every home of the ledger keeps one.

It is always current, and can be rebuilt from the entries.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from proxy.core.facts import Facts
from proxy.core.ledger import (
    Adjust,
    Expire,
    Hold,
    HoldState,
    Outcome,
    Phase,
    Resolve,
    Settle,
    Step,
    Void,
    move,
    state_of,
)
from proxy.core.riders import Promise, Rider, Turn
from proxy.units import Credits

_OK, _HELD, _NO_CREDITS = Outcome.OK, Phase.HELD, Credits(0)
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

_OF_A_HOLD: Final = (Turn, Promise)
_Dated = TypeVar("_Dated", Hold, Adjust)


class Ledgered(Protocol):
    """What keeps accounts of holds: `core.accounts.Accounts`, which knows the budgets."""

    def dated(self, at_s: float) -> float:
        """The instant that what happens now is dated: time does not go back."""
        ...

    def take(self, hold: str, facts: Facts, amount: int, at_s: float) -> bool:
        """Take a hold where it fits, with what was promised to it; False where it does not."""
        ...

    def hold(self, hold: str, facts: Facts, amount: int, at_s: float) -> None:
        """A hold was taken before."""
        ...

    def end(self, hold: str, charged: int) -> None:
        """A hold ended at a charge."""
        ...

    def spent(self, facts: Facts, amount: int, at_s: float) -> None:
        """A charge was booked late, or corrected by hand."""
        ...


class _Boundless:
    """No budgets: everything fits and nothing is kept."""

    def dated(self, at_s: float) -> float:
        return at_s

    def take(self, hold: str, facts: Facts, amount: int, at_s: float) -> bool:  # noqa: ARG002  (everything fits)
        return True

    def hold(self, hold: str, facts: Facts, amount: int, at_s: float) -> None:
        pass

    def end(self, hold: str, charged: int) -> None:
        pass

    def spent(self, facts: Facts, amount: int, at_s: float) -> None:
        pass


NO_ACCOUNTS: Final = _Boundless()


@dataclass(slots=True)
class Projection:
    """What the entries add up to: open holds, and credits held and spent per team, all in units of 1e-8 credit.

    Holds that ended are remembered up to `resolved_max`, so that a second ending is told from an unknown hold.
    """

    accounts: "Ledgered" = field(default_factory=lambda: NO_ACCOUNTS, compare=False)
    resolved_max: int = 100_000
    holds: dict[str, HoldState] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    _resolved: OrderedDict[str, HoldState] = field(default_factory=OrderedDict)

    def dated(self, step: "_Dated") -> "_Dated":
        """A step as it is to be taken and written: money is never dated before money that moved earlier.

        Else a clock that steps back would reopen a window whose budget is used up.
        """
        if (at_s := self.accounts.dated(step.at_s)) != step.at_s:
            return step.dated(at_s)
        return step

    def apply(self, step: Step) -> Outcome:
        """Take one step. Only an `OK` step changes anything."""
        if isinstance(step, Rider):
            return self.ride(step)
        if isinstance(step, Adjust):
            return self._adjust(step)
        if isinstance(step, Hold):
            return self.hold(step, step.at_s)
        return self.end(step, self.known(step.hold))

    def hold(self, step: Hold, at_s: float) -> Outcome:
        """Take a hold at an instant, that of the step or a later one."""
        name, facts, amount, _, _ = step
        if self.known(name) is not None:
            return Outcome.DUPLICATE_HOLD
        if not self.accounts.take(name, facts, amount, at_s):
            return Outcome.OVER_BUDGET
        self.holds[name] = state_of((facts, _HELD, amount, at_s, _NO_CREDITS, False))
        self.held[facts.team] = self.held.get(facts.team, 0) + amount
        return _OK

    def end(self, step: Settle | Void | Expire | Resolve, before: HoldState | None) -> Outcome:
        """Take a step that ends a hold, or comes after its end. before: what is `known` of it."""
        if before is None:
            return Outcome.NO_SUCH_HOLD
        after = move(before, step)
        if not isinstance(after, HoldState):
            return after
        hold, facts, charged = step.hold, after.facts, after.charged
        team, added = facts.team, charged - before.charged
        if before.phase is _HELD:
            self.accounts.end(hold, charged)
            del self.holds[hold]
            self.held[team] -= before.held
        else:
            self.accounts.spent(facts, added, after.at_s)
        self.spent[team] = self.spent.get(team, 0) + added
        self.remember(hold, after)
        if isinstance(step, Settle):
            self.calls += step.charge.calls
        return _OK

    def ride(self, step: Rider) -> Outcome:
        """Rows ride along, but what belongs to a hold is not taken without it."""
        if isinstance(step, _OF_A_HOLD) and step.hold is not None and step.hold not in self.holds:
            return Outcome.NO_SUCH_HOLD
        return _OK

    def _adjust(self, step: Adjust) -> Outcome:
        if self.known(step.id) is not None:
            return Outcome.DUPLICATE_HOLD
        self.accounts.spent(step.facts, step.credits, step.at_s)
        self.spent[step.facts.team] = self.spent.get(step.facts.team, 0) + step.credits
        self.remember(step.id, HoldState(step.facts, Phase.SETTLED, Credits(0), step.at_s, Credits(step.credits)))
        return _OK

    def remember(self, hold: str, state: HoldState) -> None:
        """Keep a hold that ended, so that what comes after its ending is judged by it."""
        self._resolved[hold] = state
        while len(self._resolved) > self.resolved_max:
            self._resolved.popitem(last=False)

    def known(self, hold: str) -> HoldState | None:
        """A hold as its entries left it, None for one that was never taken or ended long ago."""
        return self.holds.get(hold) or self._resolved.get(hold)

    def reopen(self, hold: str, state: HoldState) -> None:
        """Take a hold that is open in the file."""
        self.holds[hold] = state
        self.held[state.facts.team] = self.held.get(state.facts.team, 0) + state.held
        self.accounts.hold(hold, state.facts, state.held, state.at_s)

    @property
    def open_holds(self) -> int:
        """How many holds have no ending yet."""
        return len(self.holds)
