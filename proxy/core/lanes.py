"""Lanes: who waits, in the order they came, one lane for each team and set of accounts."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING, Final

from proxy.core.shares import Share
from proxy.core.slots import Slots
from proxy.core.turns import Waiter

if TYPE_CHECKING:
    from proxy.core.heads import Crowd


@dataclass(slots=True, eq=False)
class Lane:
    """Waiters of one team on one set of accounts.

    binding: the rate's account that held its head up last.
    for_money: a budget did, and nothing else.
    share:   the clock of the account that held it up last, also of a budget: the team's claim is kept there.
    crowd:   where it stands until something changes, None while it has to be looked at.
    seen:    somebody has looked at its head, so waiting is not in vain as far as is known.
    """

    key: Hashable
    team: str
    waiters: "OrderedDict[int, Waiter]" = field(default_factory=OrderedDict)
    binding: Slots | None = None
    for_money: bool = False
    share: Share | None = None
    crowd: "Crowd | None" = None
    seen: bool = False

    @property
    def head(self) -> Waiter:
        return next(iter(self.waiters.values()))


class Lanes:
    """All lanes, and the deadlines of those who stand in them."""

    def __init__(self) -> None:
        self._lanes: Final[dict[Hashable, Lane]] = {}
        self.restless: Final[dict[Lane, None]] = {}
        """Lanes that have to be looked at, as nobody knows what would have to change first."""
        self._deadlines: Final[list[tuple[float, int, Waiter]]] = []
        self.count = 0
        """How many wait in all."""

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def join(self, waiter: Waiter) -> None:
        """Stand in the lane, behind all that came before and before all that came later."""
        key = (
            waiter.team,
            frozenset(id(slots) for slots, _ in waiter.wants),
            waiter.gates,
            waiter.draw.facts if waiter.credits else None,
        )
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key, waiter.team)
            self.wake(lane)
        waiter.lane = lane
        standing = lane.waiters
        if standing and waiter.seq < next(reversed(standing)):
            # It was let go and comes back: few came before it, and still stand here.
            before = [*takewhile(lambda seq: seq < waiter.seq, standing), waiter.seq]
            standing[waiter.seq] = waiter
            for seq in reversed(before):
                standing.move_to_end(seq, last=False)
            self.wake(lane)
        else:
            standing[waiter.seq] = waiter
        for slots, amount in waiter.wants:
            slots.waiting[lane.team] = slots.waiting.get(lane.team, 0) + amount
            slots.queued += amount
        heappush(self._deadlines, (waiter.deadline_s, waiter.seq, waiter))
        self.count += 1

    def leave(self, waiter: Waiter) -> None:
        """Go out of the queue; does nothing for one that is not in it."""
        lane = waiter.lane
        if lane is None:
            return
        waiter.lane = None
        was_head = lane.head is waiter
        del lane.waiters[waiter.seq]
        self.count -= 1
        if not lane.waiters:
            del self._lanes[lane.key]
            self.restless.pop(lane, None)
            lane.crowd = None
        elif was_head:
            self.wake(lane)
        for slots, amount in waiter.wants:
            slots.queued -= amount
            left = slots.waiting.get(lane.team, 0) - amount
            if left > 0:
                slots.waiting[lane.team] = left
            else:
                slots.waiting.pop(lane.team, None)

    def wake(self, lane: Lane) -> None:
        """Its head is another one, or something happened: it has to be looked at."""
        lane.crowd, lane.seen = None, False
        self.restless[lane] = None

    def next_deadline_s(self) -> float:
        """When the first of them gives up, inf where nobody waits."""
        while self._deadlines and not self._stands(*self._deadlines[0][1:]):
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else inf

    def late(self, now_s: float) -> Iterator[Waiter]:
        """Those whose time is up; each is still in its lane."""
        while self.next_deadline_s() <= now_s:
            yield heappop(self._deadlines)[2]

    @staticmethod
    def _stands(seq: int, waiter: Waiter) -> bool:
        return waiter.lane is not None and waiter.seq == seq
