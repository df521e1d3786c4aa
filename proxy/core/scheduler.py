"""The scheduler: who may call next under all rates, holds, pauses and breakers together. It decides and does no IO.

Heads of lanes are taken in the order of virtual finish times, so that teams share by weight what they compete for. A
head without room has an earliest start, and a later one may go before it only where that start does not move. All
instants are seconds of one clock that never goes back; `now_s` is always an argument.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from math import inf
from typing import Final

from proxy.core.account import Why
from proxy.core.lanes import Lane, Lanes
from proxy.core.limits import Draw, Rate
from proxy.core.looks import Crowds, Look, kind, never_fits
from proxy.core.pauses import Gates
from proxy.core.purse import Purse
from proxy.core.rates import Rates
from proxy.core.shares import MoneyShares
from proxy.core.turns import Block, Held, Round, Turn, Waiter


class Scheduler:
    """One queue for all calls under one policy."""

    def __init__(self, rates: Iterable[Rate] = (), weights: Mapping[str, float] | None = None) -> None:
        """weights: by team; 1 where a team has none."""
        self.rates = Rates(rates, weights or {})
        self.gates: Final = Gates()
        self._lanes = Lanes()
        self._crowds: Final[Crowds] = {}
        self._shares: Final = MoneyShares()
        self._arrivals: Final = count(1)

    def __len__(self) -> int:
        return self._lanes.count

    # --- asking ---

    def ask(self, waiter: Waiter, now_s: float, purse: Purse) -> Turn | Block | None:
        """A turn where there is room and nobody is passed over; why never; None: join the queue.

        Where a budget is used up there is a turn all the same: whoever takes the hold refuses it.
        """
        now_s = self.rates.at(now_s)
        waiter.seq = waiter.seq or next(self._arrivals)
        waiter.wants = self.rates.wants(waiter.draw, waiter.tokens)
        fits = True
        for slots, amount in waiter.wants:
            if slots.forget(now_s) >= amount or not slots.rate.acts:
                continue
            if (never := never_fits(slots, amount, now_s)) is not None:
                return never
            fits = False
        refusal = purse.judge(waiter) if waiter.credits else None
        if (
            not fits
            or self.gates.opens_s(waiter.gates, now_s) > now_s
            or (self._lanes.count and self._passes_over(waiter))
        ):
            # In a lane it could stand behind others for as long as they wait, only to hear the same.
            used_up = refusal is not None and refusal.why is not Why.BUSY
            return Block(Held.MONEY, refusal=refusal) if used_up else None
        if refusal is not None and refusal.why is Why.BUSY:
            return None
        return self._start(waiter, purse if refusal is None else None)

    def _passes_over(self, waiter: Waiter) -> bool:
        """Whether any of those who wait may need what this one would take."""
        return (
            waiter.credits > 0
            or any(slots.waiting for slots, _ in waiter.wants)
            or self.gates.looked(waiter.gates, waiter.team) is not None
        )

    def _start(self, waiter: Waiter, purse: Purse | None) -> Turn:
        waiter.looks = self.gates.pass_through(waiter.gates, waiter.team)
        turn = self.rates.start(waiter.id, waiter.draw, waiter.tokens, waiter.wants, waiter.looks)
        if waiter.credits and purse is not None:
            cost = waiter.credits / self.rates.weight(waiter.team)
            turn.claims = self._shares.take(purse.promise(waiter), waiter.team, cost)
        if self._lanes.count and any(slots.refuses and slots.used >= slots.capacity for slots, _ in waiter.wants):
            # Whoever waits for something else and needs this one too waits in vain from now on, and hears so.
            for lane in self._lanes:
                self._lanes.wake(lane)
        return turn

    def give_back(self, turn: Turn) -> None:
        """Nothing was sent, and its team has not had its share of anything."""
        self.gates.came_back(turn.gates)
        self.rates.give_back(turn)
        team = turn.draw.facts.team
        for share, cost in turn.claims:
            share.give_back(team, cost)
        turn.claims = ()
        for place in turn.places:
            if (crowd := self._crowds.get(place.slots)) is not None:
                crowd.claims_less(team)

    def closed(self, turn: Turn, now_s: float, tokens: int | None = None) -> None:
        """The call is over; `tokens`: what it used, where that is known."""
        self.gates.came_back(turn.gates)
        self.rates.closed(turn, now_s, tokens)

    # --- the queue ---

    def join(self, waiter: Waiter, now_s: float) -> None:
        """Stand in the lane; one that was let go before and comes back stands before all that came later."""
        self.rates.at(now_s)
        waiter.seq = waiter.seq or next(self._arrivals)
        waiter.wants = self.rates.wants(waiter.draw, waiter.tokens)
        self._lanes.join(waiter)

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
                worst = Block(kind(slots), at_s, slots)
        gate_s = self.gates.opens_s(waiter.gates, now_s)
        if gate_s > worst.at_s:
            worst = Block(Held.GATE, gate_s, gate=self.gates.shut(waiter.gates, now_s))
        return worst

    def in_vain(self, waiter: Waiter, now_s: float) -> Block | None:
        """What holds a waiter up for longer than it waits, as far as can be told; None where nothing does.

        One whose time is up is none of them: what it waited for is told by the next look, which sends it away.
        """
        now_s = self.rates.at(now_s)
        block = self.predicted(waiter, now_s)
        return block if max(now_s, waiter.deadline_s) < block.at_s < inf else None

    # --- deciding ---

    def look(self, now_s: float, purse: Purse) -> Round:
        """Start whoever can start now, in the order of shares, and send away those whose time is up."""
        now_s = self.rates.at(now_s)
        if not self._lanes.count:
            return Round((), (), inf)
        look = Look(self._lanes, self._crowds, self.gates, self._shares, now_s=now_s, purse=purse)
        look.run(lambda waiter: self._start(waiter, purse))
        late = list(self._late(now_s, purse))
        again_s = inf
        if late and self._lanes.count:
            # What was kept for them is free.
            again_s = now_s
        elif self._lanes.count:
            again_s = min(look.again_s, self._lanes.next_deadline_s(), self.rates.again_s())
        return Round(look.started, [*look.refused, *late], again_s)

    def _late(self, now_s: float, purse: Purse) -> Iterator[Waiter]:
        for waiter in self._lanes.late(now_s):
            # One that never came to the head of its lane has not been looked at.
            waiter.block = waiter.block or self._holds_up(waiter, now_s, purse)
            self.leave(waiter)
            yield waiter

    def _holds_up(self, waiter: Waiter, now_s: float, purse: Purse) -> Block:
        """What a call waits for that nobody has looked at yet."""
        block = self.predicted(waiter, now_s)
        if block.at_s > now_s or not waiter.credits or (refusal := purse.judge(waiter)) is None:
            return block
        return Block(Held.BUDGET if refusal.why is Why.BUSY else Held.MONEY, refusal=refusal)

    # --- changes from outside ---

    def rerate(self, rates: Iterable[Rate], weights: Mapping[str, float]) -> None:
        """Judge by these rates from now on; who waits keeps the order of arrival, and what was given out counts."""
        standing = sorted(self.waiters(), key=lambda waiter: waiter.seq)
        earlier, self.rates, self._lanes = self.rates, Rates(rates, weights), Lanes()
        self._crowds.clear()
        self.rates.take_over(earlier)
        for waiter in standing:
            waiter.wants = self.rates.wants(waiter.draw, waiter.tokens)
            self._lanes.join(waiter)

    def cut(self, draw: Draw, now_s: float) -> None:
        """The gateway said 429 all the same: give out less for a while where its limits count."""
        for slots in self.rates.slots_of(draw):
            slots.cut(self.rates.at(now_s))
