"""Heads: the first of each lane, in the order in which their teams have a claim to start.

A team's claim is kept in the account that holds its head up, a rate's or a budget's: the virtual time at which the next
call of the team would begin there if the team had exactly its share. Claims in different accounts are compared by how
far they are ahead. A queue is looked at again and again, so the order is kept between looks and never made anew: what
has not changed since the last look costs nothing.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Final

from proxy.core.lanes import Lane
from proxy.core.shares import Share
from proxy.core.slots import Slots

Key = tuple[float, int]
"""How far ahead of its share a head's team is, and when the head came."""


class Crowd:
    """Lanes whose heads one account holds up, in order. Entries that are no longer true are dropped when they come up.

    due:   teams that have not had more than their share, by the arrival of their first head.
    ahead: teams that have had more, by their claim.
    """

    def __init__(self, share: Share | None, slots: Slots | None = None) -> None:
        """share: the account's clock, None for lanes that draw on no account that acts.

        slots: the account, where the crowd stands until it has room.
        """
        self.share: Final = share
        self.slots: Final = slots
        self._lanes: Final[dict[str, list[tuple[int, Lane]]]] = {}
        self._entries: Final[dict[str, tuple[float, int]]] = {}
        self._due: Final[list[tuple[int, str]]] = []
        self._ahead: Final[list[tuple[float, int, str]]] = []

    def push(self, lane: Lane) -> None:
        """A lane comes in with the head it has."""
        lane.crowd = self
        heappush(self._lanes.setdefault(lane.team, []), (lane.head.seq, lane))
        self._enter(lane.team)

    def top(self) -> Key | None:
        """The key of the lane that comes next; None where there is none."""
        while True:
            start_tag = self.share.start_tag if self.share is not None else 0.0
            while self._ahead and self._ahead[0][0] <= start_tag:
                _, seq, team = heappop(self._ahead)
                heappush(self._due, (seq, team))
            if not self._due and not self._ahead:
                return None
            claim, seq, team = (start_tag, *self._due[0]) if self._due else self._ahead[0]
            if self._entries.get(team, (0.0, 0))[1] == seq:
                if self._claim(team) <= claim and self._stands(*self._lanes[team][0]):
                    return max(0.0, claim - start_tag), seq
                # The clock may have gone back since, so that the same entry belongs to the others now.
                del self._entries[self._drop()]
                self._enter(team)
            else:
                self._drop()

    def _drop(self) -> str:
        """Take out the first entry; its team."""
        return heappop(self._due)[1] if self._due else heappop(self._ahead)[2]

    def pop(self) -> Lane:
        """Take out the lane whose key `top` told a moment ago."""
        team = self._drop()
        del self._entries[team]
        lane = heappop(self._lanes[team])[1]
        lane.crowd = None
        self._enter(team)
        return lane

    def claims_less(self, team: str) -> None:
        """A call of the team was not sent, so it comes earlier; that it comes later shows when it comes up."""
        if team in self._entries:
            self._enter(team)

    def _stands(self, seq: int, lane: Lane) -> bool:
        return lane.crowd is self and bool(lane.waiters) and lane.head.seq == seq

    def _claim(self, team: str) -> float:
        return self.share.claim(team) if self.share is not None else 0.0

    def _enter(self, team: str) -> None:
        """Make the entry of a team's first head."""
        lanes = self._lanes[team]
        while lanes and not self._stands(*lanes[0]):
            heappop(lanes)
        if not lanes:
            del self._lanes[team]
            self._entries.pop(team, None)
            return
        claim, seq = self._claim(team), lanes[0][0]
        if self._entries.get(team) == (claim, seq):
            return
        self._entries[team] = (claim, seq)
        if self.share is None or claim <= self.share.start_tag:
            heappush(self._due, (seq, team))
        else:
            heappush(self._ahead, (claim, seq, team))


class Walk:
    """Goes through the lanes of several crowds in order. What it took out may be pushed into a crowd again."""

    def __init__(self, crowds: Iterable[Crowd] = ()) -> None:
        self._number: Final = count()
        self._heap: Final[list[tuple[Key, int, Crowd]]] = []
        for crowd in crowds:
            self.add(crowd)

    def add(self, crowd: Crowd) -> None:
        """Go through this one too."""
        if (key := crowd.top()) is not None:
            heappush(self._heap, (key, next(self._number), crowd))

    def next(self) -> tuple[Key, Crowd] | None:
        """The crowd with the lane that comes next; it is out of the walk until it is added again."""
        while self._heap:
            _, _, crowd = heappop(self._heap)
            key = crowd.top()
            if key is None:
                continue
            if self._heap and key > self._heap[0][0]:
                # Somebody of its team started meanwhile.
                heappush(self._heap, (key, next(self._number), crowd))
                continue
            return key, crowd
        return None
