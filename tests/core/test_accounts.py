"""A budget is a ceiling: stories of one account, and properties over any sequence of holds, endings and clocks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from proxy.core.account import Why
from proxy.core.accounts import Accounts
from proxy.core.charges import Basis, Charge, Ending
from proxy.core.drawings import PRUNED_FROM
from proxy.core.facts import Facts
from proxy.core.ledger import Hold, Outcome, Settle, Void
from proxy.core.limits import Budget, Each, Match, drawn, within_reach
from proxy.core.projection import Projection
from proxy.core.windows import Calendar, Per, Sliding
from tests.stories import play

DAY = Calendar(Per.DAY)
DAY_S = 86_400.0


def facts(team="red", key="k", model="m", **more):
    return Facts(team, key, "chat", model, **more)


CALENDAR = """
    # at   step    hold  amount | settled held  says
    0      hold    h1        60 |       0   60  ok
    1      hold    h2        60 |       0   60  busy
    2      settle  h1        25 |      25    0  ok
    3      hold    h2        60 |      25   60  ok
    4      hold    h3        16 |      25   60  busy
    5      hold    h3        15 |      25   75  ok
    6      hold    h4       101 |      25   75  never
    7      hold    h5         0 |      25   75  ok
    8      settle  h2        90 |     115   15  ok
    9      hold    h6         1 |     115   15  exhausted
    10     void    h3         0 |     115    0  ok
    11     hold    h6         1 |     115    0  exhausted
    86399  hold    h6         1 |     115    0  exhausted
    86400  hold    h7       100 |       0  100  ok
    5      hold    h8         1 |       0  100  busy
    86401  settle  h7        10 |      10    0  ok
"""

SLIDING = """
    # at  step    hold  amount | settled held  says
    0     hold    h1        60 |       0   60  ok
    1     settle  h1        50 |      50    0  ok
    50    hold    h2        50 |      50   50  ok
    59    hold    h3         1 |      50   50  busy
    60    hold    h3        50 |       0  100  ok
    61    settle  h2        20 |      20   50  ok
    62    hold    h4        31 |      20   50  busy
    110   hold    h4        50 |       0  100  ok
    121   settle  h3        50 |       0   50  ok
"""


def test_a_hold_found_after_later_ones_slides_out_in_its_time():
    """At a start what was settled is filled in first, then the holds that are open still."""
    budget = Budget("hour", 100, Sliding(60.0))
    accounts = Accounts([budget])
    accounts.spent(facts(), 5, 50.0, among={"hour"})
    accounts.hold("h1", facts(), 7, 10.0)
    accounts.hold("h2", facts(), 9, -20.0)
    assert accounts.used(budget, (), 60.0) == (5, 7), "the oldest was out before it was found"
    assert accounts.used(budget, (), 71.0) == (5, 0)
    accounts.end("h1", 3)
    accounts.end("h2", 3)
    assert accounts.used(budget, (), 71.0) == (5, 0)


def playing(budget):
    books = Projection(accounts=Accounts([budget]))

    def step(row):
        at_s, amount = float(row["at"]), int(row["amount"])
        says = "ok"
        match row["step"]:
            case "hold":
                refusal = books.accounts.judge(facts(), amount, at_s)
                says = refusal.why.value if refusal else "ok"
                outcome = books.apply(Hold(row["hold"], facts(), amount, at_s))
                assert (outcome is Outcome.OK) is (refusal is None)
            case "settle":
                books.apply(Settle(row["hold"], Charge(amount, Basis.USAGE), Ending.ANSWERED, at_s))
            case "void":
                books.apply(Void(row["hold"], Ending.NEVER_SENT, at_s))
        settled, held = books.accounts.used(budget, (), at_s)
        return {"settled": settled, "held": held, "says": says}

    return step


def test_a_calendar_budget():
    play(CALENDAR, playing(Budget("b", 100, DAY)))


def test_a_sliding_budget():
    play(SLIDING, playing(Budget("b", 100, Sliding(60.0))))


def test_a_refusal_says_when_there_is_room_again():
    accounts = Accounts([Budget("b", 100, Sliding(60.0))])
    accounts.hold("a", facts(), 50, 0.0)
    accounts.hold("b", facts(), 50, 10.0)
    assert accounts.judge(facts(), 50, 20.0).reopens_s == 60.0
    assert accounts.judge(facts(), 51, 20.0).reopens_s == 70.0
    day = Accounts([Budget("b", 100, DAY)])
    day.hold("a", facts(), 100, 5.0)
    assert day.judge(facts(), 1, 6.0).reopens_s == DAY_S


def test_of_several_budgets_the_one_that_lasts_longest_is_named():
    accounts = Accounts(
        [Budget("day", 10, DAY), Budget("month", 10, Calendar(Per.MONTH)), Budget("all", 10, Calendar(Per.TOTAL))]
    )
    accounts.spent(facts(), 10, 0.0)
    assert accounts.judge(facts(), 1, 1.0).budget.name == "all"


def test_holds_of_operations_count_as_spent_because_nobody_waits_for_them():
    accounts = Accounts([Budget("b", 100, DAY)])
    accounts.hold("video", facts(), 100, 0.0)
    assert accounts.judge(facts(), 1, 1.0).why is Why.BUSY
    accounts.lasts("video")
    assert accounts.judge(facts(), 1, 1.0).why is Why.EXHAUSTED
    accounts.end("video", 0)
    assert accounts.judge(facts(), 100, 1.0) is None


def test_a_refusal_tells_what_is_in_doubt_where_that_is_in_the_way():
    accounts = Accounts([Budget("b", 100, DAY)])
    for name, amount in (("cut", 40), ("video", 10), ("open", 20)):
        accounts.hold(name, facts(), amount, 0.0)
    accounts.lasts("cut", doubted=True)
    accounts.lasts("video")

    def said(asked):
        refusal = accounts.judge(facts(), asked, 1.0)
        return refusal.why, refusal.doubted

    assert accounts.judge(facts(), 30, 1.0) is None
    assert said(31) == (Why.BUSY, 40), "with the open call it would do"
    assert said(90) == (Why.EXHAUSTED, 40)
    assert said(91) == (Why.EXHAUSTED, 0), "it would not fit without them either"
    assert said(101) == (Why.NEVER, 0)
    accounts.end("video", 10)
    accounts.end("cut", 30)
    assert said(61) == (Why.EXHAUSTED, 0)


def test_what_is_in_doubt_slides_out_of_its_window_and_may_end_late():
    accounts = Accounts([Budget("b", 100, Sliding(60.0))])
    accounts.hold("cut", facts(), 60, 0.0)
    accounts.lasts("cut", doubted=True)
    accounts.hold("open", facts(), 100, 30.0)
    assert accounts.judge(facts(), 10, 59.0).doubted == 60
    assert accounts.judge(facts(), 10, 60.0).doubted == 0
    accounts.end("cut", 5)
    assert accounts.judge(facts(), 10, 61.0).doubted == 0


def test_each_keeps_accounts_apart_and_amounts_differ():
    budget = Budget("b", 50, DAY, each=Each.KEY, amounts={"ci": 200})
    accounts = Accounts([budget])
    assert accounts.judge(facts(key="ci"), 200, 0.0) is None
    assert accounts.judge(facts(key="x"), 51, 0.0).amount == 50
    accounts.hold("a", facts(team="red", key="x"), 50, 0.0)
    assert accounts.judge(facts(team="blue", key="x"), 50, 0.0) is None, "two teams' keys of one name are two"


def test_shadow_and_warn_count_and_do_not_act():
    from proxy.core.limits import Excess

    for budget in (Budget("b", 1, DAY, shadow=True), Budget("b", 1, DAY, excess=Excess.WARN)):
        accounts = Accounts([budget])
        assert accounts.judge(facts(), 100, 0.0) is None
        accounts.hold("a", facts(), 100, 0.0)
        assert accounts.used(budget, (), 0.0) == (0, 100)


def test_instead_of_takes_a_budgets_calls_away():
    wide = Budget("wide", 10, DAY)
    opus = Budget("opus", 5, DAY, match=Match(model="*-OPUS-*"), instead_of="wide")
    assert [budget.name for budget in drawn((wide, opus), facts(model="claude-opus-x"))] == ["opus"]
    assert [budget.name for budget in drawn((wide, opus), facts(model="gpt"))] == ["wide"]


BUDGETS = (
    Budget("company", 300, Calendar(Per.DAY)),
    Budget("red", 150, Calendar(Per.HOUR), match=Match(team="red")),
    Budget("each-key", 90, Sliding(1000.0), each=Each.KEY),
)
WHO = [facts(team, key) for team in ("red", "blue") for key in ("a", "b")]


class Books(RuleBasedStateMachine):
    """Any sequence of holds, endings, clocks and rebuilds: no account is ever admitted past its amount."""

    def __init__(self):
        super().__init__()
        self.books = Projection(accounts=Accounts(BUDGETS))
        self.now_s, self.count, self.open, self.entries = 0.0, 0, [], []

    def _take(self, step):
        if self.books.apply(step) is Outcome.OK:
            self.entries.append(step)
            return True
        return False

    @rule(who=st.sampled_from(WHO), amount=st.integers(0, 120))
    def hold(self, who, amount):
        before = [(budget, budget.group(who), *self.books.accounts.used(budget, budget.group(who), self.now_s))
                  for budget in drawn(BUDGETS, who)]  # fmt: skip
        self.count += 1
        taken = self._take(Hold(f"h{self.count}", who, amount, self.now_s))
        room = all(settled + held + amount <= budget.amount for budget, _, settled, held in before)
        assert taken is (amount == 0 or room), "admitted exactly when there is room"
        if taken:
            self.open.append(f"h{self.count}")

    @rule(at=st.integers(0, 100), charged=st.integers(0, 150))
    def settle(self, at, charged):
        if self.open:
            name = self.open.pop(at % len(self.open))
            assert self._take(Settle(name, Charge(charged, Basis.USAGE), Ending.ANSWERED, self.now_s))

    @rule(at=st.integers(0, 100))
    def void(self, at):
        if self.open:
            assert self._take(Void(self.open.pop(at % len(self.open)), Ending.NEVER_SENT, self.now_s))

    @rule(seconds=st.sampled_from([0.0, 1.0, 500.0, 1000.0, 3600.0, 86_400.0]))
    def time_goes_on(self, seconds):
        self.now_s += seconds

    @rule()
    def ended_windows_are_let_go_of(self):
        self.books.accounts.prune()

    @invariant()
    def a_rebuild_agrees(self):
        rebuilt = Projection(accounts=Accounts(()))
        rebuilt.accounts = fresh = Accounts(BUDGETS)
        # What was admitted was admitted: a rebuild judges nothing again.
        fresh.judge = lambda *_: None
        for step in self.entries:
            rebuilt.apply(step)
        del fresh.judge
        for who in WHO:
            for budget in drawn(BUDGETS, who):
                group = budget.group(who)
                assert fresh.used(budget, group, self.now_s) == self.books.accounts.used(budget, group, self.now_s)


Books.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestBooks = Books.TestCase


@given(st.lists(st.tuples(st.floats(0, 3000), st.integers(1, 100)), max_size=30))
def test_no_sliding_window_ever_takes_more_than_its_amount(calls):
    budget = Budget("b", 100, Sliding(60.0))
    accounts, taken = Accounts([budget]), []
    now_s = 0.0
    for number, (gap_s, amount) in enumerate(calls):
        now_s += gap_s % 40
        if accounts.judge(facts(), amount, now_s) is None:
            accounts.hold(str(number), facts(), amount, now_s)
            accounts.end(str(number), amount)
            taken.append((now_s, amount))
    for at_s, _ in taken:
        assert sum(amount for when, amount in taken if at_s - 60.0 < when <= at_s) <= 100


def test_a_clock_that_steps_back_reopens_nothing():
    accounts = Accounts([Budget("b", 100, DAY)])
    accounts.hold("a", facts(), 100, DAY_S + 10)
    assert accounts.judge(facts(), 1, 10.0) is not None


@given(st.sampled_from([Budget("x", 10, DAY), Budget("x", 10, Sliding(100.0))]))
def test_a_budget_that_is_new_begins_with_what_its_window_already_used(budget):
    accounts = Accounts([budget])
    accounts.spent(facts(), 7, 50.0)
    accounts.hold("open", facts(), 3, 60.0)
    assert accounts.used(budget, (), 70.0) == (7, 3)
    assert accounts.judge(facts(), 1, 70.0) is not None


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("window", [Calendar(Per.HOUR), Sliding(3600.0)])
def test_ended_windows_of_many_keys_do_not_pile_up_and_open_ones_all_stay(window, settled):
    budget = Budget("b", 100, window, each=Each.KEY)
    accounts = Accounts([budget])
    for hour in range(8):
        for number in range(PRUNED_FROM // 2):
            who, name, at_s = facts(key=f"k{number}-{hour}"), f"{number}-{hour}", hour * 7200.0
            assert accounts.judge(who, 60, at_s) is None
            accounts.hold(name, who, 60, at_s)
            if settled:
                accounts.end(name, 60)
    kept = len(accounts._drawings)
    assert kept <= PRUNED_FROM if settled else kept == 8 * (PRUNED_FROM // 2)
    for number in range(PRUNED_FROM // 2):
        assert accounts.judge(facts(key=f"k{number}-7"), 60, 7 * 7200.0).why is (Why.EXHAUSTED if settled else Why.BUSY)


def test_letting_go_of_accounts_never_lets_go_of_one_that_a_call_is_just_being_booked_into():
    sliding = Budget("sliding", 10**9, Sliding(60.0), each=Each.MODEL)
    daily = Budget("daily", 10**9, Calendar(Per.DAY), each=Each.MODEL)
    accounts = Accounts([sliding, daily])
    for number in range(2 * PRUNED_FROM):
        # The odd one moves the number of accounts so that either budget's comes when it is time to let go.
        if number == PRUNED_FROM:
            accounts.used(daily, ("odd",), 0.0)
        kind = facts(model=f"m{number}")
        assert accounts.judge(kind, 5, 0.0) is None
        accounts.hold(f"h{number}", kind, 5, 0.0)
        assert accounts.used(sliding, (kind.model,), 0.0) == (0, 5), number
        assert accounts.used(daily, (kind.model,), 0.0) == (0, 5), number


def test_a_kind_of_call_whose_accounts_were_let_go_of_has_new_ones():
    budget = Budget("b", 10, Sliding(60.0), each=Each.MODEL)
    accounts = Accounts([budget])
    for at_s in (0.0, 100.0):
        assert accounts.judge(facts(), 10, at_s) is None
        accounts.hold(f"h{at_s}", facts(), 10, at_s)
        accounts.end(f"h{at_s}", 10)
        assert accounts.used(budget, ("m",), at_s) == (10, 0)
        for number in range(2 * PRUNED_FROM):
            accounts.judge(facts(model=f"m{number}"), 1, at_s + 90.0)


@pytest.mark.parametrize("window", [Sliding(60.0), Calendar(Per.DAY)])
def test_a_call_of_a_known_kind_is_judged_by_the_window_of_its_own_instant(window):
    budget = Budget("b", 10, window)
    accounts = Accounts([budget])
    for day in range(3):
        at_s = day * 86_400.0
        assert accounts.judge(facts(), 10, at_s) is None
        accounts.hold(f"h{day}", facts(), 10, at_s)
        accounts.end(f"h{day}", 10)
        assert accounts.judge(facts(), 1, at_s + 59.0).why is Why.EXHAUSTED


def spend(accounts, name, amount, at_s=0.0, **about):
    accounts.hold(name, facts(**about), amount, at_s)
    accounts.end(name, amount)


def test_a_share_that_is_reached_is_told_once_in_a_window():
    accounts = Accounts([Budget("b", 100, DAY, warn_at=(0.8, 0.5))])
    told = []
    for number, amount in enumerate((49, 1, 20, 40, 5)):
        spend(accounts, f"h{number}", amount)
        told.append([one.share for one in accounts.crossed()])
    assert told == [[], [0.5], [], [0.8], []]
    spend(accounts, "next", 90, DAY_S)
    assert [(one.share, one.settled, one.amount) for one in accounts.crossed()] == [(0.5, 90, 100), (0.8, 90, 100)]
    (standing,) = accounts.standing(accounts.budgets[0], DAY_S)
    assert standing.reached == (0.5, 0.8)


def test_a_share_of_a_sliding_window_is_told_again_when_it_was_left_in_between():
    accounts = Accounts([Budget("b", 100, Sliding(60.0), warn_at=(0.5,))])
    spend(accounts, "h1", 60)
    spend(accounts, "h2", 10, 30.0)
    assert len(accounts.crossed()) == 1
    spend(accounts, "h3", 30, 61.0)
    assert accounts.crossed() == []
    spend(accounts, "h4", 10, 62.0)
    assert len(accounts.crossed()) == 1


def test_what_is_filled_in_at_a_start_was_told_before():
    accounts = Accounts([Budget("b", 100, DAY, warn_at=(0.5, 0.8))])
    accounts.spent(facts(), 60, 0.0, among={"b"})
    spend(accounts, "h1", 25)
    assert [one.share for one in accounts.crossed()] == [0.8]


def test_each_account_of_a_budget_stands_for_itself_and_may_be_named():
    budget = Budget("b", 100, DAY, each=Each.KEY, amounts={"ci": 40})
    accounts = Accounts([budget])
    spend(accounts, "h1", 10, key="ci")
    spend(accounts, "h2", 20, key="k")
    assert {(one.group, one.amount, one.left, one.ends_s) for one in accounts.standing(budget, 1.0)} == {
        (("red", "ci"), 40, 30, DAY_S),
        (("red", "k"), 100, 80, DAY_S),
    }
    assert [one.left for one in accounts.standing(budget, 1.0, ("red", "new"))] == [100]


@pytest.mark.parametrize("window", [DAY, Sliding(60.0)])
def test_an_account_that_nothing_is_in_is_shown_to_those_alone_who_ask_for_it(window):
    budget = Budget("b", 100, window, each=Each.MODEL)
    accounts = Accounts([budget])
    spend(accounts, "paid", 10, model="paid")
    spend(accounts, "voided", 0, model="voided")
    accounts.hold("held", facts(model="held"), 10, 0.0)
    accounts.judge(facts(model="refused"), 101, 0.0)
    accounts.drawn_on(facts(model="explained"), 0.0)
    assert {one.group for one in accounts.standing(budget, 1.0)} == {("paid",), ("held",)}
    for name in ("voided", "refused", "explained"):
        assert [one.left for one in accounts.standing(budget, 1.0, (name,))] == [100]


@pytest.mark.parametrize("window", [Calendar(Per.MONTH), Sliding(86_400.0)])
def test_invented_names_do_not_pile_up_within_a_window(window):
    budget = Budget("b", 100, window, each=Each.MODEL, warn_at=(0.5,))
    accounts = Accounts([budget])
    spend(accounts, "paid", 60, model="paid")
    accounts.hold("held", facts(model="held"), 30, 0.0)
    assert len(accounts.crossed()) == 1
    for number in range(20 * PRUNED_FROM):
        who, name, at_s = facts(model=f"m{number}"), f"h{number}", number / 100
        accounts.judge(who, 60, at_s)
        if number % 2:
            accounts.hold(name, who, 60, at_s)
            accounts.end(name, 0)
    assert len(accounts._drawings) <= PRUNED_FROM + 1
    assert accounts.used(budget, ("paid",), 1.0) == (60, 0)
    assert accounts.used(budget, ("held",), 1.0) == (0, 30)
    spend(accounts, "more", 10, model="paid")
    assert accounts.crossed() == [], "a share is told once in a window"


def test_what_is_taken_back_later_than_it_was_spent_keeps_a_sliding_account():
    budget = Budget("b", 100, Sliding(60.0), each=Each.MODEL)
    accounts = Accounts([budget])
    accounts.spent(facts(), 80, 0.0)
    accounts.spent(facts(), -80, 30.0)
    accounts.prune()
    assert accounts.used(budget, ("m",), 59.0) == (0, 0)
    assert accounts.used(budget, ("m",), 61.0) == (-80, 0)


def test_no_share_of_nothing_is_ever_reached():
    accounts = Accounts([Budget("b", 0, DAY, each=Each.MODEL, warn_at=(0.5,))])
    spend(accounts, "free", 0)
    assert accounts.crossed() == []


def test_within_reach_are_budgets_whose_calls_a_key_could_make():
    budgets = (
        Budget("all", 1, DAY),
        Budget("red", 1, DAY, Match(team="red")),
        Budget("blue", 1, DAY, Match(team="blue")),
        Budget("dear", 1, DAY, Match(model="*opus*"), instead_of="all"),
        Budget("ci", 1, DAY, Match(team="red", key="ci"), instead_of="red"),
    )
    assert [one.name for one in within_reach(budgets, "red", "ci")] == ["all", "dear", "ci"]
    assert [one.name for one in within_reach(budgets, "red", "k")] == ["all", "red", "dear"]


def test_a_hold_is_booked_whole_where_it_fits_with_what_it_was_promised_and_not_at_all_where_it_does_not():
    accounts = Accounts([Budget("all", 100, DAY), Budget("mine", 70, Sliding(60.0), Match(team="red"))])
    accounts.promise("first", facts(), 60, 0.0)
    assert not accounts.take("late", facts(), 20, 1.0), "what is promised is another call's"
    assert not accounts.take("large", facts(team="blue"), 41, 1.0)
    assert accounts.take("free", facts(), 0, 1.0)
    assert accounts.take("first", facts(), 60, 2.0)
    assert accounts.promised == {}
    assert [accounts.used(budget, (), 2.0) for budget in accounts.budgets] == [(0, 60), (0, 60)]
    assert not accounts.take("late", facts(), 11, 3.0)
    assert accounts.take("late", facts(), 10, 3.0)
    assert accounts.judge(facts(), 1, 62.0) is None, "the first has slid out of its window"
    assert accounts.take("last", facts(), 30, 62.0)
    assert [accounts.used(budget, (), 62.0) for budget in accounts.budgets] == [(0, 100), (0, 40)]
    accounts.end("last", 200)
    assert accounts.take("free, too", facts(), 0, 63.0), "although more is spent than there was"


def test_what_flowed_in_two_windows_of_a_budget_is_one_sum():
    accounts = Accounts([Budget("day", 100, DAY)])
    for name, at_s in (("yesterday", DAY_S - 1), ("today", DAY_S)):
        assert accounts.take(name, facts(), 20, at_s)
    accounts.end("yesterday", 3)
    accounts.end("today", 4)
    assert accounts.flowed() == {("day", ()): 7}
    assert accounts.flowed() == {}
