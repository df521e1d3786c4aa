"""After any history the used figures of a home are what a fresh sum over its accepted steps says, under whatever policy.

The sum here is the plainest there is: all holds and corrections ever taken, gone through from the first one for each
budget that is asked about. Nothing of it is kept between two questions.
"""

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from proxy.core.charges import Basis, Charge, Ending
from proxy.core.facts import Facts
from proxy.core.ledger import Adjust, Expire, Hold, Outcome, Phase, Resolve, Settle, Void
from proxy.core.limits import Budget, Each, Excess, Match, drawn
from proxy.core.windows import Calendar, Per, Sliding
from proxy.stores.ledger.contract import LedgerStore
from proxy.stores.ledger.memory import MemoryLedger
from proxy.stores.ledger.sqlite import SqliteLedger

BEGIN_S = 1_800_000_000.0
FACTS = tuple(
    Facts(team, key, route, model)
    for team, key, route, model in (
        ("red", "a", "chat", "m-1"),
        ("red", "b", "chat", "m-2"),
        ("red", "a", "images", "i-1"),
        ("blue", "a", "chat", "m-1"),
        ("blue", "c", "chat", "m-2"),
    )
)
DAY, HOUR, KOLKATA = Calendar(Per.DAY), Calendar(Per.HOUR), Calendar(Per.DAY, ZoneInfo("Asia/Kolkata"))
# fmt: off
POLICIES = {
    "first":    (Budget("day", 200, DAY), Budget("each-key", 90, Sliding(3600.0), each=Each.KEY)),
    "renamed":  (Budget("daily", 200, DAY), Budget("per-key", 90, Sliding(3600.0), each=Each.KEY)),
    "narrowed": (Budget("day", 120, DAY, match=Match(model="m-*")), Budget("each-key", 60, Sliding(600.0), match=Match(team="red"), each=Each.KEY)),
    "added":    (Budget("day", 200, DAY), Budget("team", 150, HOUR, each=Each.TEAM, amounts={"blue": 70}), Budget("ever", 900, Calendar(Per.TOTAL))),
    "moved":    (Budget("day", 200, KOLKATA), Budget("red", 130, KOLKATA, match=Match(team="red"), instead_of="day")),
    "watched":  (Budget("day", 40, DAY, shadow=True), Budget("warned", 40, HOUR, excess=Excess.WARN), Budget("week", 260, Calendar(Per.WEEK))),
    "none":     (),
}
# fmt: on


@dataclass(frozen=True)
class Taken:
    """A hold or a correction that was accepted, as its steps left it. doubt: it may be resolved by hand."""

    facts: Facts
    at_s: float
    held: int
    phase: Phase = Phase.HELD
    charged: int = 0
    doubt: bool = False


class Histories(RuleBasedStateMachine):
    """Every step that may happen to a home, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.policy = "first"
        self.clock_s = self.latest_s = BEGIN_S
        self.taken: dict[str, Taken] = {}
        self.count = 0
        self.home: Any = None

    async def open(self) -> LedgerStore:
        raise NotImplementedError

    @initialize()
    def opened(self) -> None:
        self.home = self.run(self.open())

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def apply(self, step: Any) -> Outcome:
        (outcome,) = self.run(self.home.apply([step]))
        return outcome

    # --- the plain sum ---

    def used(self, budget: Budget, group: tuple[str, ...]) -> tuple[int, int]:
        settled = held = 0
        for one in self.taken.values():
            if budget not in drawn(POLICIES[self.policy], one.facts) or budget.group(one.facts) != group:
                continue
            if isinstance(budget.window, Sliding):
                if one.at_s <= self.latest_s - budget.window.seconds:
                    continue
            elif budget.window.window(one.at_s) != budget.window.window(self.latest_s):
                continue
            settled += one.charged
            held += one.held if one.phase is Phase.HELD else 0
        return settled, held

    def fits(self, facts: Facts, amount: int) -> bool:
        budgets = drawn(POLICIES[self.policy], facts)
        return amount == 0 or all(
            sum(self.used(budget, budget.group(facts))) + amount <= budget.amount_for(budget.group(facts))
            for budget in budgets
            if budget.acts
        )

    def now_s(self) -> float:
        """What steps are dated: the books never go back."""
        self.latest_s = max(self.latest_s, self.clock_s)
        return self.clock_s

    # --- what happens ---

    @rule(facts=st.sampled_from(FACTS), amount=st.integers(0, 70))
    def hold(self, facts: Facts, amount: int) -> None:
        self.count += 1
        name, at_s = f"h{self.count}", self.now_s()
        fits = self.fits(facts, amount)
        assert self.apply(Hold(name, facts, amount, at_s)) is (Outcome.OK if fits else Outcome.OVER_BUDGET)
        if fits:
            self.taken[name] = Taken(facts, self.latest_s, amount)

    def some(self, pick: int, *phases: Phase) -> str | None:
        names = [name for name, one in self.taken.items() if one.phase in phases and name.startswith("h")]
        return names[pick % len(names)] if names else None

    @rule(pick=st.integers(0, 50), amount=st.integers(0, 110), uncertain=st.booleans())
    def settle(self, pick: int, amount: int, uncertain: bool) -> None:
        """In time, or late: after the hold has expired."""
        if (name := self.some(pick, Phase.HELD, Phase.EXPIRED)) is None:
            return
        self.run(self.home.remember(name))
        charge = Charge(amount, Basis.USAGE, uncertain=uncertain)
        assert self.apply(Settle(name, charge, Ending.ANSWERED, self.now_s())) is Outcome.OK
        self.taken[name] = replace(self.taken[name], phase=Phase.SETTLED, charged=amount, doubt=uncertain)

    @rule(pick=st.integers(0, 50), uncertain=st.booleans())
    def void(self, pick: int, uncertain: bool) -> None:
        if (name := self.some(pick, Phase.HELD)) is None:
            return
        assert self.apply(Void(name, Ending.GATEWAY_FAILED, self.now_s(), uncertain)) is Outcome.OK
        self.taken[name] = replace(self.taken[name], phase=Phase.VOIDED, doubt=uncertain)

    @rule(pick=st.integers(0, 50))
    def expire(self, pick: int) -> None:
        if (name := self.some(pick, Phase.HELD)) is None:
            return
        assert self.apply(Expire(name, self.now_s())) is Outcome.OK
        self.taken[name] = replace(self.taken[name], phase=Phase.EXPIRED, doubt=False)

    @rule(pick=st.integers(0, 50), amount=st.integers(0, 110))
    def resolve(self, pick: int, amount: int) -> None:
        if (name := self.some(pick, *Phase)) is None:
            return
        self.run(self.home.remember(name))
        one = self.taken[name]
        outcome = self.apply(Resolve(name, amount, "the bill says so", "lead", self.now_s()))
        assert (outcome is Outcome.OK) is one.doubt
        if one.doubt:
            self.taken[name] = replace(one, phase=Phase.SETTLED, charged=amount, doubt=False)

    @rule(pick=st.integers(0, 50))
    def end_again(self, pick: int) -> None:
        if (name := self.some(pick, Phase.SETTLED, Phase.VOIDED)) is None:
            return
        self.run(self.home.remember(name))
        charge = Charge(5, Basis.USAGE)
        assert self.apply(Settle(name, charge, Ending.ANSWERED, self.now_s())) is Outcome.ALREADY_RESOLVED

    @rule(facts=st.sampled_from(FACTS), amount=st.integers(-40, 40))
    def adjust(self, facts: Facts, amount: int) -> None:
        self.count += 1
        name, at_s = f"j{self.count}", self.now_s()
        assert self.apply(Adjust(name, facts, amount, "by hand", "lead", at_s)) is Outcome.OK
        self.taken[name] = Taken(facts, self.latest_s, 0, Phase.SETTLED, amount)

    @rule(gap_s=st.sampled_from([1.0, 300.0, 900.0, 3600.0, 40_000.0, 86_400.0, -1.0, -3600.0, -90_000.0]))
    def time_passes_or_steps_back(self, gap_s: float) -> None:
        self.clock_s += gap_s

    @rule(policy=st.sampled_from(list(POLICIES)))
    def reload(self, policy: str) -> None:
        self.policy = policy

        async def swapped() -> None:
            self.home.rebudget(POLICIES[policy])
            await self.home.apply([])

        self.run(swapped())

    @precondition(lambda self: isinstance(self.home, SqliteLedger))
    @rule()
    def restart(self) -> None:
        """An open hold of an earlier process is in doubt."""
        self.run(self.home.close())
        self.home = self.run(self.open())
        for name, one in self.taken.items():
            if one.phase is Phase.HELD:
                self.taken[name] = replace(one, doubt=True)
        # A clock that ran ahead without anything being written is forgotten.
        self.latest_s = max([self.clock_s, *(one.at_s for one in self.taken.values())])

    # --- what holds ---

    @invariant()
    def used_figures_are_the_plain_sum(self) -> None:
        if self.home is None:
            return
        accounts = self.home.projection.accounts
        accounts.dated(self.now_s())
        for budget in POLICIES[self.policy]:
            for group in {budget.group(facts) for facts in FACTS if budget in drawn(POLICIES[self.policy], facts)}:
                assert accounts.used(budget, group, self.clock_s) == self.used(budget, group), (budget.name, group)
        for team in ("red", "blue"):
            mine = [one for one in self.taken.values() if one.facts.team == team]
            assert self.home.projection.spent.get(team, 0) == sum(one.charged for one in mine)
            held = sum(one.held for one in mine if one.phase is Phase.HELD)
            assert self.home.projection.held.get(team, 0) == held
        doubtful = {name for name, _ in self.run(self.home.doubtful())} | self.home.unknown
        assert doubtful == {name for name, one in self.taken.items() if one.doubt}

    def teardown(self) -> None:
        if self.home is not None:
            problems = self.run(self.home.verify())
            self.run(self.home.close())
            assert list(problems) == []
        self.loop.close()
        shutil.rmtree(self.folder)


class InMemory(Histories):
    async def open(self) -> LedgerStore:
        return MemoryLedger(POLICIES[self.policy])


class InAFile(Histories):
    async def open(self) -> LedgerStore:
        return await SqliteLedger.open(self.folder / "ledger.db", POLICIES[self.policy], now_s=self.clock_s)


def test_any_history_in_memory():
    run_state_machine_as_test(InMemory, settings=settings(max_examples=50, stateful_step_count=40, deadline=None))


def test_any_history_in_a_file():
    slow = [HealthCheck.too_slow]
    few = settings(max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=slow)
    run_state_machine_as_test(InAFile, settings=few)
