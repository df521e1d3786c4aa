"""Simulation: the server's own scheduler and accounts over described traffic, in virtual time. No IO, no clock.

What runs here is what runs in the server: the same queue, rates, shares, predictions and budgets. Only the gateway is
imagined: it takes as long as the traffic says, and counts a call when it is written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf

from proxy.core.accounts import Accounts
from proxy.core.limits import Draw
from proxy.core.policy import WAIT_MAX_S, Policy
from proxy.core.purse import Purse
from proxy.core.scheduler import Scheduler
from proxy.core.turns import Block, Held, Turn, Waiter


@dataclass(frozen=True, slots=True)
class Arrival:
    """One call of the traffic.

    at_s:    since the start.        takes_s: how long its answer takes.
    tokens:  the most it may use.    held, charged: credits it holds and then costs, in units of 1e-8.
    used:    tokens that it used, None where nobody knows.
    head_s:  when its answer begins and it has been counted for sure, None for a gateway that counts within the guard.
    wait_max_s: how long its caller waits, None for as long as the team.
    """

    at_s: float
    draw: Draw
    takes_s: float = 1.0
    tokens: int = 0
    held: int = 0
    charged: int = 0
    used: int | None = None
    head_s: float | None = None
    wait_max_s: float | None = None


@dataclass(slots=True)
class TeamResult:
    """What became of a team's calls. waits_s: of those that started, in seconds, in the order they did."""

    calls: int = 0
    waits_s: list[float] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    charged: int = 0

    def wait_s(self, share: float) -> float:
        """The wait that so large a share of the started calls did not exceed."""
        waits = sorted(self.waits_s)
        return waits[min(len(waits) - 1, int(share * len(waits)))] if waits else 0.0


@dataclass(slots=True)
class Outcome:
    """What a policy makes of the traffic.

    used:   share of each rate's allowance over the whole time, fullest account.
    grants: who started and when, in order.
    """

    teams: dict[str, TeamResult]
    used: dict[str, float]
    grants: list[tuple[float, Arrival]]


REFUSALS: Mapping[Held, str] = {
    Held.RATE: "turn_too_far",
    Held.GATE: "turn_too_far",
    Held.FLIGHT: "budget_busy",
    Held.BUDGET: "budget_busy",
    Held.NEVER: "limit_exhausted",
    Held.SPENT: "limit_exhausted",
    Held.MONEY: "budget_exhausted",
}
"""What callers hear."""


class Simulation:
    """One policy and one stretch of traffic."""

    def __init__(self, policy: Policy, begins_s: float) -> None:
        """begins_s: wall-clock instant at which the traffic begins, which calendar budgets go by."""
        self._policy = policy
        self._begins_s = begins_s
        self._scheduler = Scheduler(policy.rates, policy.weights)
        self._accounts = Accounts(policy.budgets)
        self._now_s = 0.0
        self._ends: list[tuple[float, int, Turn, Arrival]] = []
        self._heads: list[tuple[float, int, Turn]] = []
        self._number = count()
        self._asked: dict[str, Arrival] = {}
        self._taken: dict[tuple[str, tuple[str, ...]], int] = {}
        self._outcome = Outcome({}, {}, [])

    def run(self, traffic: Iterable[Arrival]) -> Outcome:
        """Play all of it, in order of time, to the last answer."""
        again_s = inf
        coming = iter(traffic)
        arrival = next(coming, None)
        last_s = 0.0
        while arrival is not None or self._ends or len(self._scheduler):
            ends_s = self._ends[0][0] if self._ends else inf
            head_s = self._heads[0][0] if self._heads else inf
            at_s = min(arrival.at_s if arrival else inf, ends_s, head_s, again_s)
            if at_s == inf:
                break
            self._now_s = max(self._now_s, at_s)
            while self._heads and self._heads[0][0] <= self._now_s:
                head_s, _, turn = heappop(self._heads)
                self._scheduler.rates.counted(turn, head_s)
            while self._ends and self._ends[0][0] <= self._now_s:
                _, _, turn, done = heappop(self._ends)
                self._scheduler.closed(turn, self._now_s, done.used)
                self._accounts.end(turn.id, done.charged)
                self._team(turn.draw.facts.team).charged += done.charged
            while arrival is not None and arrival.at_s <= self._now_s:
                last_s = max(last_s, arrival.at_s)
                self._ask(arrival)
                arrival = next(coming, None)
            again_s = self._look()
        self._outcome.used = self._used(max(last_s, self._now_s))
        return self._outcome

    def _team(self, name: str) -> TeamResult:
        return self._outcome.teams.setdefault(name, TeamResult())

    def _ask(self, arrival: Arrival) -> None:
        team = self._policy.teams.get(arrival.draw.facts.team)
        patience_s = team.wait_max_s if team is not None else WAIT_MAX_S
        if arrival.wait_max_s is not None:
            patience_s = min(patience_s, arrival.wait_max_s)
        name = f"call {next(self._number)}"
        waiter = Waiter(
            name, arrival.draw, arrival.at_s + patience_s, arrival.tokens, arrival.held, asked_s=arrival.at_s
        )
        self._asked[name] = arrival
        self._team(waiter.team).calls += 1
        answer = self._scheduler.ask(waiter, self._now_s, self._purse())
        if isinstance(answer, Turn):
            self._accounts.take_back(answer.id)
            refusal = self._purse().judge(waiter)
            if refusal is None:
                self._start(waiter, answer)
                return
            self._scheduler.give_back(answer)
            self._refuse(waiter, Block(Held.MONEY, refusal=refusal))
            return
        if answer is not None:
            self._refuse(waiter, answer)
            return
        self._scheduler.join(waiter, self._now_s)
        self._look()
        if waiter.lane is None:
            return
        if (block := self._scheduler.in_vain(waiter, self._now_s)) is not None:
            self._scheduler.leave(waiter)
            self._refuse(waiter, block)

    def _purse(self) -> Purse:
        return Purse(self._accounts, self._begins_s + self._now_s)

    def _look(self) -> float:
        done = self._scheduler.look(self._now_s, self._purse())
        for waiter, turn in done.started:
            self._accounts.take_back(turn.id)
            self._start(waiter, turn)
        for waiter in done.refused:
            assert waiter.block is not None
            self._refuse(waiter, waiter.block)
        return done.again_s

    def _start(self, waiter: Waiter, turn: Turn) -> None:
        arrival = self._asked.pop(waiter.id)
        self._accounts.hold(turn.id, waiter.draw.facts, waiter.credits, self._begins_s + self._now_s)
        self._scheduler.rates.written(turn, self._now_s)
        for place in turn.places:
            key = place.slots.rate.name, place.slots.group
            self._taken[key] = self._taken.get(key, 0) + place.amount
        heappush(self._ends, (self._now_s + arrival.takes_s, next(self._number), turn, arrival))
        if arrival.head_s is not None:
            heappush(self._heads, (self._now_s + arrival.head_s, next(self._number), turn))
        self._team(waiter.team).waits_s.append(self._now_s - waiter.asked_s)
        self._outcome.grants.append((self._now_s, arrival))

    def _refuse(self, waiter: Waiter, block: Block) -> None:
        self._asked.pop(waiter.id, None)
        refused = self._team(waiter.team).refused
        reason = REFUSALS[block.held]
        refused[reason] = refused.get(reason, 0) + 1

    def _used(self, span_s: float) -> dict[str, float]:
        used = {rate.name: 0.0 for rate in self._policy.rates if rate.window_s}
        for slots in self._scheduler.rates.all_slots(self._now_s):
            name, window_s = slots.rate.name, slots.rate.window_s
            if window_s and slots.amount:
                allowance = slots.amount * max(1.0, span_s / window_s)
                used[name] = max(used[name], self._taken.get((name, slots.group), 0) / allowance)
        return used
