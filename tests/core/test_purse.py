"""Money goes in the order of the queue: nobody is overtaken, and what a call was let go for is there when it pays."""

from collections import Counter
from dataclasses import replace
from math import inf
from random import Random
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from proxy.core.account import Why
from proxy.core.accounts import Accounts
from proxy.core.charges import Basis, Charge, Ending
from proxy.core.facts import Facts
from proxy.core.ledger import Hold, Outcome, Settle
from proxy.core.limits import Budget, Counts, Draw, Each, Match, Rate, RateMatch, drawn
from proxy.core.projection import Projection
from proxy.core.purse import Purse
from proxy.core.scheduler import Scheduler
from proxy.core.turns import Held, Turn, Waiter
from proxy.core.windows import Calendar, Per, Sliding
from proxy.units import Credits

HOUR_S = 3600.0
TOTAL = Budget("total", 100, Calendar(Per.TOTAL))


class Till:
    """A scheduler and the books, in virtual time; what was let go pays when it is told to."""

    def __init__(self, *budgets, rates=(), weights=None, begins_s=0.0):
        self.books = Projection(accounts=Accounts(budgets))
        self.scheduler = Scheduler(rates, weights)
        self.begins_s, self.now_s, self.count = begins_s, 0.0, 0
        self.turns = {}
        self.going = {}  # let go, by number: (waiter, turn)
        self.refused = []
        self.again_s = inf

    @property
    def accounts(self):
        return self.books.accounts

    @property
    def wall_s(self):
        return self.begins_s + self.now_s

    def purse(self):
        return Purse(self.accounts, self.wall_s)

    def ask(self, amount, key="k", team="red", route="chat", tokens=0, patience_s=inf):
        self.count += 1
        draw = Draw(Facts(team, key, route), "m", spends=True)
        waiter = Waiter(f"w{self.count}", draw, self.now_s + patience_s, tokens, credits=amount)
        answer = self.scheduler.ask(waiter, self.now_s, self.purse())
        if isinstance(answer, Turn):
            self.going[waiter.id] = (waiter, answer)
        elif answer is not None:
            waiter.block = answer
            self.refused.append(waiter)
        else:
            self.scheduler.join(waiter, self.now_s)
        self.look()
        return waiter

    def look(self):
        done = self.scheduler.look(self.now_s, self.purse())
        for waiter, turn in done.started:
            self.going[waiter.id] = (waiter, turn)
        self.refused += done.refused
        self.again_s = done.again_s
        return [waiter for waiter, _ in done.started]

    def pay(self, waiter):
        """The hold of one that was let go; why it is refused."""
        _, turn = self.going.pop(waiter.id)
        self.turns[waiter.id] = turn
        step = self.books.dated(Hold(waiter.id, waiter.draw.facts, Credits(waiter.credits), self.wall_s))
        if self.books.apply(step) is Outcome.OK:
            return None
        self.give_back(turn)
        return self.accounts.judge(waiter.draw.facts, waiter.credits, self.wall_s).why

    def give_back(self, turn):
        self.scheduler.give_back(turn)
        self.accounts.take_back(turn.id)

    def end(self, waiter, charged=0):
        done = Settle(waiter.id, Charge(Credits(charged), Basis.USAGE), Ending.ANSWERED, self.wall_s)
        assert self.books.apply(done) is Outcome.OK
        return self.look()


def test_a_hold_that_does_not_fit_yet_waits_and_one_that_never_will_is_told():
    till = Till(TOTAL)
    assert till.pay(till.ask(80)) is None
    small, large = till.ask(30), till.ask(101, team="blue")
    assert till.refused == [large]
    assert large.block.refusal.why is Why.NEVER
    assert small.block.held is Held.BUDGET
    assert till.end(till_first(till), 10) == [small]


def till_first(till):
    """The call whose hold is open."""
    (name,) = till.books.holds
    return Waiter(name, Draw(Facts("red", "k", "chat"), "m"), inf)


def test_what_two_could_have_goes_to_the_first_although_both_are_looked_at_at_once():
    till = Till(TOTAL)
    open_ = till.ask(100)
    till.pay(open_)
    first, second = till.ask(100, key="a"), till.ask(100, key="b")
    assert till.end(open_) == [first]
    assert second.block.held is Held.BUDGET
    assert till.pay(first) is None
    till.end(first, 100)
    assert till.refused == [second]
    assert second.block.refusal.why is Why.EXHAUSTED


def test_a_newcomer_has_nothing_of_what_one_that_was_let_go_has_not_paid_yet():
    till = Till(TOTAL)
    first = till.ask(60)
    newcomer, small = till.ask(60, key="late"), till.ask(40, key="small")
    assert [waiter for waiter, _ in till.going.values()] == [first]
    assert (newcomer.block.held, small.block.held) == (Held.BUDGET, Held.BUDGET)
    assert till.pay(first) is None
    assert till.end(first, 10) == [newcomer]


def test_small_calls_do_not_keep_a_large_one_waiting_for_ever():
    till = Till(TOTAL)
    small = [till.ask(30, key="s") for _ in range(3)]
    for one in small:
        till.pay(one)
    large = till.ask(90, key="large")
    for _ in range(20):
        till.ask(10, key="s")
    assert large.lane is not None
    assert not till.going
    assert till.end(small[0]) == []
    assert till.end(small[1]) == []
    started = till.end(small[2])
    assert started[0] is large
    assert len(started) == 2, "beside it there is room for one of ten"


def test_who_waits_for_one_budget_does_not_keep_others_from_another():
    each = Budget("each", 50, Calendar(Per.TOTAL), each=Each.KEY)
    till = Till(each, Budget("all", 1000, Calendar(Per.TOTAL)))
    till.pay(till.ask(50, key="a"))
    waits = till.ask(50, key="a")
    other = till.ask(50, key="b")
    assert waits.lane is not None
    assert list(till.going) == [other.id]


def test_who_waits_for_a_rate_keeps_no_money_from_those_who_need_no_such_place():
    bots = Rate("bots", Counts.TOKENS, 10, 60.0, RateMatch(Match(route="chatbot")))
    till = Till(TOTAL, rates=(bots,))
    till.pay(till.ask(10, team="blue", route="chatbot", tokens=6))
    bot = till.ask(100, route="chatbot", tokens=6)
    chat = till.ask(20)
    assert bot.lane is not None
    assert list(till.going) == [chat.id]


def test_one_that_leaves_after_it_was_let_go_leaves_the_money_to_the_next():
    till = Till(TOTAL)
    first, second = till.ask(100, key="a"), till.ask(100, key="b")
    _, turn = till.going.pop(first.id)
    till.give_back(turn)
    assert till.look() == [second]


CALM = Rate("calm", Counts.IN_FLIGHT, 50, 0.0, RateMatch(Match(team="blue")))
WIDE = Rate("wide", Counts.REQUESTS, 10**6, 1.0, RateMatch(Match(team="blue")))
EACH = Rate("each", Counts.REQUESTS, 10**6, 60.0, each=Each.TEAM)
MANY = Rate("tokens", Counts.TOKENS, 10**9, 60.0, RateMatch(Match(team="red")))


def compete(till, callers, amounts, lanes=3, rounds=1500, leaving=MappingProxyType({}), later=0.0):
    """Let so many callers of each team ask again as soon as their call has ended; how often each took its hold.

    lanes: among how many a team's callers are spread.
    leaving: by team, how many of its callers leave when they were let go. later: how many wait a round before they do.
    """
    names, let_go, open_, chance = {}, Counter(), [], Random(7)

    def ask(team, caller):
        waiter = till.ask(amounts[team], key=f"{team}{caller % lanes}", team=team)
        names[waiter.id] = (team, caller)

    for team, count in callers.items():
        for caller in range(count):
            ask(team, caller)
    for _ in range(rounds):
        for waiter, turn in list(till.going.values()):
            if chance.random() < later:
                continue
            if chance.random() < leaving.get(waiter.team, 0.0):
                del till.going[waiter.id]
                till.give_back(turn)
                till.look()
                ask(*names.pop(waiter.id))
                continue
            assert till.pay(waiter) is None
            let_go[waiter.team] += 1
            open_.append(waiter)
        if open_:
            done = open_.pop(0)
            till.scheduler.closed(till.turns.pop(done.id), till.now_s)
            till.end(done)
            ask(*names.pop(done.id))
    return let_go


@pytest.mark.parametrize("rates", [(), (CALM,), (WIDE,), (EACH,), (CALM, MANY), (WIDE, EACH, MANY)])
@pytest.mark.parametrize(("blue", "red"), [(1, 1), (1, 4), (3, 1)])
def test_teams_share_a_budget_by_weight_whatever_rates_they_have_besides(rates, blue, red):
    till = Till(Budget("b", 4, Calendar(Per.TOTAL)), rates=rates, weights={"blue": blue, "red": red})
    let_go = compete(till, {"blue": 8, "red": 8}, {"blue": 1, "red": 1})
    assert let_go["blue"] / let_go.total() == pytest.approx(blue / (blue + red), abs=0.05)


@pytest.mark.parametrize(("blue", "red"), [(1, 4), (4, 1)])
def test_calls_whose_lane_is_a_new_one_have_no_more_than_their_share(blue, red):
    till = Till(Budget("b", 4, Calendar(Per.TOTAL)), rates=(CALM,), weights={"blue": blue, "red": red})
    let_go = compete(till, {"blue": 12, "red": 12}, {"blue": 1, "red": 1}, lanes=12)
    assert let_go["blue"] / let_go.total() == pytest.approx(blue / (blue + red), abs=0.05)


@pytest.mark.parametrize("rates", [(), (WIDE, EACH, MANY)])
@pytest.mark.parametrize(("blue", "red"), [(1, 1), (1, 4)])
@pytest.mark.parametrize(
    ("leaving", "later"), [({"blue": 0.6}, 0.0), ({"red": 0.6}, 0.5), ({"blue": 0.2, "red": 0.7}, 0.5)]
)
def test_a_team_whose_callers_leave_before_their_hold_has_its_share_all_the_same(rates, blue, red, leaving, later):
    till = Till(Budget("b", 6, Calendar(Per.TOTAL)), rates=rates, weights={"blue": blue, "red": red})
    took = compete(till, {"blue": 10, "red": 10}, {"blue": 1, "red": 1}, rounds=400, leaving=leaving, later=later)
    assert took.total() > 300
    assert took["blue"] / took.total() == pytest.approx(blue / (blue + red), abs=0.05)


def test_a_team_has_no_more_by_opening_lanes():
    """A call of a new kind comes just when money is free and nobody has looked."""
    till = Till(Budget("b", 4, Calendar(Per.TOTAL)), weights={"blue": 0.1, "red": 1})
    for number in range(20):
        till.ask(1, key=f"r{number % 3}", team="red")
        till.ask(1, key="b", team="blue")
    let_go, open_ = Counter(), []
    for number in range(300):
        for waiter, _ in list(till.going.values()):
            till.pay(waiter)
            let_go[waiter.team] += 1
            open_.append(waiter)
        done = open_.pop(0)
        till.books.apply(Settle(done.id, Charge(Credits(0), Basis.USAGE), Ending.ANSWERED, till.wall_s))
        till.ask(1, key=f"new {number}", team="blue")
        till.ask(1, key=f"r{number % 3}", team="red")
    assert let_go["blue"] / let_go.total() == pytest.approx(1 / 11, abs=0.05)


def test_what_was_kept_for_one_that_gives_up_goes_to_the_next_at_once():
    till = Till(TOTAL)
    till.pay(till.ask(80))
    till.ask(100, key="large", patience_s=1.0)
    small = till.ask(10, key="small")
    assert small.lane is not None
    till.now_s = till.again_s
    till.look()
    assert till.again_s == till.now_s == 1.0
    assert till.look() == [small]


@pytest.mark.parametrize(("amount", "why"), [(101, Why.NEVER), (50, Why.EXHAUSTED)])
def test_one_that_will_never_have_it_hears_so_although_others_wait_before_it(amount, why):
    till = Till(TOTAL)
    spent, open_ = till.ask(60), till.ask(40)
    till.pay(spent)
    till.pay(open_)
    till.end(spent, 60)
    waits = till.ask(20)
    assert waits.lane is not None
    answer = till.scheduler.ask(
        Waiter("w", Draw(Facts("red", "k", "chat"), "m", spends=True), inf, credits=amount), till.now_s, till.purse()
    )
    assert (answer.held, answer.refusal.why) == (Held.MONEY, why)


def test_calls_of_one_team_go_in_the_order_they_came_whichever_budget_held_them_up():
    till = Till(Budget("shared", 60, Calendar(Per.TOTAL)), Budget("each", 50, Calendar(Per.TOTAL), each=Each.KEY))
    first, second, large = till.ask(40, key="a"), till.ask(20, key="a"), till.ask(50, key="a")
    till.pay(first)
    late = till.ask(40, key="b")
    assert till.end(first) == [second]
    assert large.lane is not None
    assert late.lane is not None, "what it wants the large one waits for"


def test_what_teams_share_is_credits():
    till = Till(Budget("b", 12, Calendar(Per.TOTAL)), rates=(CALM,))
    let_go = compete(till, {"blue": 8, "red": 8}, {"blue": 1, "red": 3})
    assert let_go["blue"] / let_go["red"] == pytest.approx(3.0, rel=0.1)


def test_a_single_caller_has_its_turn_among_many():
    till = Till(Budget("b", 4, Calendar(Per.TOTAL)), rates=(CALM,))
    let_go = compete(till, {"blue": 1, "red": 30}, {"blue": 1, "red": 1})
    assert let_go["blue"] >= 1500 / 10


def test_one_that_never_came_to_the_head_of_its_lane_hears_that_it_waited_for_money():
    till = Till(TOTAL)
    till.pay(till.ask(100))
    till.ask(100)
    second = till.ask(100, patience_s=1.0)
    till.now_s = 1.0
    till.look()
    assert till.refused == [second]
    assert (second.block.held, second.block.refusal.budget.name) == (Held.BUDGET, "total")


def test_one_whose_time_is_up_as_soon_as_it_waits_hears_that_it_waited_for_money():
    till = Till(TOTAL)
    till.pay(till.ask(100))
    waits = till.ask(100, patience_s=0.001)
    till.now_s = 0.002
    assert till.scheduler.in_vain(waits, till.now_s) is None, "no rate is in its way, and none is to be blamed"
    till.look()
    assert till.refused == [waits]
    assert (waits.block.held, waits.block.refusal.budget.name) == (Held.BUDGET, "total")


@pytest.mark.parametrize(("window", "opens_s"), [(Sliding(60.0), 60.0), (Calendar(Per.HOUR), HOUR_S)])
@pytest.mark.parametrize("begins_s", [0.0, 472_222 * HOUR_S])
def test_a_look_tells_when_the_budget_itself_has_room_again(window, opens_s, begins_s):
    till = Till(Budget("b", 100, window), begins_s=begins_s)
    till.pay(till.ask(70))
    till.now_s = 20.0
    till.pay(till.ask(30, key="a"))
    waits = till.ask(60, key="b")
    assert till.again_s == pytest.approx(opens_s, abs=1e-3)
    looks = 0
    while waits.lane is not None:
        till.now_s = max(till.again_s, till.now_s)
        till.look()
        looks += 1
    assert looks <= 3
    assert till.now_s == pytest.approx(opens_s, abs=1e-3)


def test_one_that_waits_for_what_is_only_promised_looks_again_when_that_has_slid_out():
    till = Till(Budget("b", 100, Sliding(60.0)))
    till.ask(100)
    till.now_s = 5.0
    till.ask(100, key="late")
    assert till.again_s == 65.0


@given(at_s=st.floats(0, 2e9), span_s=st.floats(0.001, 1e7))
def test_who_comes_when_a_window_is_said_to_have_slid_finds_the_room(at_s, span_s):
    accounts = Accounts([Budget("b", 100, Sliding(span_s))])
    accounts.hold("h", Facts("red", "k", "chat"), 100, at_s)
    opens_s = accounts.judge(Facts("red", "k", "chat"), 100, at_s).reopens_s
    assert accounts.judge(Facts("red", "k", "chat"), 100, opens_s) is None


def test_accounts_in_which_something_is_promised_are_not_let_go_of():
    accounts = Accounts([Budget("b", 100, Sliding(60.0), each=Each.MODEL)])
    accounts.promise("h", Facts("red", "k", "chat", "m"), 100, 0.0)
    accounts.prune()
    assert accounts.judge(Facts("red", "k", "chat", "m"), 1, 1.0).why is Why.BUSY


def test_what_is_promised_at_the_end_of_a_window_is_kept_in_the_next():
    till = Till(Budget("b", 100, Calendar(Per.HOUR)))
    first = till.ask(100)
    till.now_s = HOUR_S
    assert till.ask(100, key="late").lane is not None
    assert till.pay(first) is None


def test_new_accounts_keep_what_the_old_ones_promised():
    till = Till(TOTAL)
    first = till.ask(60)
    wider = Accounts([Budget("total", 110, Calendar(Per.TOTAL))])
    wider.follow(till.accounts)
    till.books.accounts = wider
    assert till.ask(60, key="late").lane is not None
    assert till.pay(first) is None
    assert wider.used(wider.budgets[0], (), 0.0) == (0, 60)


BUDGETS = (
    Budget("all", 100, Calendar(Per.TOTAL)),
    Budget("hour", 80, Calendar(Per.HOUR)),
    Budget("minute", 60, Sliding(60.0)),
    Budget("each", 50, Sliding(30.0), each=Each.KEY),
    Budget("seen", 1, Calendar(Per.TOTAL), shadow=True),
)


class Money(RuleBasedStateMachine):
    """Any arrivals, payments in any order, endings, departures and time; one team, so the order is that of arrival."""

    def __init__(self):
        super().__init__()
        self.till = Till(*BUDGETS, begins_s=472_222 * HOUR_S)
        self.waiting, self.open = [], []

    def watched(self, act, newcomer=None):
        """Whoever starts passes nobody who waits for the same."""
        going = set(self.till.going)
        act()
        self.waiting = [one for one in self.waiting if one.lane is not None]
        if newcomer is not None and newcomer().lane is not None:
            self.waiting.append(newcomer())
        started = [waiter for name, (waiter, _) in self.till.going.items() if name not in going]
        for other in self.heads():
            later = [one for one in started if one.seq > other.seq]
            for account in self.accounts(other):
                taken = sum(one.credits for one in later if account in self.accounts(one))
                assert not taken or account.free + taken >= other.credits, (other, later)

    def heads(self):
        return sorted((lane.head for lane in self.till.scheduler.lanes()), key=lambda one: one.seq)

    def accounts(self, waiter):
        self.till.accounts.dated(self.till.wall_s)
        drawn_by = self.till.accounts.drawn_by(waiter.draw.facts, self.till.wall_s)
        return [account for account in drawn_by if account.budget.acts]

    def short(self, waiter):
        return [account for account in self.accounts(waiter) if account.free < waiter.credits]

    @rule(key=st.sampled_from("ab"), amount=st.integers(1, 50))
    def arrive(self, key, amount):
        came = []
        self.watched(lambda: came.append(self.till.ask(amount, key)), lambda: came[0])

    @rule(at=st.integers(0, 50))
    def pay(self, at):
        if self.till.going:
            waiter, _ = list(self.till.going.values())[at % len(self.till.going)]
            # What is used up already is promised to nobody, and refused when it pays, unless a window ended meanwhile.
            promised = waiter.id in self.till.accounts.promised
            why = self.till.pay(waiter)
            assert why is None or not promised, "what was promised is there"
            if why is None:
                self.open.append(waiter)

    @rule(at=st.integers(0, 50), share=st.sampled_from([0.0, 0.1, 1.0]))
    def end(self, at, share):
        if self.open:
            waiter = self.open.pop(at % len(self.open))
            self.watched(lambda: self.till.end(waiter, int(share * waiter.credits)))

    @rule(at=st.integers(0, 50))
    def leave(self, at):
        if self.waiting:
            self.till.scheduler.leave(self.waiting.pop(at % len(self.waiting)))
            self.watched(self.till.look)

    @rule(at=st.integers(0, 50))
    def turn_back(self, at):
        if self.till.going:
            _, turn = self.till.going.pop(list(self.till.going)[at % len(self.till.going)])
            self.till.give_back(turn)
            self.watched(self.till.look)

    @rule(seconds=st.sampled_from([0.5, 10.0, 29.9, 60.0, 1000.0]))
    def time_passes(self, seconds):
        """The clock rings when it was told to, and not before."""
        until_s = self.till.now_s + seconds
        while self.till.again_s <= until_s:
            self.till.now_s = max(self.till.now_s, self.till.again_s)
            self.watched(self.till.look)
        self.till.now_s = until_s

    @rule(more=st.integers(0, 40))
    def another_policy(self, more):
        """A wider one: of a narrower one, what was promised may be more than there is."""
        books = self.till.books
        accounts = Accounts([replace(one, amount=one.amount + more) for one in self.till.accounts.budgets])
        accounts.follow(self.till.accounts)
        for name, state in books.holds.items():
            accounts.hold(name, state.facts, state.held, state.at_s)
        for state in books._resolved.values():
            accounts.spent(state.facts, state.charged, state.at_s)
        books.accounts = accounts
        self.watched(self.till.look)

    @invariant()
    def no_account_is_over_its_amount(self):
        for key in "ab":
            for account in self.accounts(Waiter("", Draw(Facts("red", key, "chat"), "m"), inf)):
                assert account.free >= 0, account

    @invariant()
    def nothing_is_promised_but_to_those_who_were_let_go(self):
        promised = self.till.accounts.promised
        assert set(promised) <= set(self.till.going)
        sums = Counter()
        for facts, amount, _ in promised.values():
            for budget in drawn(BUDGETS, facts):
                sums[budget.name, budget.group(facts)] += amount
        for account in self.till.accounts._drawings:
            if account.promised:
                assert sums.pop((account.budget.name, account.group)) == account.promised
        assert not sums

    @invariant()
    def nobody_waits_without_a_cause(self):
        taken = set()
        for waiter in self.heads():
            short = self.short(waiter)
            if self.till.again_s > self.till.now_s:
                assert short or taken & set(self.accounts(waiter)), waiter
            taken.update(short)

    def teardown(self):
        """Nobody waits for ever: when all is paid and ended, whoever waits has gone or is told."""
        for _ in range(3 * self.till.count + 3):
            for waiter, _ in list(self.till.going.values()):
                if self.till.pay(waiter) is None:
                    self.open.append(waiter)
            while self.open:
                self.till.end(self.open.pop())
            self.till.now_s += 30.0
            self.till.look()
        assert all(waiter.lane is None for waiter in self.waiting)


Money.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestMoney = Money.TestCase
