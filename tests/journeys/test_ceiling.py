"""A budget is a ceiling, on a process of its own: of a thousand calls at once as many go through as money is there for.

What the gateway's double counted is the witness. Budgets are made for exactly fifty calls; where a call costs less than
it holds, fifty fit as soon as the charges of forty-nine are known and the hold of the last one fits beside them.
"""

import asyncio
import contextlib
import hashlib
import random
import sqlite3
from collections import Counter
from decimal import Decimal

import aiohttp
import pytest

from tests.journeys.programs import serving

MANY, FITTING = 1000, 50
HEAD = "gateway_limits: own\nstorms: pass\n"
PRICES = """
prices:
  - { models: "gpt-4o", input_per_million: 2.5, output_per_million: 10, output_tokens_max: 400 }
  - { models: "claude-*", input_per_million: 3, output_per_million: 15 }
  - { models: "image-lab-small", per_image: 10 }
"""
SAID = [{"role": "user", "content": "[[words:20]]"}]
# fmt: off
KINDS = {
    # kind            path                                body
    "image":         ("/v1/images/generate",              {"model": "image-lab-small", "prompt": "x"}),
    "chat":          ("/v1/chat/completions",             {"model": "gpt-4o", "messages": SAID}),
    "chat stream":   ("/v1/chat/completions",             {"model": "gpt-4o", "messages": SAID, "stream": True, "stream_options": {"include_usage": True}}),
    "native stream": ("/v1/messages",                     {"model": "claude-sonnet-x", "messages": SAID, "max_tokens": 64, "stream": True}),
}
# fmt: on


def keyed(name):
    return hashlib.sha256(name.encode()).hexdigest()


@contextlib.contextmanager
def place(home, gateway, folder, rules, *arguments):
    """A proxy with these rules, and the prices of all kinds; its folders are `folder`."""
    (folder / "rules").mkdir(parents=True)
    gateway.fill(10**6)
    (folder / "rules" / "a.yaml").write_text(HEAD + PRICES + rules)
    where = ("--policies", str(folder / "rules"), "--data", str(folder / "data"))
    with serving(home, gateway.url, *where, *arguments) as program:
        yield program


@pytest.fixture(scope="module")
def costs(home, _emulated, tmp_path_factory):
    """What one call of each kind holds and costs, in credits."""
    with place(home, _emulated, tmp_path_factory.mktemp("before") / "it", "", "--auth", "open") as program:

        async def ask():
            async with callers() as client:
                for path, body in KINDS.values():
                    async with client.post(program.url("listens on") + path, json=body) as reply:
                        await reply.read()
                        assert reply.status == 200, await reply.text()

        asyncio.run(ask())
        assert program.stop() == 0
        events = [event for event in program.events if event["event"] == "request"]
    found = [(Decimal(event["held"]), Decimal(event["charged"])) for event in events]
    return dict(zip(KINDS, found, strict=True))


def callers():
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(270))


async def ask(client, url, kind, key=None):
    """Status and reason of one call."""
    path, body = KINDS[kind]
    headers = {"x-api-key": key} if key else {}
    async with client.post(url + path, json=body, headers=headers) as reply:
        text = await reply.read()
        return reply.status, (await reply.json())["error"]["reason"] if reply.status != 200 else len(text) > 0


def spending(gateway):
    """The calls that reached the gateway and cost something."""
    return [seen for seen in gateway.seen() if seen.method == "POST"]


def figures(program, key=None):
    """Spent and held of each budget, by name and group, in credits."""

    async def read():
        headers = {"x-api-key": key} if key else {}
        async with callers() as client:
            while True:
                async with client.get(program.url("listens on") + "/-/budget", headers=headers) as reply:
                    shown = await reply.json()
                if shown["held_credits"] == "0":
                    return {
                        (row["name"], row["group"]): (Decimal(row["spent"]), Decimal(row["held"]))
                        for row in shown["limits"]
                    }

    return asyncio.run(read())


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_thousand_calls_at_once_exactly_fifty_get_through(home, gateway, tmp_path, costs, kind):
    held, charged = costs[kind]
    amount = charged * (FITTING - 1) + held
    rules = f"teams: {{ all: {{ wait_max: 240s, cache: off }} }}\nopen_team: all\nbudgets: [{{ name: b, credits: {amount}, within: 30d }}]\n"
    with place(home, gateway, tmp_path, rules, "--auth", "open") as program:
        url = program.url("listens on")

        async def all_at_once():
            async with callers() as client:
                return Counter(await asyncio.gather(*(ask(client, url, kind) for _ in range(MANY))))

        assert asyncio.run(all_at_once()) == {
            (200, True): FITTING,
            (402, "budget_exhausted"): MANY - FITTING,
        }
        assert len(spending(gateway)) == FITTING
        assert figures(program) == {("b", None): (charged * FITTING, 0)}
        assert program.stop() == 0


NESTED = f"""
teams:
  red: {{ wait_max: 240s, cache: off, keys: [{{ id: r1, sha256: "{keyed("r1")}" }}, {{ id: r2, sha256: "{keyed("r2")}" }}] }}
  blue: {{ wait_max: 240s, cache: off, keys: [{{ id: b1, sha256: "{keyed("b1")}" }}, {{ id: b2, sha256: "{keyed("b2")}" }}] }}
budgets:
  - {{ name: company, credits: 500, within: 30d }}
  - {{ name: each-team, each: team, credits: 300, within: 30d }}
  - {{ name: each-key, each: key, credits: 200, within: 20d }}
"""


def test_callers_who_leave_at_any_point_take_nothing_from_three_budgets_one_in_another(home, gateway, tmp_path):
    """A third of a thousand callers leave, before or while they are answered: what was sent is paid, all else is free.

    The company has fifty images, each team thirty, each key twenty; a call draws on all three.
    """
    rng = random.Random(20261128)
    with place(home, gateway, tmp_path, NESTED) as program:
        url = program.url("listens on")

        async def leaving(client, key):
            call = asyncio.ensure_future(ask(client, url, "image", key))
            await asyncio.wait([call], timeout=rng.random() * 1.5)
            call.cancel()
            return await asyncio.gather(call, return_exceptions=True)

        async def all_at_once():
            async with callers() as client:
                calls = [
                    leaving(client, key) if number % 3 == 0 else ask(client, url, "image", key)
                    for number in range(MANY // 4)
                    for key in ("r1", "r2", "b1", "b2")
                ]
                await asyncio.gather(*calls)
                # Whatever money is still free is there for whoever asks now.
                return [await ask(client, url, "image", key) for key in ("r1", "r2", "b1", "b2") for _ in range(25)]

        assert {status for status, _ in asyncio.run(all_at_once())} <= {200, 402}
        arrived = len(spending(gateway))
        assert arrived == FITTING
        seen = {name: figures(program, name) for name in ("r1", "r2", "b1", "b2")}
        assert seen["r1"]["company", None] == (10 * FITTING, 0)
        teams = [seen["r1"]["each-team", "red"][0], seen["b1"]["each-team", "blue"][0]]
        keys = [figures_of["each-key", name][0] for name, figures_of in seen.items()]
        assert sum(teams) == sum(keys) == 10 * FITTING
        assert max(teams) <= 300
        assert max(keys) <= 200
        assert program.stop() == 0


def test_a_window_that_ends_among_a_thousand_calls_gives_each_window_its_fifty(home, gateway, tmp_path):
    """The window slides while calls arrive. The books say when each hold was taken: no window holds more than fifty."""
    rules = """
teams: { all: { wait_max: 240s, cache: off } }
open_team: all
budgets: [{ name: b, credits: 500, within: 1s }]
"""
    with place(home, gateway, tmp_path, rules, "--auth", "open") as program:
        url = program.url("listens on")

        async def wave(count):
            async with callers() as client:
                return Counter(await asyncio.gather(*(ask(client, url, "image") for _ in range(count))))

        told = Counter()
        while told.total() < MANY or told[200, True] < 3 * FITTING:
            told += asyncio.run(wave(MANY // 2))
        assert program.stop() == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "ledger.db")) as books:
        taken = [at_s for (at_s,) in books.execute("SELECT at_s FROM entries WHERE kind = 'hold' ORDER BY at_s")]
    assert set(told) == {(200, True), (402, "budget_exhausted")}
    assert len(spending(gateway)) == told[200, True] == len(taken)
    for first, at_s in enumerate(taken):
        assert sum(at_s <= other_s < at_s + 1.0 for other_s in taken[first:]) <= FITTING
