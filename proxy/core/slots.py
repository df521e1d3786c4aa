"""Slots: what one rate has given out in one group, and when it comes back.

A place in a sliding window is taken at admission and comes back a window after the latest instant at which the gateway
may have counted the call; until that instant is known the place is *open*. Whatever the gateway takes as the time of a
call, no window of its clock then holds more than the amount. All instants are seconds of one clock that never goes
back.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil, inf
from typing import Final

from proxy.core.limits import Counts, Each, Excess, Rate
from proxy.core.shares import Share

GUARD_MAX_S: Final = 1.0
GUARD_SHARE: Final = 1 / 4
"""How long after its last byte a call may still be counted by the gateway: a second, or a quarter of a short window.

It costs nothing where the answer begins sooner, since by then the call has been counted.
"""

DRIFT_SHARE: Final = 1 / 2000
"""How much longer than its window a place is taken: two clocks differ by less than 500 parts in a million."""

FORGOTTEN_MAX: Final = 256
"""Places that have come back and are still in the list."""

CUT: Final = 0.8
LEAST: Final = 0.25
"""A gateway's 429 takes a fifth of what is given out, down to a quarter; somebody else uses the member."""

THEIRS: Final = frozenset({Each.MEMBER, Each.CREDENTIAL, Each.SUITE})
CUT_WINDOW_S: Final = 3600.0
"""Only rates on what the gateway knows are cut, and only those that come back soon."""

GROWS: Final = 0.1
GROWS_EVERY: Final = 0.25
"""A tenth of the amount comes back every quarter of a window."""

Change = tuple[float, int]
"""When, and how much more is taken from then on."""


@dataclass(slots=True, eq=False)
class Place:
    """What one turn takes in one account. ends_s: when it comes back, inf while it is open."""

    slots: "Slots"
    amount: int
    ends_s: float = inf
    gone: bool = False


def _ends(place: Place) -> float:
    return place.ends_s


@dataclass(slots=True, eq=False)
class Slots:
    """One rate × one group.

    capacity: what may be taken at once, below the rate's amount for a while after the gateway's 429.
    open:     taken by places that nobody knows the end of.
    used:     taken in all.
    ending:   places that come back, soonest first; those before `first` have come back.
    waiting:  what stands in the queue, by team.      queued: in all.
    span_s:   how long a place is taken at least: inf for what is counted while it is open.
    guard_s:  how long after its last byte a call may still be counted.
    told:     the account as header lines tell it.
    share:    the virtual clock by which teams share it, in units of this rate over weight.
    """

    rate: Rate
    group: tuple[str, ...]
    amount: int
    capacity: int = 0
    open: int = 0
    used: int = 0
    ending: list[Place] = field(default_factory=list)
    first: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    queued: int = 0
    share: Share = field(default_factory=Share)
    grows_s: float = inf
    span_s: float = field(init=False)
    guard_s: float = field(init=False)
    told: str = field(init=False)

    def __post_init__(self) -> None:
        window_s = self.rate.window_s
        self.capacity = self.amount
        self.span_s = window_s * (1 + DRIFT_SHARE) or inf
        self.guard_s = min(GUARD_MAX_S, window_s * GUARD_SHARE)
        unit = ';qu="tokens"' if self.rate.counts is Counts.TOKENS else ""
        self.told = f'"{self.rate.name}";q={self.amount};w={ceil(window_s)}{unit}'

    def forget(self, now_s: float) -> int:
        """Take back what has ended, and grow again after a cut; how much is free then."""
        ending, first = self.ending, self.first
        while first < len(ending) and ending[first].ends_s <= now_s:
            ending[first].gone = True
            self.used -= ending[first].amount
            first += 1
        if first > FORGOTTEN_MAX and first * 2 > len(ending):
            # Cutting the front off moves all that is behind it, so it is done seldom.
            del ending[:first]
            first = 0
        self.first = first
        while now_s >= self.grows_s:
            self.capacity = min(self.amount, self.capacity + max(1, int(self.amount * GROWS)))
            self.grows_s = self.grows_s + self.rate.window_s * GROWS_EVERY if self.capacity < self.amount else inf
        return self.capacity - self.used

    def coming(self) -> Iterator[Place]:
        """Places that come back, soonest first."""
        return islice(self.ending, self.first, None)

    @property
    def next_s(self) -> float | None:
        """When the first of them comes back; None where there is none."""
        return self.ending[self.first].ends_s if self.first < len(self.ending) else None

    @property
    def refuses(self) -> bool:
        """Whether a call without room does not wait here."""
        return self.rate.excess is Excess.REFUSE and self.rate.acts

    def fits(self, amount: int) -> bool:
        """Whether there is room at the instant of the last `forget`."""
        return self.used + amount <= self.capacity

    def take(self, amount: int) -> Place:
        """Take a place that is open until `ends` or `give_back`."""
        self.used += amount
        self.open += amount
        return Place(self, amount)

    def ends(self, place: Place, at_s: float) -> None:
        """Say when a place comes back; a second word can only be earlier, as what is known gets more exact."""
        if place.gone or at_s >= place.ends_s:
            return
        if place.ends_s == inf:
            self.open -= place.amount
        else:
            self._take_out(place)
        place.ends_s = at_s
        if not self.ending or at_s >= self.ending[-1].ends_s:
            self.ending.append(place)
        else:
            insort(self.ending, place, lo=self.first, key=_ends)

    def give_back(self, place: Place) -> None:
        """Free a place at once; only where nothing was sent, or where places are counted while they are open."""
        if place.gone:
            return
        place.gone = True
        self.used -= place.amount
        if place.ends_s == inf:
            self.open -= place.amount
        else:
            self._take_out(place)

    def _take_out(self, place: Place) -> None:
        at = bisect_left(self.ending, place.ends_s, lo=self.first, key=_ends)
        while self.ending[at] is not place:
            at += 1
        del self.ending[at]

    def correct(self, place: Place, amount: int) -> None:
        """The call used so much; what it was thought to use was a bound."""
        if place.gone:
            return
        self.used += amount - place.amount
        if place.ends_s == inf:
            self.open += amount - place.amount
        place.amount = amount

    def cut(self, now_s: float) -> None:
        """Give out less for a while."""
        if self.rate.each not in THEIRS or not 0 < self.rate.window_s <= CUT_WINDOW_S:
            return
        self.capacity = max(1, int(self.amount * LEAST), int(self.capacity * CUT))
        if self.capacity < self.amount:
            self.grows_s = now_s + self.rate.window_s * GROWS_EVERY

    def changes(self) -> list[Change]:
        """What comes back and when, in order of time."""
        return [(place.ends_s, -place.amount) for place in self.coming()]

    def reserve(self, changes: list[Change], start_s: float, amount: int) -> None:
        """Put a start that is kept into the changes: from then on a place is taken for `span_s`."""
        insort(changes, (start_s, amount))
        insort(changes, (start_s + self.span_s, -amount))

    def earliest(self, amount: int, now_s: float, changes: Sequence[Change] = ()) -> float:
        """When `amount` fits without moving what is reserved; inf where nobody knows.

        changes: of this account, with the starts of calls that come first; none where nothing is reserved.
        """
        if not changes:
            if self.used + amount <= self.capacity:
                return now_s
            free = self.capacity - self.used
            for place in self.coming():
                free += place.amount
                if free >= amount:
                    return place.ends_s
            return inf
        span_s = self.span_s
        # Go along what is taken from now on; wherever it does not fit, no start before is one.
        level, room = self.used, self.capacity - amount
        start_s = now_s if level <= room else inf
        for at_s, change in changes:
            if at_s > start_s + span_s:
                break
            level += change
            if level > room:
                start_s = inf
            elif start_s == inf:
                start_s = max(at_s, now_s)
        return start_s

    def predicted(self, ahead: int, amount: int, now_s: float) -> float:
        """When `amount` will fit if `ahead` more is given out before: an estimate; inf where nobody knows."""
        wanted = ahead + amount - (self.capacity - self.used)
        if wanted <= 0:
            return now_s
        if self.rate.counts is Counts.IN_FLIGHT:
            return inf
        rounds, rest = divmod(wanted - 1, max(1, self.capacity))
        rest += 1
        at_s = now_s + self.span_s + self.guard_s
        for place in self.coming():
            rest -= place.amount
            if rest <= 0:
                at_s = place.ends_s
                break
        return at_s + rounds * (self.span_s + self.guard_s)
