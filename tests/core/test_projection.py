"""The life of a hold, as tables and as properties."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.charges import Basis, Charge, Ending
from proxy.core.facts import Facts
from proxy.core.ledger import Adjust, Expire, Hold, Outcome, Resolve, Settle, Void
from proxy.core.projection import Projection
from tests.stories import play

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
    for step in entries:
        rebuilt.apply(step)
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
