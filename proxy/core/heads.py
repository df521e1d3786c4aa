"""Heads: the first of each lane, in the order in which their teams have a claim to start.

A team's claim is kept in the account that holds its head up: the virtual time at which the next call of the team would
begin there if the team had exactly its share. Claims in different accounts are compared by how far they are ahead.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final

from proxy.core.lanes import Lane
from proxy.core.slots import Slots

Entry = tuple[float, int, Lane]


class Heads:
    """One round's order of heads. Starting one changes the claims of its team, so heads are asked for one by one."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self._heaps: Final[dict[Slots | None, list[Entry]]] = {}
        for lane in lanes:
            self.push(lane)

    def push(self, lane: Lane) -> None:
        """A lane has a head that nobody has looked at in this round."""
        slots = self._binding(lane)
        heappush(self._heaps.setdefault(slots, []), (self._claim(lane, slots), lane.head.seq, lane))

    def pop(self) -> Lane | None:
        """The lane whose head comes next, None where all were looked at."""
        while self._heaps:
            slots = min(self._heaps, key=self._ahead)
            heap = self._heaps[slots]
            claim, seq, lane = heappop(heap)
            if not heap:
                del self._heaps[slots]
            now = (self._claim(lane, slots), seq)
            if heap and now[0] > claim and now > heap[0][:2]:
                # Somebody of its team started meanwhile.
                heappush(heap, (*now, lane))
                continue
            return lane
        return None

    def _ahead(self, slots: Slots | None) -> tuple[float, int]:
        claim, seq, _ = self._heaps[slots][0]
        return max(0.0, claim - slots.start_tag) if slots is not None else 0.0, seq

    @staticmethod
    def _binding(lane: Lane) -> Slots | None:
        if lane.binding is not None:
            return lane.binding
        tight = [slots for slots, _ in lane.head.wants if slots.rate.acts]
        return min(tight, key=lambda one: (one.capacity - one.used) / max(1, one.amount), default=None)

    @staticmethod
    def _claim(lane: Lane, slots: Slots | None) -> float:
        return max(slots.start_tag, slots.finish_tags.get(lane.team, 0.0)) if slots is not None else 0.0
