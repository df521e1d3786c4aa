"""One suite for every home of the ledger: what it promises, whichever it is."""

import asyncio
from dataclasses import replace

import pytest

from proxy.core.charges import Basis, Charge, Ending, Figures, charge
from proxy.core.facts import Facts
from proxy.core.keyring import Issued, Keyring
from proxy.core.ledger import Adjust, Expire, Hold, Outcome, Settle, Void
from proxy.core.limits import Budget, Each
from proxy.core.riders import IssueKey
from proxy.core.spending import Total
from proxy.core.windows import Calendar, Per, Sliding
from proxy.stores.ledger.archive import COLUMNS
from proxy.stores.ledger.memory import MemoryLedger
from proxy.stores.ledger.sqlite import SqliteLedger
from proxy.units import Credits
from tests.core.test_projection import STORY, step_of
from tests.stories import rows

NOW_S = 1_800_000_000.0
RED = Facts("red", "k", "chat", "m")
BUDGETS = (
    Budget("day", 100, Calendar(Per.DAY)),
    Budget("each-key", 80, Sliding(3600.0), each=Each.KEY),
    Budget("total", 150, Calendar(Per.TOTAL)),
)


@pytest.fixture(params=["memory", "sqlite"])
async def opened(request, tmp_path):
    """Opens the home with budgets; every home opened is closed at the end."""
    homes = []

    async def open_one(budgets=()):
        if request.param == "memory":
            home = MemoryLedger(budgets)
        else:
            home = await SqliteLedger.open(tmp_path / f"ledger{len(homes)}.db", budgets, now_s=NOW_S)
        homes.append(home)
        return home

    yield open_one
    for home in homes:
        await home.close()


async def test_the_story_of_a_hold_is_the_same_everywhere(opened):
    home = await opened()
    for text, given, expected in rows(STORY):
        (outcome,) = await home.apply([step_of(given["step"], given["hold"], int(given["amount"]), NOW_S)])
        seen = (home.projection.held.get("red", 0), home.projection.spent.get("red", 0), home.projection.open_holds)
        assert (*map(str, seen), outcome.value) == tuple(expected.values()), text


# Each call has a hold of 100; `known` is what its usage comes to. A refusal of ours and a hit never had a hold.
ENDINGS = """
    # ending           known | charged  doubt  spent
    answered              60 |      60     no     60
    answered               - |     100    yes    160
    answered             130 |     130     no    290
    never_sent            60 |       0     no    290
    gateway_refused       60 |       0     no    290
    gateway_failed        60 |       0    yes    290
    upstream_broke         - |     100    yes    390
    timed_out              - |     100    yes    490
    caller_left           10 |      10     no    500
    proxy_stopped          - |     100    yes    600
"""


async def test_each_ending_is_booked_alike_everywhere(opened):
    home = await opened()
    endings = set()
    for number, (text, given, expected) in enumerate(rows(ENDINGS)):
        ending, known, name = Ending(given["ending"]), given["known"], f"h{number}"
        endings.add(ending)
        cost = charge(ending, Figures(reported=None if known == "-" else int(known)), 100)
        if cost.basis is Basis.NOTHING:
            ends = Void(name, ending, NOW_S, cost.uncertain)
        else:
            ends = Settle(name, cost, ending, NOW_S)
        assert await home.apply([Hold(name, RED, 100, NOW_S), ends]) == [Outcome.OK, Outcome.OK], text
        doubtful = {hold for hold, _ in await home.doubtful()}
        state = await home.remember(name)
        seen = (state.charged, "yes" if name in doubtful else "no", home.projection.spent.get("red", 0))
        assert (*map(str, seen),) == tuple(expected.values()), text
        assert home.projection.open_holds == 0
    assert endings == set(Ending) - {Ending.HIT, Ending.REFUSED}
    assert list(await home.verify()) == []


# A call of a tool that costs 3: it counts once where it ran, and where nobody can know.
TOOL_CALLS = """
    # ending           | charged calls  doubt
    answered           |       3     1     no
    never_sent         |       0     0     no
    gateway_refused    |       0     0     no
    gateway_failed     |       0     0    yes
    upstream_broke     |       3     1    yes
    timed_out          |       3     1    yes
    caller_left        |       3     1    yes
    proxy_stopped      |       3     1    yes
"""


async def test_each_ending_of_a_tool_call_is_booked_alike_everywhere(opened):
    home, total = await opened(), [0, 0]
    for number, (text, given, expected) in enumerate(rows(TOOL_CALLS)):
        ending, name = Ending(given["ending"]), f"h{number}"
        cost = charge(ending, Figures(reported=3), 3, is_call=True)
        ends = Settle(name, cost, ending, NOW_S) if cost.calls else Void(name, ending, NOW_S, cost.uncertain)
        await home.apply([Hold(name, RED, 3, NOW_S), ends])
        entry = (await home.entry_page(0, 100))[-1]
        doubt = "yes" if name in {hold for hold, _ in await home.doubtful()} else "no"
        assert (str(entry["credits"]), str(entry["calls"]), doubt) == tuple(expected.values()), text
        total = [total[0] + entry["credits"], total[1] + entry["calls"]]
    assert [(one.credits, one.calls) for one in spent(await home.totals(NOW_S - 900))] == [tuple(total)]
    assert list(await home.verify()) == []


# What is read back of each kind of entry. `price`: where that of the call stands, - for a hold from before it was kept.
# A charge says it too where a price of ours made it.
ENTRIES = """
    # step    hold  amount  price      | kind     credits  basis    ending          uncertain  who   place
    hold      h1        60  t.yaml:7:5 | hold          60  -        -               0          -     t.yaml:7:5
    settle    h1        25  .          | settle        25  usage    answered        0          -     t.yaml:7:5
    hold      h2        40  built-in   | hold          40  -        -               0          -     built-in
    lose      h2        40  .          | settle        40  hold     timed_out       1          -     built-in
    resolve   h2        30  .          | resolve      -10  hand     -               0          lead  -
    hold      h3        40  t.yaml:7:5 | hold          40  -        -               0          -     t.yaml:7:5
    gateway   h3        33  .          | settle        33  gateway  answered        0          -     gateway
    hold      h4        10  no-price   | hold          10  -        -               0          -     no-price
    void      h4         0  .          | void           0  -        never_sent      0          -     -
    hold      h5        10  no-price   | hold          10  -        -               0          -     no-price
    fail      h5         0  .          | void           0  -        gateway_failed  1          -     -
    hold      h6        10  t.yaml:9:5 | hold          10  -        -               0          -     t.yaml:9:5
    expire    h6         0  .          | expire         0  -        -               0          -     -
    settle    h6        12  .          | settle        12  usage    answered        0          -     t.yaml:9:5
    hold      h7        10  -          | hold          10  -        -               0          -     not-kept
    settle    h7         8  .          | settle         8  usage    answered        0          -     not-kept
    adjust    j1       -65  .          | adjust       -65  hand     -               0          lead  -
"""


async def test_each_kind_of_entry_is_read_back_alike_everywhere(opened):
    home = await opened()
    for text, given, expected in rows(ENTRIES):
        hold, amount = given["hold"], int(given["amount"])
        if given["step"] == "gateway":
            step = Settle(hold, Charge(amount, Basis.GATEWAY), Ending.ANSWERED, NOW_S)
        else:
            step = step_of(given["step"], hold, amount, NOW_S)
        if given["step"] == "hold":
            step = step._replace(place=given["price"].replace("-", " ").strip())
        assert await home.apply([step]) == [Outcome.OK], text
        entry = (await home.entry_page(0, 100))[-1]
        seen = {name: str(entry[name]).replace(" ", "-") or "-" for name in expected}
        assert seen == dict(expected), text
    assert {tuple(entry) for entry in await home.entry_page(0, 100)} == {COLUMNS}
    assert list(await home.verify()) == []


async def test_a_batch_is_answered_step_by_step_in_order(opened):
    home = await opened((BUDGETS[0],))
    first, second = Hold("a", RED, 60, NOW_S), Hold("b", RED, 60, NOW_S)
    steps = [first, second, Void("a", Ending.NEVER_SENT, NOW_S), second]
    assert await home.apply(steps) == [Outcome.OK, Outcome.OVER_BUDGET, Outcome.OK, Outcome.OK]


async def test_a_thousand_at_once_never_pass_a_budget(opened):
    home = await opened((BUDGETS[0],))
    outcomes = await asyncio.gather(*(home.apply([Hold(f"h{n}", RED, 3, NOW_S)]) for n in range(1000)))
    assert sum(outcome == [Outcome.OK] for outcome in outcomes) == 33
    assert home.projection.accounts.used(BUDGETS[0], (), NOW_S) == (0, 99)


async def test_a_caller_that_is_cancelled_does_not_undo_its_batch(opened):
    home = await opened()
    asking = asyncio.ensure_future(home.apply([Hold("a", RED, 1, NOW_S)]))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert await home.apply([Hold("a", RED, 1, NOW_S)]) == [Outcome.DUPLICATE_HOLD]


async def test_a_late_settlement_is_booked_in_its_admissions_window(opened):
    home = await opened(BUDGETS)
    await home.apply([Hold("a", RED, 50, NOW_S), Expire("a", NOW_S + 10)])
    assert home.projection.accounts.used(BUDGETS[0], (), NOW_S + 20) == (0, 0)
    charge = Charge(40, Basis.USAGE)
    assert await home.apply([Settle("a", charge, Ending.ANSWERED, NOW_S + 30)]) == [Outcome.OK]
    assert home.projection.accounts.used(BUDGETS[0], (), NOW_S + 40) == (40, 0)


def settled(name, amount, at_s, calls=0):
    return [
        Hold(name, RED, amount, at_s),
        Settle(name, Charge(amount, Basis.USAGE, calls), Ending.ANSWERED, at_s + 1),
    ]


async def test_totals_are_per_quarter_of_an_hour_and_of_whole_ones(opened):
    home = await opened()
    quarter_s = NOW_S // 900 * 900
    for name, at_s in (("a", quarter_s), ("b", quarter_s + 899), ("c", quarter_s + 900)):
        await home.apply(settled(name, 10, at_s, calls=1))
    await home.apply([Adjust("d", RED, -3, "because", "anna", quarter_s + 900)])
    totals = await home.totals(quarter_s + 450)
    assert sorted((total.begun_s, total.facts, total.credits, total.calls) for total in spent(totals)) == [
        (quarter_s, RED, 20, 2),
        (quarter_s + 900, RED, 7, 1),
    ]
    assert [total.credits for total in spent(await home.totals(quarter_s + 900))] == [7]


def spent(totals):
    """Summed up, as homes may tell one quarter in several rows."""
    sums = {}
    for total in totals:
        was = sums.get((total.begun_s, total.facts), (0, 0))
        sums[total.begun_s, total.facts] = (was[0] + total.credits, was[1] + total.calls)
    return [Total(*place, *figures) for place, figures in sums.items()]


async def test_entries_are_read_page_by_page_in_the_order_they_were_written(opened):
    home = await opened()
    for name in ("a", "b"):
        await home.apply(settled(name, 10, NOW_S))
    first = await home.entry_page(0, 3)
    rest = await home.entry_page(first[-1]["id"], 3)
    assert [entry["kind"] for entry in [*first, *rest]] == ["hold", "settle", "hold", "settle"]
    assert [entry["hold"] for entry in [*first, *rest]] == ["a", "a", "b", "b"]
    assert await home.entry_page(rest[-1]["id"], 3) == []
    assert list(await home.verify()) == []


# `each` keeps an account for each key over a sliding hour, `day` one for all over a calendar day, which begins eight
# hours before the first row. `limit` says what `day` allows from then on; 0 takes it away.
LIMITS = """
    # hour   step     hold  key  amount |  day  each  says
    0.0      hold     a     k        60 |   60    60  ok
    0.0      hold     b     k        30 |   60    60  over_budget
    0.0      hold     c     l        40 |  100    40  ok
    0.0      hold     d     m         1 |  100     0  over_budget
    0.1      settle   a     k        20 |   60    20  ok
    0.1      hold     b     k        40 |  100    60  ok
    0.2      void     b     k         0 |   60    20  ok
    0.2      limit    -     k        50 |   60    20  ok
    0.2      hold     e     k         1 |   60    20  over_budget
    0.3      settle   c     l        10 |   30    10  ok
    0.3      hold     e     k        20 |   50    40  ok
    0.3      limit    -     k       500 |   50    40  ok
    0.4      settle   e     k        20 |   50    40  ok
    0.5      limit    -     k         0 |    0    40  ok
    0.5      hold     f     k        40 |    0    80  ok
    0.5      hold     g     k         1 |    0    80  over_budget
    0.6      limit    -     k       100 |   90    80  ok
    0.7      expire   f     k         0 |   50    40  ok
    0.8      settle   f     k        35 |   85    75  ok
    0.9      adjust   h     k       -15 |   70    60  ok
    1.05     hold     i     k        50 |   70    40  over_budget
    1.05     hold     i     k        20 |   90    60  ok
    1.1      void     i     k         0 |   70    40  ok
    2.0      hold     j     k        30 |  100    30  ok
    15.9     settle   j     k        30 |  100     0  ok
    16.1     hold     o     k        80 |   80    80  ok
    16.2     settle   o     k        80 |   80    80  ok
    16.3     adjust   p     k       -30 |   50    50  ok
    16.4     limit    -     k       120 |   50    50  ok
    40.1     hold     q     k        80 |   80    80  ok
"""


def limits_with(day):
    each = Budget("each", 80, Sliding(3600.0), each=Each.KEY)
    return (Budget("day", day, Calendar(Per.DAY)), each) if day else (each,)


async def test_the_story_of_limits_is_the_same_everywhere(opened):
    """Windows that end, limits that are narrowed, widened, taken away and put back, and hands that correct."""
    budgets = limits_with(100)
    home = await opened(budgets)
    for text, given, expected in rows(LIMITS):
        at_s, facts, amount = (
            NOW_S + float(given["hour"]) * 3600,
            Facts("red", given["key"], "chat", "m"),
            int(given["amount"]),
        )
        if given["step"] == "limit":
            budgets = limits_with(amount)
            await home.rebudget(budgets)
            says = "ok"
        else:
            match given["step"]:
                case "hold":
                    step = Hold(given["hold"], facts, amount, at_s)
                case "settle":
                    step = Settle(given["hold"], Charge(amount, Basis.USAGE), Ending.ANSWERED, at_s)
                case "void":
                    step = Void(given["hold"], Ending.NEVER_SENT, at_s)
                case "expire":
                    step = Expire(given["hold"], at_s)
                case "adjust":
                    step = Adjust(given["hold"], facts, amount, "because", "anna", at_s)
            (outcome,) = await home.apply([step])
            says = outcome.value
        used = {
            budget.name: sum(
                home.projection.accounts.used(budget, ("red", given["key"]) if budget.each is Each.KEY else (), at_s)
            )
            for budget in budgets
        }
        seen = {"day": str(used.get("day", 0)), "each": str(used["each"]), "says": says}
        assert seen == dict(expected), f"row: {text}"
    assert list(await home.verify()) == []


# A policy is reloaded while it counts. `in-force` has each limit with what is used of it, `each` for the row's key. What a
# limit counts goes by what it says, not by its name: one that comes or is renamed begins with what its window has used
# already, one that goes takes nothing along. A key that takes over from another goes on in its account.
RELOADS = """
    # hour  step      what   key    amount | in-force                  says
    0.0     hold      a      k          60 | day=60/100                ok
    0.1     settle    a      k          50 | day=50/100                ok
    0.2     hold      b      l          30 | day=80/100                ok
    0.2     rename    day    daily       - | daily=80/100              ok
    0.3     hold      c      k          30 | daily=80/100              over_budget
    0.3     narrow    daily  -          70 | daily=80/70               ok
    0.3     hold      c      k           1 | daily=80/70               over_budget
    0.4     settle    b      l          10 | daily=60/70               ok
    0.4     hold      c      k          10 | daily=70/70               ok
    0.5     add       each   -          65 | daily=70/70,each=60/65    ok
    0.5     widen     daily  -         500 | daily=70/500,each=60/65   ok
    0.6     hold      d      k          10 | daily=70/500,each=60/65   over_budget
    0.6     hold      d      l          40 | daily=110/500,each=50/65  ok
    0.7     replace   k      n           - | daily=110/500,each=60/65  ok
    0.7     hold      e      n          10 | daily=110/500,each=60/65  over_budget
    0.7     hold      e      n           5 | daily=115/500,each=65/65  ok
    0.8     void      e      n           0 | daily=110/500,each=60/65  ok
    0.8     remove    each   -           - | daily=110/500             ok
    0.9     hold      f      k          90 | daily=200/500             ok
    0.9     remove    daily  -           - | -                         ok
    1.0     hold      g      k         999 | -                         ok
    1.0     void      g      k           0 | -                         ok
    1.0     add       day    -         220 | day=200/220               ok
    1.1     expire    f      k           0 | day=110/220               ok
    16.1    hold      h      k         220 | day=220/220               ok
    16.2    settle    f      k          95 | day=220/220               ok
    16.2    settle    d      l          40 | day=220/220               ok
    16.3    adjust    j      k         -20 | day=200/220               ok
    16.4    settle    h      k         230 | day=210/220               ok
"""
REWRITES = ("rename", "narrow", "widen", "add", "remove")


def rewritten(limits, step, what, to, amount):
    """A policy's limits by name, after one change."""
    match step:
        case "rename":
            return {to if name == what else name: replace(one, name=to) for name, one in limits.items()}
        case "narrow" | "widen":
            return limits | {what: replace(limits[what], amount=int(amount))}
        case "add":
            each = Each.KEY if what == "each" else None
            return limits | {what: Budget(what, int(amount), Calendar(Per.DAY), each=each)}
        case "remove":
            return {name: one for name, one in limits.items() if name != what}


async def test_the_story_of_reloads_is_the_same_everywhere(opened):
    limits, ring = {"day": Budget("day", 100, Calendar(Per.DAY))}, Keyring()
    home = await opened(tuple(limits.values()))
    for text, given, expected in rows(RELOADS):
        at_s, word, what, says = NOW_S + float(given["hour"]) * 3600, given["step"], given["what"], Outcome.OK
        account = ring.account_of("red", given["key"] if given["key"] in ("l", "n") else "k")
        if word in REWRITES:
            limits = rewritten(limits, word, what, given["key"], given["amount"])
            await home.rebudget(tuple(limits.values()))
        elif word == "replace":
            await home.apply([IssueKey(given["key"], "red", "ab" * 32, at_s, account=what)])
            kept = [one.issued for one in await home.keys()]
            ring = Keyring(None, [Issued(one.id, one.team, b"", 0.0, account=one.account) for one in kept])
            account = ring.account_of("red", given["key"])
        else:
            step = step_of(word, what, int(given["amount"]), at_s)
            if word in ("hold", "adjust"):
                step = step._replace(facts=RED._replace(key=account))
            (says,) = await home.apply([step])
        used = {
            name: sum(home.projection.accounts.used(one, ("red", account) if one.each else (), at_s))
            for name, one in limits.items()
        }
        shown = ",".join(f"{name}={used[name]}/{one.amount}" for name, one in limits.items()) or "-"
        assert (shown, says.value) == tuple(expected.values()), f"row: {text}\nseen: {shown} {says.value}"
    assert list(await home.verify()) == []


async def test_what_a_call_was_let_go_for_is_not_another_ones_under_the_next_policy(opened):
    home = await opened(BUDGETS)
    home.projection.accounts.promise("first", RED, 60, NOW_S)
    await home.rebudget(BUDGETS)
    late, first = Hold("late", RED, Credits(60), NOW_S), Hold("first", RED, Credits(60), NOW_S)
    assert await home.apply([late, first]) == [Outcome.OVER_BUDGET, Outcome.OK]
    assert home.projection.accounts.promised == {}
