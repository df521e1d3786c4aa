"""Looks: one look at the queue, which starts whoever can start and remembers what everybody else waits for.

A lane whose head waits for an account that is full stands in that account's crowd, and nobody looks at it until there
is room. All other lanes are restless: they are looked at each time. So a look costs what has changed, not what waits.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf
from typing import Final

from proxy.core.account import Why
from proxy.core.heads import Crowd, Key, Walk
from proxy.core.lanes import Lane, Lanes
from proxy.core.limits import Counts, Excess
from proxy.core.pauses import Gates
from proxy.core.purse import Purse
from proxy.core.shares import MoneyShares, Share
from proxy.core.slots import Change, Slots
from proxy.core.turns import REFUSED, Block, Held, Turn, Waiter

RESERVED_MAX: Final = 64
"""Heads without room whose start is kept; those behind them may start but reserve nothing."""

Crowds = dict[Slots, Crowd]


class Look:
    """One look, at one instant."""

    def __init__(
        self, lanes: Lanes, crowds: Crowds, gates: Gates, shares: MoneyShares, *, now_s: float, purse: Purse
    ) -> None:
        self._lanes: Final = lanes
        self._shares: Final = shares
        self._crowds: Final = crowds
        self._gates: Final = gates
        self._now_s: Final = now_s
        self._purse: Final = purse
        self._walk: Final = Walk()
        self._asleep: Final[list[Crowd]] = []
        self._sleepers: Walk | None = None
        self._reserved: Final[dict[Slots, list[Change]]] = {}
        self._kept = self._slept = 0
        # From an account, nothing of this amount and more can be had in this look.
        self._barred: Final[dict[Slots, int]] = {}
        self._back: Final[list[tuple[Crowd | None, Lane]]] = []
        self._aside: Final[list[tuple[int, int, Lane, Crowd]]] = []
        self._late: Final[set[Lane]] = set()
        self._elders: Final[dict[str, list[tuple[int, Lane]]]] = {}
        self.refused: Final[list[Waiter]] = []
        self.started: Final[list[tuple[Waiter, Turn]]] = []
        self.again_s = inf

    def run(self, start: Callable[[Waiter], Turn]) -> None:
        """Go through all lanes that may start. start: takes the places and the money."""
        self._wake()
        while (found := self._next()) is not None:
            key, crowd, lane = found
            if lane.head.credits and (elder := self._elder(lane)) is not None:
                crowd.push(lane)
                self._walk.add(crowd)
                crowd, lane = elder
            waiter = lane.head
            if lane.seen and self._in_vain(waiter):
                self._back.append((crowd if self._stays(crowd) else None, lane))
                continue
            block = self._blocked(waiter)
            if block is None and self._contended(waiter) and self._keep_for_sleepers(key):
                block = self._blocked(waiter)
            if block is None and lane not in self._late and (looked := self._gates.looked(waiter.gates, waiter.team)):
                # Teams look in turn: those that have not looked, or longer ago, come first.
                self._late.add(lane)
                heappush(self._aside, (looked, waiter.seq, lane, crowd))
                continue
            # One that starts keeps what held it up until now, or those before it.
            before = Block(Held.RATE, self._now_s, lane.binding) if lane.binding is not None else None
            waiter.block = block or waiter.block or before
            if block is not None and block.held not in REFUSED:
                self._waits(lane, waiter, block)
                continue
            self._lanes.leave(waiter)
            if block is None:
                self.started.append((waiter, start(waiter)))
            else:
                self.refused.append(waiter)
            if lane.waiters:
                self._come_next(lane, crowd)
        self._settle()

    # --- who is looked at ---

    def _wake(self) -> None:
        for slots, crowd in list(self._crowds.items()):
            slots.forget(self._now_s)
            if crowd.top() is None:
                del self._crowds[slots]
            elif slots.used < slots.capacity:
                self._walk.add(crowd)
            else:
                self._asleep.append(crowd)
        loose: dict[Share | None, Crowd] = {}
        for lane in self._lanes.restless:
            share = self._share(lane)
            loose.setdefault(share, Crowd(share)).push(lane)
            self._remember(lane)
        self._lanes.restless.clear()
        for crowd in loose.values():
            self._walk.add(crowd)

    def _stays(self, crowd: Crowd) -> bool:
        """Whether a crowd is there beyond this look."""
        return crowd.slots is not None and self._crowds.get(crowd.slots) is crowd

    def _next(self) -> tuple[Key, Crowd, Lane] | None:
        while (found := self._walk.next()) is not None:
            key, crowd = found
            slots = crowd.slots
            if (
                slots is not None
                and self._stays(crowd)
                and (slots.used >= slots.capacity or self._barred.get(slots, 2) <= 1)
            ):
                # Nobody of it can start any more.
                self._asleep.append(crowd)
                if self._sleepers is not None:
                    self._sleepers.add(crowd)
                continue
            lane = crowd.pop()
            self._walk.add(crowd)
            return key, crowd, lane
        if self._aside:
            _, seq, lane, crowd = heappop(self._aside)
            return (inf, seq), crowd, lane
        return None

    def _come_next(self, lane: Lane, crowd: Crowd) -> None:
        """The head is gone, and the next one may start too."""
        del self._lanes.restless[lane]
        slots = crowd.slots
        if slots is not None and self._stays(crowd) and slots.rate.counts is Counts.TOKENS:
            # It may ask for nothing of what this crowd waits for.
            crowd = Crowd(slots.share)
        crowd.push(lane)
        self._remember(lane)
        self._walk.add(crowd)

    def _remember(self, lane: Lane) -> None:
        if lane.for_money:
            heappush(self._elders.setdefault(lane.team, []), (lane.head.seq, lane))

    def _elder(self, lane: Lane) -> tuple[Crowd, Lane] | None:
        """The lane of the same team whose head waits for money, came before that of this lane, and was not looked at.

        Budgets have clocks of their own, which say nothing about the order of one team's calls.
        """
        elders = self._elders.get(lane.team)
        while elders and elders[0][0] < lane.head.seq:
            seq, elder = heappop(elders)
            if elder.crowd is not None and elder.head.seq == seq:
                crowd, elder.crowd = elder.crowd, None
                return crowd, elder
        return None

    def _share(self, lane: Lane) -> Share | None:
        """Where its team's claim is kept: in what held it up last, else in what will, as far as is known."""
        if lane.share is not None:
            return lane.share
        if lane.head.credits and (share := self._shares.ahead(self._purse.accounts(lane.head), lane.team)) is not None:
            return share
        tight: Iterable[Slots] = (slots for slots, _ in lane.head.wants if slots.rate.acts)
        slots = min(tight, key=lambda one: (one.capacity - one.used) / max(1, one.amount), default=None)
        return slots.share if slots is not None else None

    def _in_vain(self, waiter: Waiter) -> bool:
        """Whether somebody before it asked for no more in vain, or has a pause in its way as all have."""
        barred = self._barred
        if barred and any(amount >= barred.get(slots, inf) for slots, amount in waiter.wants):
            return True
        if self._kept < RESERVED_MAX or (gate_s := self._gates.opens_s(waiter.gates, self._now_s)) <= self._now_s:
            return False
        self.again_s = min(self.again_s, gate_s)
        return True

    # --- who waits ---

    def _blocked(self, waiter: Waiter) -> Block | None:
        """Why a head does not start now, None where it does."""
        worst, now_s = None, self._now_s
        if (gate_s := self._gates.opens_s(waiter.gates, now_s)) > now_s:
            worst = Block(Held.GATE, gate_s, gate=self._gates.shut(waiter.gates, now_s))
        for slots, amount in waiter.wants:
            if not slots.rate.acts:
                continue
            slots.forget(now_s)
            at_s = slots.earliest(amount, now_s, self._reserved.get(slots, ()))
            if at_s <= now_s:
                continue
            if not slots.fits(amount) and (never := never_fits(slots, amount, now_s)) is not None:
                return never
            if worst is None or at_s > worst.at_s:
                worst = Block(kind(slots), at_s, slots)
        if waiter.credits and (refusal := self._purse.judge(waiter)) is not None:
            if refusal.why is not Why.BUSY:
                return Block(Held.MONEY, refusal=refusal)
            if worst is None:
                # Those behind it start only where that does not move its own start, and nobody knows when that is.
                self.again_s = min(self.again_s, now_s + self._purse.keep(waiter))
            worst = worst if worst is not None and worst.at_s == inf else Block(Held.BUDGET, refusal=refusal)
        return worst

    def _waits(self, lane: Lane, waiter: Waiter, block: Block) -> None:
        lane.seen = True
        lane.binding = block.slots or lane.binding
        lane.for_money = block.refusal is not None
        if block.refusal is not None:
            lane.share = self._shares.of(block.refusal)
        elif block.slots is not None:
            lane.share = block.slots.share
        self.again_s = min(self.again_s, block.at_s)
        if block.slots is not None:
            amount = next(amount for slots, amount in waiter.wants if slots is block.slots)
            self._barred[block.slots] = min(amount, self._barred.get(block.slots, amount))
        if block.at_s < inf and self._kept < RESERVED_MAX:
            self._keep(waiter, block.at_s)
        full = next((one for one, amount in waiter.wants if one.rate.acts and not one.fits(amount)), None)
        if full is None:
            self._back.append((None, lane))
            return
        if block.slots is None or block.slots.used < block.slots.capacity:
            lane.binding = full
        full = lane.binding or full
        lane.share = full.share
        crowd = self._crowds.get(full)
        if crowd is None:
            crowd = self._crowds[full] = Crowd(full.share, full)
        self._back.append((crowd, lane))

    def _settle(self) -> None:
        """Everybody who was looked at goes where it waits; when there will be room for one of them."""
        for crowd, lane in self._back:
            if crowd is not None:
                crowd.push(lane)
            else:
                lane.crowd = None
                self._lanes.restless[lane] = None
        for slots in self._crowds:
            first = next(slots.coming(), None)
            if first is not None:
                self.again_s = min(self.again_s, first.ends_s if slots.used >= slots.capacity else inf)

    # --- what is kept for whom ---

    def _keep(self, waiter: Waiter, at_s: float) -> None:
        self._kept += 1
        for slots, amount in waiter.wants:
            if slots.rate.acts:
                changes = self._reserved.get(slots)
                if changes is None:
                    changes = self._reserved[slots] = slots.changes()
                slots.reserve(changes, at_s, amount)

    @staticmethod
    def _contended(waiter: Waiter) -> bool:
        """Whether anybody else who waits may need what this one would take."""
        return any(slots.used + slots.queued > slots.capacity for slots, _ in waiter.wants if slots.rate.acts)

    def _keep_for_sleepers(self, key: Key) -> bool:
        """Keep the starts of those who come before and nobody has looked at; whether there are any."""
        if self._sleepers is None:
            # Of those who wait for calls to end nobody knows the start.
            self._sleepers = Walk(crowd for crowd in self._asleep if _comes(crowd.slots))
        kept = self._kept
        while self._kept < RESERVED_MAX and self._slept < RESERVED_MAX and (found := self._sleepers.next()):
            at, crowd = found
            if at >= key:
                self._sleepers.add(crowd)
                break
            lane = crowd.pop()
            self._sleepers.add(crowd)
            self._back.append((crowd, lane))
            self._slept += 1
            block = self._blocked(lane.head)
            if block is not None and block.held not in REFUSED:
                lane.head.block = block
                if block.at_s < inf:
                    self._keep(lane.head, block.at_s)
        return self._kept > kept


def _comes(slots: Slots | None) -> bool:
    return slots is not None and next(slots.coming(), None) is not None


def kind(slots: Slots) -> Held:
    """What waiting for an account is."""
    return Held.FLIGHT if slots.rate.counts is Counts.IN_FLIGHT else Held.RATE


def never_fits(slots: Slots, amount: int, now_s: float) -> Block | None:
    """Why a call that does not fit will not wait for this account, None where it will."""
    if amount > slots.amount:
        return Block(Held.NEVER, slots=slots)
    if slots.rate.excess is Excess.REFUSE:
        return Block(Held.SPENT, slots.earliest(amount, now_s), slots)
    return None
