"""Turns: no window over its amount, nobody starves, shares by weight, and nothing with room waits for nothing."""

from collections import Counter
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from proxy.core.accounts import Accounts
from proxy.core.facts import Facts
from proxy.core.limits import Counts, Draw, Each, Excess, Match, Rate, RateMatch
from proxy.core.purse import Purse
from proxy.core.scheduler import Scheduler
from proxy.core.turns import Block, Held, Turn, Waiter
from tests.core.test_purse import Till, compete

R, T, F = Counts.REQUESTS, Counts.TOKENS, Counts.IN_FLIGHT
FREE = Purse(Accounts(), 0.0)


def draw(team="red", route="chat", **more):
    return Draw(Facts(team, "k", route), "m", **more)


def rate(name, amount, window_s=10.0, counts=R, match=None, **more):
    return Rate(name, counts, amount, window_s, RateMatch(Match(**(match or {}))), **more)


class Desk:
    """A scheduler with a clock, whose calls are answered `takes_s` after they start."""

    def __init__(self, *rates, weights=None, takes_s=0.1):
        self.scheduler = Scheduler(rates, weights)
        self.now_s, self.count, self.takes_s = 0.0, 0, takes_s
        self.starts, self.running = [], []

    def waiter(self, team="red", route="chat", patience_s=1e6, tokens=0, costs=0, gates=()):
        self.count += 1
        return Waiter(f"w{self.count}", draw(team, route), self.now_s + patience_s, tokens, costs, gates)

    def ask(self, *args, **more):
        waiter = self.waiter(*args, **more)
        answer = self.scheduler.ask(waiter, self.now_s, FREE)
        if isinstance(answer, Turn):
            self._started(waiter, answer)
        elif answer is None:
            self.scheduler.join(waiter, self.now_s)
        return waiter, answer

    def _started(self, waiter, turn):
        self.starts.append((self.now_s, waiter.team, waiter.draw.facts.route, waiter))
        self.running.append((self.now_s + self.takes_s, turn))

    def look(self):
        done = self.scheduler.look(self.now_s, FREE)
        for waiter, turn in done.started:
            self._started(waiter, turn)
        return done

    def until(self, end_s, each=None):
        """Let time pass as the server would: wake when told, answer what runs."""
        while True:
            if each is not None:
                each()
            again_s = min([self.look().again_s, *(at_s for at_s, _ in self.running)])
            if again_s > end_s:
                self.now_s = end_s
                return
            self.now_s = max(self.now_s, again_s)
            over = [one for one in self.running if one[0] <= self.now_s]
            self.running = [one for one in self.running if one[0] > self.now_s]
            for at_s, turn in over:
                self.scheduler.rates.counted(turn, at_s)
                self.scheduler.rates.closed(turn, at_s)


def started(desk, since_s=0.0, until_s=inf):
    return Counter(team for at_s, team, _, _ in desk.starts if since_s <= at_s < until_s)


def endless(desk, *teams, depth=200, route="chat"):
    """Keeps so many calls of each team waiting."""

    def more():
        waiting = Counter(waiter.team for waiter in desk.scheduler.waiters())
        for team in teams:
            for _ in range(depth - waiting[team]):
                desk.scheduler.join(desk.waiter(team, route), desk.now_s)

    return more


def test_what_has_room_starts_at_once_and_what_has_none_waits_its_turn():
    desk = Desk(rate("member", 2))
    assert all(isinstance(desk.ask()[1], Turn) for _ in range(2))
    waiter, answer = desk.ask()
    assert answer is None
    desk.until(9.9)
    assert len(desk.starts) == 2
    assert desk.scheduler.predicted(waiter, 9.9).at_s == pytest.approx(10.1, abs=0.01)
    desk.until(11)
    assert desk.starts[2][0] == pytest.approx(10.1, abs=0.01)


def test_weights_share_what_is_competed_for():
    desk = Desk(rate("member", 120, 60.0), weights={"a": 4, "b": 2, "c": 1, "d": 1})
    desk.until(60.0 * 10, endless(desk, "a", "b", "c", "d"))
    got = started(desk, 60.0)
    total = sum(got.values())
    assert total >= 0.98 * 120 * 9
    for team, share in {"a": 4 / 8, "b": 2 / 8, "c": 1 / 8, "d": 1 / 8}.items():
        assert got[team] / total == pytest.approx(share, rel=0.05)


def test_a_team_that_comes_late_has_its_share_within_one_window():
    desk = Desk(rate("member", 120, 60.0))
    desk.until(90.0, endless(desk, "early"))
    came_s = desk.now_s
    desk.until(came_s + 65, endless(desk, "early", "late"))
    got = started(desk, came_s)
    assert got["late"] == pytest.approx(60, abs=6)


def test_a_quiet_teams_single_call_is_next():
    desk = Desk(rate("member", 10, 10.0))
    desk.until(1.0, endless(desk, "busy"))
    waiter, _ = desk.ask("quiet")
    desk.until(30.0)
    after = [entry for entry in desk.starts if entry[0] > 1.0]
    assert [entry[3] for entry in after].index(waiter) <= 1


def test_a_teams_several_lanes_are_one_share():
    rates = rate("member", 120, 60.0), rate("each", 1000, 60.0, each=Each.MODEL)
    desk = Desk(*rates)

    def more():
        for model in range(5):
            lane = [w for w in desk.scheduler.waiters() if w.draw.facts.model == f"m{model}"]
            for _ in range(50 - len(lane)):
                desk.count += 1
                many = Draw(Facts("many", "k", "chat", f"m{model}"), "m")
                desk.scheduler.join(Waiter(f"x{desk.count}", many, inf), desk.now_s)
        endless(desk, "one")()

    desk.until(60.0 * 6, more)
    got = started(desk, 60.0)
    assert got["one"] / sum(got.values()) == pytest.approx(0.5, abs=0.05)


def test_nothing_with_room_waits_behind_something_without():
    desk = Desk(rate("member", 100), rate("bot", 1, match={"route": "chatbot"}))
    desk.ask(route="chatbot")
    desk.ask(route="chatbot")
    _, answer = desk.ask(route="chat")
    done = desk.look()
    assert isinstance(answer, Turn) or [waiter.draw.facts.route for waiter, _ in done.started] == ["chat"]


def test_one_that_comes_later_starts_first_only_where_the_earlier_start_does_not_move():
    """The bot waits until 10.1 for its own account and then needs the member's last place."""
    desk = Desk(rate("member", 2, 100.0), rate("bot", 1, 10.0, match={"route": "chatbot"}))
    desk.ask(route="chatbot")
    desk.until(1.0)
    bot, _ = desk.ask(route="chatbot")
    desk.look()
    chat, _ = desk.ask("red", "chat")
    desk.until(50.0)
    assert [entry[3] for entry in desk.starts[1:]] == [bot]
    desk.until(150.0)
    assert desk.starts[-1][3] is chat


def test_first_come_first_served_inside_a_lane():
    desk = Desk(rate("member", 3))
    waiters = [desk.ask()[0] for _ in range(12)]
    desk.until(60.0)
    assert [entry[3] for entry in desk.starts] == waiters


def test_a_call_that_was_sent_back_is_first_in_its_lane():
    desk = Desk(rate("member", 1))
    first, turn = desk.ask()
    second, _ = desk.ask()
    desk.scheduler.give_back(turn)
    desk.scheduler.join(first, 0.0)
    assert [waiter for waiter, _ in desk.look().started] == [first]
    assert second.lane is not None


def test_calls_that_were_sent_back_stand_in_the_order_in_which_they_came():
    desk = Desk(rate("member", 3))
    earlier = [desk.ask() for _ in range(3)]
    later = [desk.ask()[0] for _ in range(2)]
    for at in (1, 0, 2):
        waiter, turn = earlier[at]
        desk.scheduler.give_back(turn)
        desk.scheduler.join(waiter, 0.0)
    first = [waiter for waiter, _ in earlier]
    assert [waiter for waiter, _ in desk.look().started] == first
    desk.starts.clear()
    desk.until(60.0)
    assert [entry[3] for entry in desk.starts] == later


@pytest.mark.parametrize(("blue", "red"), [(1, 1), (1, 4), (3, 1)])
@pytest.mark.parametrize(
    ("leaving", "later"), [({"blue": 0.6}, 0.0), ({"red": 0.6}, 0.5), ({"blue": 0.2, "red": 0.7}, 0.5)]
)
def test_a_team_whose_callers_leave_before_they_are_sent_has_its_share_all_the_same(blue, red, leaving, later):
    till = Till(rates=(rate("flight", 6, 0.0, counts=F),), weights={"blue": blue, "red": red})
    sent = compete(till, {"blue": 10, "red": 10}, {"blue": 0, "red": 0}, rounds=400, leaving=leaving, later=later)
    assert sent.total() > 300
    assert sent["blue"] / sent.total() == pytest.approx(blue / (blue + red), abs=0.05)


def test_bots_of_two_teams_alternate_although_one_of_them_chats_all_the_time():
    desk = Desk(rate("member", 1000), rate("bot", 10, match={"route": "chatbot"}))
    more, bots = endless(desk, "chatty", depth=5), endless(desk, "chatty", "quiet", depth=20, route="chatbot")

    def both():
        if desk.now_s < 100:
            bots()
            more()

    desk.until(100.0, both)
    got = Counter(team for at_s, team, route, _ in desk.starts if route == "chatbot" and at_s > 10)
    assert got["chatty"] == pytest.approx(got["quiet"], abs=3)


def test_tokens_and_calls_in_flight_are_counted_too():
    desk = Desk(rate("tokens", 100, counts=T), rate("flight", 1, 0.0, counts=F, match={"team": "red"}), takes_s=1.0)
    assert isinstance(desk.ask("blue", tokens=60)[1], Turn)
    _, answer = desk.ask("red", tokens=40)
    assert isinstance(answer, Turn)
    assert desk.ask("red", tokens=0)[1] is None
    assert desk.ask("blue", tokens=101)[1].held is Held.NEVER
    desk.until(1.5)
    assert started(desk)["red"] == 2
    # What was a bound is corrected by what was used.
    desk.scheduler.rates.closed(answer, 1.5, tokens=5)
    assert next(s.used for s in desk.scheduler.rates.all_slots(1.5) if s.rate.name == "tokens") == 65


def test_a_rate_that_refuses_says_when_it_reopens():
    desk = Desk(rate("day", 1, 100.0, excess=Excess.REFUSE))
    desk.ask()
    desk.until(2.0)
    _, block = desk.ask()
    assert isinstance(block, Block)
    assert block.held is Held.SPENT
    assert block.at_s == pytest.approx(100.1, abs=0.1)


@pytest.mark.parametrize("more", [{"excess": Excess.WARN}, {"shadow": True}])
def test_warn_and_shadow_count_and_hold_nobody_up(more):
    desk = Desk(rate("r", 1, **more))
    assert all(isinstance(desk.ask()[1], Turn) for _ in range(3))
    assert [slots.used for slots in desk.scheduler.rates.all_slots(0.0)] == [3]


def test_those_who_wait_too_long_are_sent_away_and_leave_nothing():
    desk = Desk(rate("member", 1))
    desk.ask()
    waiter, _ = desk.ask(patience_s=2.0)
    done = desk.look()
    assert done.again_s == 2.0
    desk.now_s = 2.0
    assert desk.look().refused == [waiter]
    assert waiter.block.held is Held.RATE
    assert len(desk.scheduler) == 0
    assert all(not slots.waiting for slots in desk.scheduler.rates.all_slots(2.0))


def test_a_pause_is_an_account_without_room():
    desk = Desk()
    desk.scheduler.gates.pause("member:m", 5.0)
    waiter, answer = desk.ask(gates=("member:m",))
    assert answer is None
    assert desk.look().again_s == 5.0
    assert desk.scheduler.predicted(waiter, 0.0).held is Held.GATE
    desk.until(5.0)
    assert [entry[3] for entry in desk.starts] == [waiter]


def test_after_a_break_one_call_looks_before_the_others_go():
    desk = Desk()
    gates = desk.scheduler.gates
    gates.break_("g", 5.0)
    looks, rest = desk.ask(gates=("g",))[0], [desk.ask(gates=("g",))[0] for _ in range(3)]
    desk.now_s = 5.0
    assert [waiter for waiter, _ in desk.look().started] == [looks]
    assert desk.look().started == []
    gates.answered(("g",), "g", "red", 5.1)
    assert [waiter for waiter, _ in desk.look().started] == rest


def test_teams_look_in_turn_and_nobody_looks_before_those_who_wait():
    desk = Desk()
    gates = desk.scheduler.gates
    gates.break_("g", 5.0)
    for team in ("greedy", "greedy", "greedy", "calm", "quiet"):
        desk.ask(team, gates=("g",))
    looked = []
    for _ in range(4):
        desk.now_s = gates.opens_s(("g",), desk.now_s)
        assert desk.ask("greedy", gates=("g",))[1] is None, "who comes now stands behind those who wait"
        ((waiter, _),) = desk.look().started
        looked.append(waiter.team)
        gates.failed("g", "own", waiter.team, desk.now_s, waiter.looks)
    assert looked == ["greedy", "calm", "quiet", "greedy"]


def test_a_team_looks_again_where_the_others_cannot():
    desk = Desk(rate("slow", 1, 100.0, match={"team": "calm"}))
    gates = desk.scheduler.gates
    desk.ask("calm")
    gates.break_("g", 5.0)
    for team in ("greedy", "calm", "greedy"):
        desk.ask(team, gates=("g",))
    for _ in range(2):
        desk.now_s = gates.opens_s(("g",), desk.now_s)
        ((waiter, _),) = desk.look().started
        assert waiter.team == "greedy"
        gates.failed("g", "own", waiter.team, desk.now_s, waiter.looks)


def test_after_a_429_less_is_given_out_and_it_grows_again():
    desk = Desk(rate("member", 10, 40.0, each=Each.MEMBER))
    desk.scheduler.cut(draw(), 0.0)
    (slots,) = desk.scheduler.rates.all_slots(0.0)
    assert slots.capacity == 8
    for _ in range(9):
        desk.ask()
    assert len(desk.starts) == 8
    desk.until(10.0)
    desk.look()
    assert len(desk.starts) == 9
    assert next(iter(desk.scheduler.rates.all_slots(30.0))).capacity == 10


def test_predictions_are_what_then_happens():
    desk = Desk(rate("member", 20, 10.0), weights={"a": 3, "b": 1})
    told = {}
    for number in range(100):
        waiter, answer = desk.ask("b" if number % 2 else "a")
        told[waiter.id] = desk.scheduler.predicted(waiter, desk.now_s).at_s if answer is None else 0.0
    desk.until(100.0)
    assert len(desk.starts) == 100
    wrong = [abs(at_s - told[waiter.id]) for at_s, _, _, waiter in desk.starts]
    assert sorted(wrong)[80] <= 11, "at most about a window, as others came later"


def test_a_new_policy_counts_what_was_given_out():
    desk = Desk(rate("member", 5))
    for _ in range(4):
        desk.ask()
    desk.until(1.0)
    waiting = [desk.ask()[0] for _ in range(3)]
    desk.scheduler.rerate([rate("narrow", 3)], {})
    done = desk.look()
    assert done.started == []
    desk.until(10.2)
    assert [entry[3] for entry in desk.starts[5:]] == waiting[1:]


def test_a_place_comes_back_although_its_call_is_still_being_answered():
    desk = Desk(rate("member", 1), takes_s=500.0)
    _, turn = desk.ask()
    desk.scheduler.rates.written(turn, 0.5)
    waiter, _ = desk.ask()
    desk.until(100.0)
    assert [entry[3] for entry in desk.starts[1:]] == [waiter]
    assert desk.starts[1][0] == pytest.approx(0.5 + 10.0 + 1.0, abs=0.1)


def test_a_reading_of_the_clock_that_goes_back_frees_nothing_early():
    desk = Desk(rate("member", 1))
    _, turn = desk.ask()
    desk.scheduler.look(50.0, FREE)
    desk.scheduler.closed(turn, 3.0)
    assert isinstance(desk.scheduler.ask(desk.waiter(), 59.0, FREE), Block | None)
    assert isinstance(desk.scheduler.ask(desk.waiter(), 62.0, FREE), Turn)


def test_ten_thousand_waiters_take_a_look_like_one():
    desk = Desk(rate("member", 10))
    for number in range(10_000):
        desk.scheduler.join(desk.waiter(f"t{number % 20}"), 0.0)
    assert len(desk.look().started) == 10
    assert len(list(desk.scheduler._lanes)) == 20


RATES = (
    rate("member", 4, 10.0),
    rate("bot", 2, 10.0, match={"route": "chatbot"}),
    rate("tokens", 50, 10.0, counts=T, match={"team": "red"}),
    rate("flight", 2, 0.0, counts=F, match={"team": "blue"}),
    rate("slow", 3, 25.0, match={"team": "green"}),
)
TEAMS = ["red", "blue", "green"]


class Turns(RuleBasedStateMachine):
    """Any arrivals, departures, answers and clocks; the gateway may count a call whenever it likes while it is sent."""

    def __init__(self):
        super().__init__()
        self.scheduler = Scheduler(RATES, {"red": 4, "blue": 2})
        self.true_s, self.lost_s, self.count = 100.0, 0.0, 0
        self.waiting, self.open = [], {}
        self.log = []  # [begun, counted at the latest, waiter]

    @property
    def clock_s(self):
        """What the process sees: it stands still while the machine sleeps."""
        return self.true_s - self.lost_s

    def _start(self, waiter, turn):
        entry = [self.true_s, inf, waiter]
        self.log.append(entry)
        self.open[waiter.id] = (turn, entry)

    @rule(team=st.sampled_from(TEAMS), route=st.sampled_from(["chat", "chatbot"]), tokens=st.integers(1, 50))
    def arrive(self, team, route, tokens):
        self.count += 1
        waiter = Waiter(f"w{self.count}", draw(team, route), inf, tokens)
        answer = self.scheduler.ask(waiter, self.clock_s, FREE)
        if isinstance(answer, Turn):
            self._start(waiter, answer)
        else:
            self.scheduler.join(waiter, self.clock_s)
            self.waiting.append(waiter)
        self.look()

    @rule(at=st.integers(0, 50))
    def leave(self, at):
        if self.waiting:
            self.scheduler.leave(self.waiting.pop(at % len(self.waiting)))
            self.look()

    def _pick(self, at):
        return list(self.open)[at % len(self.open)] if self.open else None

    @rule(at=st.integers(0, 50))
    def written(self, at):
        if (name := self._pick(at)) is not None:
            turn, entry = self.open[name]
            entry[1] = min(entry[1], self.true_s)
            self.scheduler.rates.written(turn, self.clock_s)

    @rule(at=st.integers(0, 50), tokens=st.one_of(st.none(), st.integers(0, 50)))
    def answered(self, at, tokens):
        if (name := self._pick(at)) is not None:
            turn, entry = self.open.pop(name)
            entry[1] = min(entry[1], self.true_s)
            self.scheduler.rates.counted(turn, self.clock_s)
            self.scheduler.rates.closed(turn, self.clock_s, min(turn.tokens, tokens) if tokens is not None else None)
            self.look()

    @rule(at=st.integers(0, 50))
    def never_sent(self, at):
        if (name := self._pick(at)) is not None:
            turn, entry = self.open[name]
            if entry[1] == inf:
                del self.open[name]
                self.log.remove(entry)
                self.scheduler.give_back(turn)
                self.scheduler.give_back(turn)
                self.look()

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, 4.0, 9.9, 11.0, 30.0]))
    def time_passes(self, seconds):
        self.true_s += seconds
        self.look()

    @rule(seconds=st.sampled_from([1.0, 8.0, 100.0]))
    def the_machine_sleeps(self, seconds):
        self.true_s += seconds
        self.lost_s += seconds
        self.look()

    @rule(seconds=st.sampled_from([1.0, 50.0]))
    def the_clock_steps_back(self, seconds):
        self.scheduler.look(self.clock_s - seconds, FREE)

    @rule()
    def the_same_policy_is_read_again(self):
        self.scheduler.rerate(RATES, {"red": 4, "blue": 2})
        self.look()

    def look(self):
        done = self.scheduler.look(self.clock_s, FREE)
        for waiter, turn in done.started:
            self.waiting.remove(waiter)
            self._start(waiter, turn)

    @invariant()
    def no_window_is_over_its_amount_whenever_the_gateway_counts(self):
        for one in RATES:
            mine = [entry for entry in self.log if one.match.takes(entry[2].draw)]
            weigh = (lambda w: w.tokens) if one.counts is T else (lambda _: 1)
            if one.counts is F:
                assert sum(1 for _, entry in self.open.values() if one.match.takes(entry[2].draw)) <= one.amount
            elif one.counts is R:
                for begun_s, _, _ in mine:
                    inside = sum(weigh(w) for a, b, w in mine if a <= begun_s and b > begun_s - one.window_s)
                    assert inside <= one.amount, one.name

    @invariant()
    def what_is_taken_is_what_the_places_say(self):
        for slots in self.scheduler.rates.all_slots(self.clock_s):
            places = [p for turn in self.scheduler.rates.turns.values() for p in turn.places if p.slots is slots]
            assert slots.used == sum(place.amount for place in places if not place.gone)
            assert slots.open == sum(place.amount for place in places if not place.gone and place.ends_s == inf)
            assert 0 <= slots.open <= slots.used
            assert sum(slots.waiting.values()) == sum(
                w.tokens if slots.rate.counts is T else 1 for w in self.waiting if slots.rate.match.takes(w.draw)
            )

    @invariant()
    def nobody_waits_who_has_room_unless_an_earlier_start_would_move(self):
        heads = [lane.head for lane in self.scheduler._lanes]
        kept = [(head, head.block.at_s) for head in heads if head.block is not None and head.block.at_s < inf]
        for head in heads:
            wants = self.scheduler.rates.wants(head.draw, head.tokens)
            for slots, _ in wants:
                slots.forget(self.scheduler.rates.at(self.clock_s))
            if all(slots.fits(amount) for slots, amount in wants):
                mine = {slots for slots, _ in wants}
                assert any(other is not head and mine & set(self.scheduler.rates.slots_of(other.draw))
                           for other, _ in kept)  # fmt: skip

    def teardown(self):
        """Nothing starves: when calls are answered and time goes on, everybody who waits has started."""
        for _ in range(40 * (len(self.waiting) + 2)):
            for name in list(self.open):
                turn, _ = self.open.pop(name)
                self.scheduler.rates.closed(turn, self.clock_s)
            self.true_s += 1.0
            self.look()
            if not self.waiting:
                break
        assert not self.waiting


Turns.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestTurns = Turns.TestCase
