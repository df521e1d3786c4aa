"""The scheduler: who may call next under all rates, holds, pauses and breakers together. It decides and does no IO.

Heads of lanes are taken in the order of virtual finish times, so that teams share by weight what they compete for. A
head without room has an earliest start, and a later one may go before it only where that start does not move. All
instants are seconds of one clock that never goes back; `now_s` is always an argument.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Final

from proxy.core.accounts import Why
from proxy.core.heads import Heads
from proxy.core.lanes import Lane, Lanes
from proxy.core.limits import Counts, Draw, Excess, Rate
from proxy.core.pauses import Gates
from proxy.core.rates import Rates
from proxy.core.slots import Reserved, Slots
from proxy.core.turns import REFUSED, Block, Held, Purse, Round, Turn, Waiter

RESERVED_MAX: Final = 64
"""Heads without room whose start is kept; those behind them may start but reserve nothing."""

Reservations = dict[Slots, list[Reserved]]


def _boundless(_: Waiter) -> None:
    """A purse that has room for everything."""


class Scheduler:
    """One queue for all calls under one policy."""

    def __init__(self, rates: Iterable[Rate] = (), weights: Mapping[str, float] | None = None) -> None:
        """weights: by team; 1 where a team has none."""
        self.rates = Rates(rates, weights or {})
        self.gates: Final = Gates()
        self._lanes = Lanes()

    def __len__(self) -> int:
        return len(self._lanes)

    # --- asking ---

    def ask(self, waiter: Waiter, now_s: float) -> Turn | Block | None:
        """A turn where there is room and nobody is passed over; why never; None: join the queue.

        Budgets are not looked at: whoever takes the hold does that.
        """
        now_s = self.rates.at(now_s)
        waiter.wants = self.rates.wants(waiter.draw, waiter.tokens)
        fits = True
        for slots, amount in waiter.wants:
            slots.forget(now_s)
            if not slots.rate.acts or slots.fits(amount):
                continue
            if (never := _never(slots, amount, now_s)) is not None:
                return never
            fits = False
        if not fits or self.gates.opens_s(waiter.gates, now_s) > now_s or self._passes_over(waiter):
            return None
        return self._start(waiter)

    def _passes_over(self, waiter: Waiter) -> bool:
        """Whether somebody waits who may need what this one would take."""
        return len(self._lanes) > 0 and (
            waiter.credits > 0
            or any(slots.waiting for slots, _ in waiter.wants)
            or self.gates.looked(waiter.gates, waiter.team) is not None
        )

    def _start(self, waiter: Waiter) -> Turn:
        waiter.looks = self.gates.pass_through(waiter.gates, waiter.team)
        return self.rates.start(waiter.id, waiter.draw, waiter.tokens, waiter.wants, waiter.looks)

    def give_back(self, turn: Turn) -> None:
        """Nothing was sent."""
        self.gates.came_back(turn.gates)
        self.rates.give_back(turn)

    def closed(self, turn: Turn, now_s: float, tokens: int | None = None) -> None:
        """The call is over; `tokens`: what it used, where that is known."""
        self.gates.came_back(turn.gates)
        self.rates.closed(turn, now_s, tokens)

    # --- the queue ---

    def join(self, waiter: Waiter, now_s: float, *, first: bool = False) -> None:
        """Stand in the lane; `first`: before all others in it, as a call that was sent back does."""
        self.rates.at(now_s)
        waiter.wants = self.rates.wants(waiter.draw, waiter.tokens)
        self._lanes.join(waiter, first=first)

    def leave(self, waiter: Waiter) -> None:
        """Go out of the queue; does nothing for one that is not in it."""
        self._lanes.leave(waiter)

    def waiters(self) -> Iterator[Waiter]:
        """All who wait, lane by lane."""
        for lane in self._lanes:
            yield from lane.waiters.values()

    def lanes(self) -> Iterator[Lane]:
        """Every lane; each has a head."""
        return iter(self._lanes)

    def predicted(self, waiter: Waiter, now_s: float) -> Block:
        """What holds a waiter up longest and until when: an estimate from its share of what comes back."""
        now_s = self.rates.at(now_s)
        mine = self.rates.weight(waiter.team)
        worst = Block(Held.RATE, now_s)
        for slots, amount in waiter.wants:
            if not slots.rate.acts:
                continue
            slots.forget(now_s)
            before = max(0, slots.waiting.get(waiter.team, 0) - amount)
            others = sum(
                min(asked, int((before + amount) * self.rates.weight(team) / mine))
                for team, asked in slots.waiting.items()
                if team != waiter.team
            )
            at_s = slots.predicted(before + others, amount, now_s)
            if at_s > worst.at_s:
                worst = Block(_kind(slots), at_s, slots)
        gate_s = self.gates.opens_s(waiter.gates, now_s)
        if gate_s > worst.at_s:
            worst = Block(Held.GATE, gate_s, gate=self.gates.shut(waiter.gates, now_s))
        return worst

    # --- deciding ---

    def look(self, now_s: float, purse: Purse = _boundless) -> Round:
        """Start whoever can start now, in the order of shares, and send away those whose time is up."""
        now_s = self.rates.at(now_s)
        refused: list[Waiter] = []
        started: list[tuple[Waiter, Turn]] = []
        reserved: Reservations = {}
        again_s, kept = inf, 0
        heads, aside, late = Heads(self._lanes), list[tuple[int, int, Lane]](), set[Lane]()
        while (lane := heads.pop() or (heappop(aside)[2] if aside else None)) is not None:
            waiter = lane.head
            block = self._blocked(waiter, now_s, reserved, purse)
            if block is None and lane not in late and (looked := self.gates.looked(waiter.gates, waiter.team)):
                # Teams look in turn: those that have not looked, or longer ago, come first.
                late.add(lane)
                heappush(aside, (looked, waiter.seq, lane))
                continue
            # One that starts keeps what held it up until now, or those before it.
            waiter.block = block or waiter.block or (Block(Held.RATE, now_s, lane.binding) if lane.binding else None)
            if block is not None and block.held not in REFUSED:
                lane.binding = block.slots or lane.binding
                again_s = min(again_s, block.at_s)
                if block.at_s < inf and kept < RESERVED_MAX:
                    kept += 1
                    self._reserve(waiter, block.at_s, reserved)
                continue
            self.leave(waiter)
            if block is None:
                started.append((waiter, self._start(waiter)))
            else:
                refused.append(waiter)
            if lane.waiters:
                heads.push(lane)
        refused += self._late(now_s)
        if len(self._lanes):
            again_s = min(again_s, self._lanes.next_deadline_s(), self.rates.again_s())
        return Round(started, refused, again_s)

    def _late(self, now_s: float) -> Iterator[Waiter]:
        for waiter in self._lanes.late(now_s):
            # One that never came to the head of its lane has not been looked at.
            waiter.block = waiter.block or self.predicted(waiter, now_s)
            self.leave(waiter)
            yield waiter

    def _blocked(
        self, waiter: Waiter, now_s: float, reserved: Mapping[Slots, Sequence[Reserved]], purse: Purse
    ) -> Block | None:
        """Why a head does not start now, None where it does."""
        worst = None
        if (gate_s := self.gates.opens_s(waiter.gates, now_s)) > now_s:
            worst = Block(Held.GATE, gate_s, gate=self.gates.shut(waiter.gates, now_s))
        for slots, amount in waiter.wants:
            if not slots.rate.acts:
                continue
            slots.forget(now_s)
            at_s = slots.earliest(amount, now_s, reserved.get(slots, ()))
            if at_s <= now_s:
                continue
            if not slots.fits(amount) and (never := _never(slots, amount, now_s)) is not None:
                return never
            if worst is None or at_s > worst.at_s:
                worst = Block(_kind(slots), at_s, slots)
        if waiter.credits and (refusal := purse(waiter)) is not None:
            if refusal.why is not Why.BUSY:
                return Block(Held.MONEY, refusal=refusal)
            worst = worst if worst is not None and worst.at_s == inf else Block(Held.BUDGET, refusal=refusal)
        return worst

    def _reserve(self, waiter: Waiter, at_s: float, reserved: Reservations) -> None:
        for slots, amount in waiter.wants:
            if slots.rate.acts:
                reserved.setdefault(slots, []).append((at_s, amount))

    # --- changes from outside ---

    def rerate(self, rates: Iterable[Rate], weights: Mapping[str, float]) -> None:
        """Judge by these rates from now on; who waits keeps the order of arrival, and what was given out counts."""
        standing = sorted(self.waiters(), key=lambda waiter: waiter.seq)
        earlier, self.rates, self._lanes = self.rates, Rates(rates, weights), Lanes()
        self.rates.take_over(earlier)
        for waiter in standing:
            waiter.wants = self.rates.wants(waiter.draw, waiter.tokens)
            self._lanes.join(waiter, first=False)

    def cut(self, draw: Draw, now_s: float) -> None:
        """The gateway said 429 all the same: give out less for a while where its limits count."""
        for slots in self.rates.slots_of(draw):
            slots.cut(self.rates.at(now_s))


def _kind(slots: Slots) -> Held:
    return Held.FLIGHT if slots.rate.counts is Counts.IN_FLIGHT else Held.RATE


def _never(slots: Slots, amount: int, now_s: float) -> Block | None:
    """Why a call that does not fit will not wait for this account, None where it will."""
    if amount > slots.amount:
        return Block(Held.NEVER, slots=slots)
    if slots.rate.excess is Excess.REFUSE:
        return Block(Held.SPENT, slots.earliest(amount, now_s), slots)
    return None
