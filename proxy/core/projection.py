"""What all entries of the books add up to. Pure; every home of the ledger keeps one.

It is always current, and can be rebuilt from the entries.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from proxy.core.facts import Facts
from proxy.core.ledger import Adjust, Expire, Hold, HoldState, Outcome, Phase, Resolve, Settle, Step, Void, move
from proxy.core.riders import Promise, Rider, Turn
from proxy.units import Credits

_OK, _OVER_BUDGET, _HELD = Outcome.OK, Outcome.OVER_BUDGET, Phase.HELD
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
        return self.take(step, self.known(step.hold))

    def take(self, step: Hold | Settle | Void | Expire | Resolve, before: HoldState | None) -> Outcome:
        """Take one step of a hold. before: what is `known` of it."""
        after, outcome = move(before, step)
        if outcome is not _OK or after is None:
            return outcome
        if isinstance(step, Hold):
            if not self.accounts.take(step.hold, step.facts, step.credits, step.at_s):
                return _OVER_BUDGET
        elif before is not None and before.phase is not _HELD:
            self.accounts.spent(after.facts, after.charged - before.charged, after.at_s)
        else:
            self.accounts.end(step.hold, after.charged)
        facts, phase, held, _, charged, _ = after
        team, hold = facts.team, step.hold
        was_held = before.held if before is not None and before.phase is _HELD else 0
        was_charged = before.charged if before is not None else 0
        self.spent[team] = self.spent.get(team, 0) + charged - was_charged
        self.held[team] = self.held.get(team, 0) + (held if phase is _HELD else 0) - was_held
        if phase is _HELD:
            self.holds[hold] = after
        else:
            self.holds.pop(hold, None)
            self.remember(hold, after)
            if isinstance(step, Settle):
                self.calls += step.charge.calls
        return outcome

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
