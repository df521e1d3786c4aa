"""A budget is a ceiling, on real sockets: exactly what fits reaches the gateway, whatever happens at the same time."""

import asyncio
import hashlib
import random
from dataclasses import replace

import orjson
import pytest

from proxy.core.facts import Facts
from proxy.core.ledger import Hold, Outcome, Settle
from proxy.core.limits import Budget, Each, Match
from proxy.core.policy import KeyRef, Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.pricing import ceiling
from proxy.core.windows import Calendar, Per, Sliding
from proxy.stores.ledger.sqlite import SqliteLedger
from tests.proxies import CHAT, NATIVE, RESPONSE, afternoon_s, proxied
from tests.restarts import restarted

CREDIT = 10**8
DAY = Calendar(Per.DAY)
PRICES = PriceTable(
    (
        Rule("models", "gpt-*", Price(250 * CREDIT, 1000 * CREDIT)),
        Rule("models", "claude-*", Price(300 * CREDIT, 1500 * CREDIT)),
        Rule("models", "gem-*", Price(200 * CREDIT, 1200 * CREDIT)),
        Rule("models", "image-*", Price(per_image=50 * CREDIT)),
        Rule("models", "video-*", Price(per_video=200 * CREDIT)),
        Rule("models", "speech-*", Price(1000 * CREDIT)),
        Rule("chatbots", "*", Price(per_call=5 * CREDIT)),
        Rule("suites", "calc", Price(per_call=2 * CREDIT)),
    )
)


def team(name, **more):
    return Team(name, (KeyRef(f"{name}-1", hashlib.sha256(name.encode()).digest()),), **more)


def policy(*budgets, prices=PRICES, wait_max_s=0.0, **more):
    teams = {name: team(name, wait_max_s=wait_max_s, **more) for name in ("red", "blue")}
    return Policy(teams=teams, open_team="red", budgets=budgets, prices=prices)


def key(name):
    return {"x-api-key": name}


def used(front, name, group=()):
    accounts = front.running.parts.books.accounts
    budget = next(budget for budget in accounts.budgets if budget.name == name)
    return accounts.used(budget, group, front.running.parts.wall())


async def test_a_thousand_calls_against_a_budget_for_fifty_are_fifty(gateway):
    """Each call costs what it holds, so exactly fifty fit; all others are refused, and nothing is overspent."""
    gateway.set_credits("alpha", 10**6 * CREDIT)
    rules = policy(Budget("images", 50 * 50 * CREDIT, DAY))
    async with proxied(gateway.url, rules) as front:

        async def one(number):
            return (await front.post("/v1/images/generate", {"model": "image-lab-large", "prompt": f"{number}"})).status

        statuses = await asyncio.gather(*(one(number) for number in range(1000)))
        assert set(statuses) <= {200, 402, 429}
        assert statuses.count(200) == 50
        assert len(gateway.journal) == 50
        await front.running.parts.books.written()
        assert used(front, "images") == (50 * 50 * CREDIT, 0)


async def test_none_is_refused_while_its_money_is_free(gateway):
    """Holds are larger than charges: calls wait for running ones to end, and the budget is used to the full."""
    body = {**CHAT, "max_tokens": 50}
    async with proxied(gateway.url, policy(wait_max_s=20.0)) as front:
        reply = await front.post("/v1/chat/completions", body)
        charged = front.entries[-1].charge.credits
        held = front.entries[0].credits
        assert reply.status == 200
    assert held > charged
    count = 30
    # Room for the charges of all and the hold of the last.
    rules = policy(Budget("b", charged * (count - 1) + held, DAY), wait_max_s=20.0)
    async with proxied(gateway.url, rules) as front:
        replies = await asyncio.gather(*(front.post("/v1/chat/completions", body) for _ in range(count)))
        assert {reply.status for reply in replies} == {200}
        await front.running.parts.books.written()
        assert used(front, "b") == (charged * count, 0)


@pytest.mark.parametrize(("amount", "open_", "reason"), [(80, 0, "budget_exhausted"), (110, 50, "budget_busy")])
async def test_who_is_refused_for_calls_in_doubt_hears_so_and_whoever_resolves_them_lets_others_through(
    gateway, tmp_path, amount, open_, reason
):
    """Said is how much they hold of the budget that refuses, and not whose they are."""
    gateway.set_credits("alpha", 10**6 * CREDIT)
    rules = policy(Budget("all", amount * CREDIT, DAY), Budget("red", 10**6 * CREDIT, DAY, Match(team="red")))
    image = {"model": "image-lab-small", "prompt": "x"}
    cut = Hold("cut-off", Facts("blue", "blue-key", "images", "secret-model"), 40 * CREDIT, afternoon_s())
    home = await SqliteLedger.open(tmp_path / "ledger.db", rules.budgets, now_s=afternoon_s())
    assert await home.apply([cut]) == [Outcome.OK]
    await home.close()
    async with restarted(gateway.url, rules, tmp_path) as front:
        books = front.running.parts.books
        running = Hold("open", Facts("blue", "blue-key", "images"), open_ * CREDIT, afternoon_s())
        assert await books.hold(running) is None
        reply = await front.post("/v1/images/generate", image)
        assert (reply.error["reason"], reply.error["in_doubt"]) == (reason, "40")
        assert "Calls that a crash cut off hold 40 credits of this budget until" in reply.error["message"]
        assert "`sluicegate ledger doubts`" in reply.error["message"]
        assert not any(word in reply.body for word in (b"cut-off", b"blue", b"secret-model"))
        listed = (await front.admin("GET", "/api/ledger/doubts"))[1]["unknown"]
        assert [(one["hold"], one["held"]) for one in listed] == [("cut-off", "40")]
        said = {"hold": "cut-off", "credits": "0", "reason": "it was never sent"}
        assert (await front.admin("POST", "/api/ledger/resolve", said))[0] == 200
        assert (await front.post("/v1/images/generate", image)).status == 200
        again = await front.post("/v1/images/generate", image)
        assert "in_doubt" not in again.error
        assert "crash" not in again.error["message"]


async def test_cancelled_calls_leave_no_hold_and_overspend_nothing(gateway):
    rng = random.Random(7)
    amount = 40 * CREDIT // 10
    rules = policy(Budget("b", amount, DAY), wait_max_s=1.0)
    async with proxied(gateway.url, rules) as front:
        ceilings = []

        async def one(number):
            body = {**CHAT, "stream": number % 2 == 0, "max_tokens": rng.randint(1, 200)}
            call = asyncio.ensure_future(front.post("/v1/chat/completions", body))
            if number % 3 == 0:
                await asyncio.wait([call], timeout=rng.random() * 0.05)
                call.cancel()
            ceilings.append(body)
            return await asyncio.gather(call, return_exceptions=True)

        await asyncio.gather(*(one(number) for number in range(150)))
        await front.running.parts.exchanges.finished()
        await front.until(lambda: front.running.parts.books.open_holds == 0)
        settled, held = used(front, "b")
        assert held == 0
        assert settled <= amount
        spent = sum(entry.charge.credits for entry in front.entries if isinstance(entry, Settle))
        assert spent == settled


async def test_budgets_nested_three_deep_all_hold(gateway):
    gateway.set_credits("alpha", 10**6 * CREDIT)
    rules = policy(
        Budget("company", 10 * 50 * CREDIT, Calendar(Per.MONTH)),
        Budget("red", 6 * 50 * CREDIT, DAY, match=Match(team="red")),
        Budget("each-key", 4 * 50 * CREDIT, Sliding(3600.0), each=Each.KEY),
    )
    async with proxied(gateway.url, rules, auth="keys") as front:
        image = {"model": "image-lab-small", "prompt": "x"}
        red = [(await front.post("/v1/images/generate", image, headers=key("red"))).status for _ in range(6)]
        blue = [(await front.post("/v1/images/generate", image, headers=key("blue"))).status for _ in range(6)]
        assert red == [200] * 4 + [402] * 2
        assert blue == [200] * 4 + [402] * 2
        assert len(gateway.journal) == 8


async def test_a_refusal_names_the_budget_and_when_it_reopens(gateway):
    async with proxied(gateway.url, policy(Budget("lunch", 60 * CREDIT, DAY))) as front:
        image = {"model": "image-lab-small", "prompt": "x"}
        assert (await front.post("/v1/images/generate", image)).status == 200
        reply = await front.post("/v1/images/generate", image)
        assert (reply.status, reply.error["reason"], reply.error["code"]) == (
            402,
            "budget_exhausted",
            "insufficient_quota",
        )
        assert "The budget lunch has 10 of 60 credits left and this call may cost up to 50." in reply.error["message"]
        assert reply.error["resets_at"].endswith("T00:00:00Z")
        assert (reply.error["limit"], reply.error["left"]) == ("lunch", "10")
        too_large = await front.post("/v1/video/generation", {"model": "video-200", "prompt": "x"})
        assert too_large.error["reason"] == "request_over_budget"
        assert len(gateway.journal) == 1
        shown = (await front.get("/-/budget")).json["limits"]
        assert [(row["name"], row["spent"], row["left"]) for row in shown] == [("lunch", "50", "10")]


async def test_a_key_sees_every_budget_within_its_reach_and_no_account_of_others(gateway):
    gateway.set_credits("alpha", 10**6 * CREDIT)
    image = {"model": "image-lab-large", "prompt": "x"}
    budgets = (
        Budget("all", 900 * CREDIT, DAY),
        Budget("mine", 500 * CREDIT, DAY, match=Match(team="red")),
        Budget("theirs", 500 * CREDIT, DAY, match=Match(team="blue")),
        Budget("each-key", 300 * CREDIT, DAY, each=Each.KEY),
        Budget("dear", 200 * CREDIT, Sliding(3600.0), match=Match(model="*large*")),
        Budget("by-model", 100 * CREDIT, DAY, each=Each.MODEL),
    )
    async with proxied(gateway.url, policy(*budgets), auth="keys") as front:
        assert (await front.post("/v1/images/generate", image, headers=key("blue"))).status == 200
        await front.running.parts.books.written()
        shown = (await front.get("/-/budget", headers=key("red"))).json["limits"]
        assert [(row["name"], row["group"], row["match"], row["left"]) for row in shown] == [
            ("all", None, None, "850"),
            ("mine", None, None, "500"),
            ("each-key", "red-1", None, "300"),
            ("dear", None, {"model": "*large*"}, "150"),
            ("by-model", "image-lab-large", None, "50"),
        ]
        assert all(row["resets_at"] for row in shown)


async def test_a_tool_call_over_budget_is_told_in_json_rpc(gateway):
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    async with proxied(gateway.url, policy(Budget("tools", 3 * CREDIT, DAY, match=Match(suite="calc")))) as front:
        assert (await front.post("/v1/mcp/calc", call)).json["result"]
        reply = await front.post("/v1/mcp/calc", call)
        error = reply.json["error"]
        assert (reply.status, error["code"], error["data"]["reason"]) == (200, -32002, "budget_exhausted")
        assert (await front.post("/v1/mcp/calc", {"jsonrpc": "2.0", "id": 4, "method": "tools/list"})).json["result"]


async def test_a_model_without_a_price_is_refused_where_a_budget_counts_it(gateway):
    async with proxied(gateway.url, policy(Budget("b", CREDIT, DAY), prices=PriceTable())) as front:
        reply = await front.post("/v1/chat/completions", CHAT)
        assert (reply.status, reply.error["reason"]) == (402, "unpriced_model")
        assert len(gateway.journal) == 0


@pytest.mark.parametrize(("held", "listed"), [(2 * CREDIT, 1), (0, 0)])
async def test_what_has_no_price_is_charged_by_a_guess_that_somebody_may_mend(gateway, held, listed):
    rules = replace(policy(Budget("b", 9 * CREDIT, DAY), prices=PriceTable()), unpriced_hold=held)
    async with proxied(gateway.url, rules) as front:
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        books = front.running.parts.books
        await books.written()
        assert (books.figures("red").spent, len(await books.store.doubtful())) == (held, listed)


@pytest.mark.parametrize("price", [Price(per_call=CREDIT), Price(per_image=CREDIT), Price(per_video=CREDIT)])
async def test_a_price_of_other_units_alone_makes_no_call_free(gateway, price):
    table = PriceTable((Rule("models", "*", price),))
    async with proxied(gateway.url, policy(Budget("b", CREDIT, DAY), prices=table)) as front:
        for path, body in (("/v1/chat/completions", CHAT), ("/v1/messages", NATIVE), ("/v1/responses", RESPONSE)):
            reply = await front.post(path, body)
            assert (reply.status, reply.error["reason"]) == (402, "unpriced_model")
        assert len(gateway.journal) == 0


async def test_a_price_of_zeros_is_free(gateway):
    table = PriceTable((Rule("models", "*", Price()),))
    async with proxied(gateway.url, policy(Budget("b", 1, DAY), prices=table)) as front:
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200


async def test_a_shared_answer_costs_one_call_and_counts_once(gateway):
    gateway.set_fault("slow", gate="head")
    async with proxied(gateway.url, policy(Budget("b", 100 * CREDIT, DAY))) as front:
        body = {**CHAT, "temperature": 0}
        calls = [asyncio.create_task(front.post("/v1/chat/completions", body)) for _ in range(5)]
        await gateway.wait_for_gate("head")
        gateway.open_gate("head")
        replies = await asyncio.gather(*calls)
        assert {reply.status for reply in replies} == {200}
        await front.running.parts.books.written()
        settles = [entry for entry in front.entries if isinstance(entry, Settle)]
        assert used(front, "b") == (sum(entry.charge.credits for entry in settles), 0)


LONG = {"messages": [{"role": "user", "content": "Tell it at length. [[words:2000]]"}]}

# fmt: off
CEILINGS = [
    ("/v1/chat/completions",  CHAT | {"max_tokens": 10, "n": 3}),
    ("/v1/chat/completions",  CHAT),
    ("/v1/chat/completions",  {"model": "gpt-4o", "messages": [{"role": "user", "content": "왜가리가 물가에서 " * 30}], "max_tokens": 5}),
    ("/v1/chat/completions",  CHAT | {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string", "description": "x" * 500}}}}}], "max_tokens": 5}),
    ("/v1/messages",          NATIVE),
    ("/v1/responses",         RESPONSE),
    ("/v1/audio/speech",      {"model": "speech-standard", "input": "물가에서"}),
    ("/v1/images/generate",   {"model": "image-search-flash", "prompt": "x", "number_of_images": 3}),
    ("/v1/images/generate",   {"model": "image-search-flash", "prompt": "x", "n": 3}),
    ("/v1/images/generations", {"model": "image-search-flash", "prompt": "x", "n": 3}),
    # A bound under a name that the gateway does not read on this route bounds nothing.
    ("/v1/chat/completions",  LONG | {"model": "gpt-4o", "max_output_tokens": 1}),
    ("/v1/responses",         {"model": "gpt-4o", "input": LONG["messages"], "max_tokens": 1, "max_completion_tokens": 1}),
    ("/v1/responses",         {"model": "gpt-4o", "input": LONG["messages"], "max_output_tokens": None, "max_tokens": 1}),
    # Thinking of some models comes on top of what is bounded.
    ("/v1/chat/completions",  CHAT | {"model": "gem-3-flash", "max_tokens": 1, "thinking_level": "high"}),
    ("/v1/chat/completions",  CHAT | {"model": "gem-3-pro", "max_tokens": 100, "thinking_level": "high"}),
    ("/v1/chat/completions",  CHAT | {"model": "gem-2-flash", "max_tokens": 10, "thinking_budget": -1}),
    ("/v1/chat/completions",  CHAT | {"model": "gem-2-flash", "max_tokens": 10, "thinking_budget": 8192, "n": 4}),
]
# fmt: on


@pytest.mark.parametrize(("path", "body"), CEILINGS)
async def test_no_answer_costs_more_than_its_call_held(gateway, path, body):
    async with proxied(gateway.url, policy(Budget("b", 10**6 * CREDIT, DAY))) as front:
        reply = await front.post(path, body)
        assert reply.status == 200, reply.body
        await front.running.parts.books.written()
        hold, settle = front.entries
        assert 0 < settle.charge.credits <= hold.credits


async def test_what_a_team_may_not_use_is_refused_before_anything_is_held(gateway):
    rules = policy(
        models=("gpt-*",), deny_models=("*-mini",), suites=("docs",), chatbots=("8",), deny_tools=("docs.delete_*",)
    )
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "delete_page", "arguments": {}}}
    async with proxied(gateway.url, rules) as front:
        for path, body, reason in (
            ("/v1/chat/completions", CHAT, "model_not_allowed"),
            ("/v1/messages", NATIVE, "model_not_allowed"),
            ("/v1/chatbots/7/chat/completions", {"messages": CHAT["messages"]}, "chatbot_not_allowed"),
            ("/v1/chat/completions", {**CHAT, "model": "chatbot:7"}, "chatbot_not_allowed"),
        ):
            reply = await front.post(path, body)
            assert (reply.status, reply.error["reason"]) == (403, reason), path
        for suite, reason in (("calc", "suite_not_allowed"), ("docs", "tool_not_allowed")):
            reply = await front.post(f"/v1/mcp/{suite}", call)
            assert (reply.json["error"]["code"], reply.json["error"]["data"]["reason"]) == (-32001, reason)
        assert (await front.get("/v1/models/gpt-4o-mini")).error["reason"] == "model_not_allowed"
        assert len(gateway.journal) == 0
        assert front.entries == []
        listed = [entry["id"] for entry in (await front.get("/v1/models")).json["data"]]
        assert listed
        assert all(name.startswith("gpt-") and not name.endswith("-mini") for name in listed)


@pytest.mark.parametrize("spelled", ["07", "007", "+7", "%207", "0_7", "%D9%A7", "7%20", "-7", "7.0", "bot"])
async def test_a_chatbot_has_one_name_so_that_no_limit_takes_it_for_another(gateway, spelled):
    async with proxied(gateway.url) as front:
        reply = await front.post(f"/v1/chatbots/{spelled}/chat/completions", {"messages": CHAT["messages"]})
        assert (reply.status, reply.error["reason"]) == (400, "bad_request")
        if "%" not in spelled:
            reply = await front.post("/v1/chat/completions", {**CHAT, "model": f"chatbot:{spelled}"})
            assert (reply.status, reply.error["reason"]) == (400, "bad_request")
        assert len(gateway.journal) == 0
        assert front.entries == []


async def test_an_alias_is_the_model_it_stands_for(gateway):
    from dataclasses import replace

    rules = replace(policy(), aliases={"fast": "gpt-4o-mini"})
    async with proxied(gateway.url, rules) as front:
        reply = await front.call("POST", "/v1/chat/completions", data=orjson.dumps({**CHAT, "model": "fast"}))
        assert reply.json["model"] == "gpt-4o-mini"
        assert (await front.request())["model"] == "gpt-4o-mini"
        assert gateway.journal[0].body == orjson.dumps(CHAT)


def test_the_ceiling_is_a_function_of_what_is_asked():
    from proxy.core.pricing import Asked, Estimate, Unit

    price = Price(2 * 10**6, 3 * 10**6, cache_write_per_million=4 * 10**6, output_tokens_max=100, part_tokens=1000)
    assert ceiling(Asked(Unit.TOKENS, 11, 0, 10, 1), price) == 6 * 4 + 10 * 3
    assert ceiling(Asked(Unit.TOKENS, 11, 2, None, 3), price) == (6 + 2000) * 4 + 300 * 3
    assert ceiling(Asked(Unit.TOKENS, 11, 0, 10, 1, 50), price, Estimate.STRICT) == 61 * 4 + 30


# fmt: off
WITHOUT = {
    # each            a call that has none of it                                           whose account it is
    Each.SUITE:      ("/v1/images/generate", {"model": "image-lab-small", "prompt": "x"},  "calls without a suite"),
    Each.TOOL:       ("/v1/images/generate", {"model": "image-lab-small", "prompt": "x"},  "calls without a tool"),
    Each.MODEL:      ("/v1/chatbots/7/chat/completions", {"messages": CHAT["messages"]},   "calls without a model"),
    Each.CREDENTIAL: ("/v1/images/generate", {"model": "image-lab-small", "prompt": "x"},  "calls without a credential"),
    Each.KEY:        ("/v1/images/generate", {"model": "image-lab-small", "prompt": "x"},  "red/open"),
    Each.TEAM:       ("/v1/images/generate", {"model": "image-lab-small", "prompt": "x"},  "red"),
}
# fmt: on


@pytest.mark.parametrize("each", WITHOUT)
async def test_the_account_of_calls_that_have_nothing_to_be_told_apart_by_has_a_name_in_words(gateway, each):
    path, body, whose = WITHOUT[each]
    rules = policy(Budget("small", 1 * CREDIT, DAY, each=each))
    async with proxied(gateway.url, rules) as front:
        reply = await front.post(path, body)
        assert reply.status == 402
        assert reply.error["message"].startswith(f"The budget small of {whose} is 1 credits in all")
