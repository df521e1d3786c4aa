"""The gateway's balance beside the ledger: what fell, what was settled, and what neither explains. Pure.

All amounts are units of 1e-8 credit. Calls that run at either end of the span blur it: the gateway may have charged
for a call that the ledger holds, so a difference within what was held is none.
"""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """AGREES: no difference that open calls do not explain. FOREIGN: the balance fell by more than was settled, so
    somebody else spends on the same member, or calls in doubt were charged. OVERBOOKED: it fell by less.
    """

    AGREES = "agrees"
    FOREIGN = "foreign"
    OVERBOOKED = "overbooked"


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at both. settled: all that the ledger ever settled. held: by calls that are open."""

    at_s: float
    balance: int
    settled: int
    held: int


@dataclass(frozen=True, slots=True)
class Span:
    """From a first look to the last. added: what was put on the balance in between, as its rises show."""

    first: Reading
    last: Reading
    added: int = 0

    @property
    def fall(self) -> int:
        """By how much the balance fell, what was put on left out."""
        return self.first.balance + self.added - self.last.balance

    @property
    def settled(self) -> int:
        """What the ledger settled meanwhile."""
        return self.last.settled - self.first.settled

    @property
    def drift(self) -> int:
        """What the ledger does not explain; below zero, what it has too much."""
        return self.fall - self.settled

    @property
    def foreign(self) -> int:
        """The part of the drift that no open call of ours can explain."""
        return max(0, self.drift - self.last.held)

    @property
    def verdict(self) -> Verdict:
        """What to think of it."""
        if self.foreign:
            return Verdict.FOREIGN
        return Verdict.OVERBOOKED if self.drift < -self.first.held else Verdict.AGREES


def looked(span: Span | None, now: Reading) -> Span:
    """The span with one more look. A balance that rose was put on by somebody: that and no drift."""
    if span is None:
        return Span(now, now)
    risen = now.balance - span.last.balance
    added = risen + max(0, now.settled - span.last.settled) if risen > 0 else 0
    return Span(span.first, now, span.added + added)
