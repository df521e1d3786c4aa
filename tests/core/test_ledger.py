"""The life of a hold, as tables and as properties."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.ledger import (
    CALL_COUNTS,
    CHARGE,
    NEXT,
    Adjust,
    Basis,
    Charge,
    Ending,
    Expire,
    Facts,
    Figures,
    Hold,
    Move,
    Outcome,
    Phase,
    Projection,
    Resolve,
    Rule,
    Settle,
    Void,
    charge,
)
from tests.stories import play, rows

TEAM = Facts("red", "k", "chat")


def step_of(word, hold, amount, at_s=0.0):
    match word:
        case "hold":
            return Hold(hold, TEAM, amount, at_s)
        case "settle":
            return Settle(hold, Charge(amount, Basis.USAGE), Ending.ANSWERED, at_s)
        case "void":
            return Void(hold, Ending.NEVER_SENT, at_s)
        case "expire":
            return Expire(hold, at_s)
        case "lose":
            return Settle(hold, Charge(amount, Basis.HOLD, uncertain=True), Ending.TIMED_OUT, at_s)
        case "fail":
            return Void(hold, Ending.GATEWAY_FAILED, at_s, uncertain=True)
        case "resolve":
            return Resolve(hold, amount, "the bill says so", "lead", at_s)
        case "adjust":
            return Adjust(hold, TEAM, amount, "a bill from before", "lead", at_s)


STORY = """
    # step     hold  amount | held spent  open  says
    hold       h1        60 |   60     0     1  ok
    hold       h2        60 |  120     0     2  ok
    hold       h2        10 |  120     0     2  duplicate_hold
    settle     h1        25 |   60    25     1  ok
    settle     h1        25 |   60    25     1  already_resolved
    void       h1         0 |   60    25     1  already_resolved
    hold       h1         5 |   60    25     1  duplicate_hold
    void       h2         0 |    0    25     0  ok
    settle     h2        60 |    0    25     0  already_resolved
    settle     h9         1 |    0    25     0  no_such_hold
    hold       h3        70 |   70    25     1  ok
    expire     h3         0 |    0    25     0  ok
    expire     h3         0 |    0    25     0  already_resolved
    settle     h3        90 |    0   115     0  ok
    settle     h3        90 |    0   115     0  already_resolved
    hold       h4        10 |   10   115     1  ok
    settle     h4        40 |    0   155     0  ok
    hold       h5        10 |   10   155     1  ok
    resolve    h5         3 |   10   155     1  not_in_doubt
    lose       h5        10 |    0   165     0  ok
    resolve    h5         3 |    0   158     0  ok
    resolve    h5         2 |    0   158     0  not_in_doubt
    settle     h5         9 |    0   158     0  already_resolved
    hold       h6        10 |   10   158     1  ok
    fail       h6         0 |    0   158     0  ok
    resolve    h6         7 |    0   165     0  ok
    resolve    h4         1 |    0   165     0  not_in_doubt
    resolve    h9         1 |    0   165     0  no_such_hold
    adjust     j1       -65 |    0   100     0  ok
    adjust     j1       -65 |    0   100     0  duplicate_hold
    adjust     j2         8 |    0   108     0  ok
    resolve    j2         1 |    0   108     0  not_in_doubt
    hold       j2         1 |    0   108     0  duplicate_hold
"""


def test_the_life_of_a_hold():
    books = Projection()

    def step(row):
        outcome = books.apply(step_of(row["step"], row["hold"], int(row["amount"])))
        return {
            "held": books.held.get("red", 0),
            "spent": books.spent.get("red", 0),
            "open": books.open_holds,
            "says": outcome.value,
        }

    play(STORY, step)


# A crash leaves open holds in doubt: each counts as spent until somebody says what it cost, or its ending comes after all.
CRASH = """
    # step     hold  amount | held spent  open  doubt  says
    hold       h1        60 |   60     0     1  -      ok
    hold       h2        40 |  100     0     2  -      ok
    hold       h3        30 |  130     0     3  -      ok
    hold       h4        20 |  150     0     4  -      ok
    settle     h4        15 |  130    15     3  -      ok
    crash      -          0 |  130    15     3  h1h2h3 ok
    hold       h1         5 |  130    15     3  h1h2h3 duplicate_hold
    resolve    h1        12 |   70    27     2  h2h3   ok
    resolve    h1        13 |   70    27     2  h2h3   not_in_doubt
    settle     h1        60 |   70    27     2  h2h3   already_resolved
    settle     h2        45 |   30    72     1  h3     ok
    resolve    h2         1 |   30    72     1  h3     not_in_doubt
    hold       h5        10 |   40    72     2  h3     ok
    resolve    h5         1 |   40    72     2  h3     not_in_doubt
    resolve    h3         0 |   10    72     1  -      ok
"""


def test_what_a_crash_leaves_open_is_said_by_hand_or_ends_late():
    books = Projection()

    def step(row):
        nonlocal books
        says = Outcome.OK
        if row["step"] == "crash":
            after = Projection(spent=dict(books.spent))
            for hold, state in books.holds.items():
                after.reopen(hold, state._replace(doubt=True))
            books = after
        else:
            # One that ended before the crash is looked up in the file by its home.
            says = books.apply(step_of(row["step"], row["hold"], int(row["amount"])))
        return {
            "held": books.held.get("red", 0),
            "spent": books.spent.get("red", 0),
            "open": books.open_holds,
            "doubt": "".join(sorted(hold for hold, state in books.holds.items() if state.doubt)) or "-",
            "says": says.value,
        }

    play(CRASH, step)


STEPS = st.lists(
    st.tuples(st.sampled_from(["hold", "settle", "void", "expire"]), st.sampled_from("abcd"), st.integers(0, 100)),
    max_size=40,
)


@given(STEPS)
def test_a_rebuild_from_the_accepted_entries_is_the_projection(words):
    books, entries = Projection(), []
    for word, hold, amount in words:
        step = step_of(word, hold, amount)
        if books.apply(step) is Outcome.OK:
            entries.append(step)
    rebuilt = Projection()
    rebuilt.replay(entries)
    assert rebuilt == books


@given(STEPS)
def test_what_is_held_is_the_sum_of_open_holds_and_nothing_is_spent_twice(words):
    books, settled = Projection(), {}
    for word, hold, amount in words:
        step = step_of(word, hold, amount)
        if books.apply(step) is Outcome.OK and isinstance(step, Settle):
            assert hold not in settled, "one settlement a hold"
            settled[hold] = amount
    assert books.held.get("red", 0) == sum(state.held for state in books.holds.values())
    assert books.spent.get("red", 0) == sum(settled.values())


def test_resolved_holds_are_remembered_within_a_bound():
    books = Projection(resolved_max=2)
    for name in "abc":
        books.apply(step_of("hold", name, 1))
        books.apply(step_of("void", name, 0))
    assert books.apply(step_of("settle", "c", 1)) is Outcome.ALREADY_RESOLVED
    assert books.apply(step_of("settle", "a", 1)) is Outcome.NO_SUCH_HOLD


def test_every_phase_and_every_move_is_in_the_table():
    assert set(NEXT) == set(Phase)
    assert {move for moves in NEXT.values() for move in moves} == set(Move)


def test_every_ending_has_a_charge_and_a_count():
    assert set(CHARGE) == set(Ending)
    assert set(CALL_COUNTS) == set(Ending)
    for story in (CHARGES, CALLS):
        assert {given["ending"] for _, given, _ in rows(story)} == {ending.value for ending in Ending}


# fmt: off
CHARGES = """
    # ending           gateway reported metered | credits basis    uncertain
    answered                 7        5       6 | 7       gateway  False
    answered                 -        5       6 | 5       usage    False
    answered                 -        -       6 | 6       metered  False
    answered                 -        -       - | 100     hold     False
    answered                 -        0       - | 0       usage    False
    caller_left              -        -       6 | 6       metered  True
    caller_left              -        -     106 | 100     metered  True
    answered                 -      106     106 | 106     usage    False
    caller_left              -        -       - | 100     hold     True
    upstream_broke           -        -       - | 100     hold     True
    timed_out                -        -       6 | 6       metered  True
    proxy_stopped            -        -       - | 100     hold     True
    never_sent               7        5       6 | 0       nothing  False
    refused                  -        -       - | 0       nothing  False
    hit                      -        5       - | 0       nothing  False
    gateway_refused          7        5       6 | 0       nothing  False
    gateway_failed           7        5       6 | 0       nothing  True
"""
CALLS = """
    # ending           | calls uncertain
    answered           | 1     False
    caller_left        | 1     True
    upstream_broke     | 1     True
    timed_out          | 1     True
    never_sent         | 0     False
    gateway_refused    | 0     False
    gateway_failed     | 0     True
    hit                | 0     False
    refused            | 0     False
    proxy_stopped      | 1     True
"""
# fmt: on


def test_what_each_ending_costs():
    def step(row):
        known = Figures(*(None if row[name] == "-" else int(row[name]) for name in ("gateway", "reported", "metered")))
        cost = charge(Ending(row["ending"]), known, 100)
        return {"credits": cost.credits, "basis": cost.basis.value, "uncertain": cost.uncertain}

    play(CHARGES, step)


def test_what_each_ending_of_a_tool_call_counts():
    def step(row):
        cost = charge(Ending(row["ending"]), Figures(reported=3), 3, is_call=True)
        return {"calls": cost.calls, "uncertain": cost.uncertain}

    play(CALLS, step)


@given(st.sampled_from(Ending), st.integers(1, 10**15))
def test_a_call_that_may_have_been_charged_is_never_free_because_usage_is_missing(ending, held):
    cost = charge(ending, Figures(), held)
    if CHARGE[ending] in (Rule.USAGE, Rule.METERED_ELSE_HELD):
        assert (cost.credits, cost.basis) == (held, Basis.HOLD)
