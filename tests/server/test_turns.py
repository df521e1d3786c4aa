"""Calls wait for their turn on real sockets: nothing over a rate reaches the gateway, and callers hear honest figures."""

import asyncio
import hashlib
import re
import time
from dataclasses import replace
from math import ceil

import aiohttp
import pytest

from proxy.config.made import gateway_rates
from proxy.core.facts import Facts
from proxy.core.holds import OpenHold
from proxy.core.limits import Budget, Counts, Draw, Each, Excess, Match, Rate, RateMatch
from proxy.core.policy import KeyRef, Policy, RateHeaders, Team, credential_of
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.riders import Turn, TurnWritten
from proxy.core.turns import Waiter
from proxy.core.windows import Calendar, Per, Sliding
from proxy.errors import ProxyError
from proxy.observe.metrics import Metrics
from proxy.server import reconciler
from proxy.server.books import Books
from proxy.server.boot import Boot
from proxy.server.turns import FORGET_EVERY, WATCH_S, Queue
from proxy.stores.ledger.memory import MemoryLedger
from proxy.units import Credits
from tests.proxies import CHAT, KEY, proxied
from tests.restarts import restarted
from tests.server.test_books import SlowLedger

CREDIT = 10**8
TOOL = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}


def rate(name="member", amount=2, window_s=0.4, counts=Counts.REQUESTS, match=None, **more):
    return Rate(name, counts, amount, window_s, RateMatch(Match(**(match or {}))), **more)


def policy(*rates, wait_max_s=20.0, **more):
    teams = {
        name: Team(name, (KeyRef(name, hashlib.sha256(name.encode()).digest()),), wait_max_s=wait_max_s)
        for name in ("red", "blue")
    }
    return Policy(teams=teams, open_team="red", rates=rates, **more)


def queue(front):
    return front.running.parts.queue


async def waiting(front, count):
    await front.until(lambda: len(queue(front).scheduler) == count)


async def waiting_at_least(front, count):
    await front.until(lambda: len(queue(front).scheduler) >= count)


async def metrics(front):
    async with front.client.get(front.running.admin_url + "/metrics") as reply:
        return await reply.text()


def decided(text):
    found = re.findall(
        r'^sluicegate_limit_decisions_total\{decision="(\w+)",limit="member",team="red"\} (\S+)', text, re.MULTILINE
    )
    return {decision: float(count) for decision, count in found}


async def test_calls_wait_their_turn_and_all_are_answered(gateway):
    async with proxied(gateway.url, policy(rate(amount=3, window_s=2.0, each=Each.MEMBER))) as front:
        replies = await asyncio.gather(*(front.post("/v1/chat/completions", CHAT) for _ in range(5)))
        assert [reply.status for reply in replies] == [200] * 5
        events = [await front.request() for _ in range(5)]
        starts = sorted(event["asked_at"] + event.get("waited_s", 0.0) for event in events)
        assert starts[3] - starts[0] >= 1.99
        assert starts[4] - starts[1] >= 1.99
        text = await metrics(front)
        assert decided(text) == {"pass": 3.0, "delay": 2.0}
        assert 'sluicegate_queued_requests{team="red"} 0.0' in text
        assert "sluicegate_queue_wait_seconds_count 2.0" in text


async def test_a_wait_that_would_be_too_long_is_refused_at_once_with_the_figures(gateway):
    async with proxied(gateway.url, policy(rate(amount=1, window_s=600.0), wait_max_s=600.0)) as front:
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        # At once, for this test is over long before the caller's patience is.
        reply = await front.post("/v1/chat/completions", CHAT, headers={"X-Sluicegate-Wait-Max": "500"})
        assert (reply.status, reply.error["reason"], reply.error["code"]) == (
            429,
            "turn_too_far",
            "rate_limit_exceeded",
        )
        assert 500 < reply.error["retry_after_s"] <= 601
        assert (reply.headers["Retry-After"], reply.headers["x-should-retry"]) == ("60", "false")
        assert "The rate member allows 1 requests within 600 s" in reply.error["message"]
        assert len(gateway.journal) == 1
        assert decided(await metrics(front)) == {"pass": 1.0, "refuse": 1.0}


async def test_ten_seconds_of_patience_before_a_queue_of_forty_hear_at_once_how_long_it_is(gateway):
    async with proxied(gateway.url, policy(rate(amount=1, window_s=20.0), wait_max_s=60.0)) as front:
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        ahead = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await waiting(front, 1)
        reply = await front.post("/v1/chat/completions", CHAT, headers={"X-Sluicegate-Wait-Max": "10"})
        assert (reply.status, reply.error["reason"], reply.error["limit"]) == (429, "turn_too_far", "member")
        assert 21 < reply.error["wait_s"] <= 41
        assert reply.error["wait_s"] == pytest.approx(reply.error["retry_after_s"], abs=0.1)
        assert (reply.error["wait_max_s"], reply.error["used"], reply.error["waiting"]) == (10.0, 1, 2)
        assert reply.headers["Retry-After"] == str(ceil(reply.error["retry_after_s"]))
        assert len(queue(front).scheduler) == 1
        await front.until(lambda: len(front.requests) == 2)
        assert front.requests[1]["waited_s"] < 10.0, "it did not wait to hear it"
        ahead.cancel()
        await asyncio.gather(ahead, return_exceptions=True)


async def test_a_caller_shortens_its_wait_and_never_lengthens_it(gateway):
    async with proxied(gateway.url, policy(rate(amount=1, window_s=20.0), wait_max_s=0.0)) as front:
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        for said, status in (("3600", 429), ("0", 429), ("soon", 400), ("-1", 400), ("nan", 400)):
            reply = await front.post("/v1/chat/completions", CHAT, headers={"X-Sluicegate-Wait-Max": said})
            assert reply.status == status, said


async def test_a_rate_that_refuses_names_itself_and_when_it_reopens(gateway):
    day = rate("day", 1, 86_400.0, excess=Excess.REFUSE, match={"suite": "calc"})
    async with proxied(gateway.url, policy(day)) as front:
        assert (await front.post("/v1/mcp/calc", TOOL)).json["result"]
        refused = (await front.post("/v1/mcp/calc", TOOL)).json["error"]
        assert (refused["code"], refused["data"]["reason"], refused["data"]["limit"]) == (
            -32003,
            "limit_exhausted",
            "day",
        )
        assert refused["data"]["retry_after_s"] > 86_000
    async with proxied(gateway.url, policy(replace(day, match=RateMatch()))) as front:
        assert (await front.get("/v1/credits")).status == 200
        reply = await front.get("/v1/credits")
        assert (reply.status, reply.headers["Retry-After"], reply.headers["x-should-retry"]) == (429, "60", "false")
        assert (reply.error["reason"], reply.error["retry_after_s"] > 86_000) == ("limit_exhausted", True)


async def test_what_can_never_fit_is_refused_outright(gateway):
    async with proxied(gateway.url, policy(rate("tokens", 50, 60.0, Counts.TOKENS))) as front:
        reply = await front.post("/v1/chat/completions", {**CHAT, "max_tokens": 1000})
        assert (reply.status, reply.error["reason"], reply.headers["x-should-retry"]) == (
            429,
            "limit_exhausted",
            "false",
        )
        assert (await front.post("/v1/chat/completions", {**CHAT, "max_tokens": 5})).status == 200


async def test_tokens_are_drawn_at_most_and_corrected_by_what_was_used(gateway):
    async with proxied(gateway.url, policy(rate("tokens", 10_000, 600.0, Counts.TOKENS))) as front:
        for _ in range(3):
            # Three of them would not fit if each were taken for what it might have used.
            assert (await front.post("/v1/chat/completions", {**CHAT, "max_tokens": 4000})).status == 200
        (slots,) = queue(front).scheduler.rates.all_slots(queue(front).now_s())
        assert 0 < slots.used < 1000


async def test_calls_at_once_wait_for_one_another_and_say_so(gateway):
    gateway.set_fault("slow", gate="head", times=1)
    calm = rate("calm", 1, 0.0, Counts.IN_FLIGHT, match={"team": "red"})
    async with proxied(gateway.url, policy(calm)) as front:
        slow = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await gateway.wait_for_gate("head")
        second = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await waiting(front, 1)
        third = await front.post("/v1/chat/completions", CHAT, headers={"X-Sluicegate-Wait-Max": "0.05"})
        assert (third.status, third.error["reason"]) == (429, "budget_busy")
        gateway.open_gate("head")
        assert ((await slow).status, (await second).status) == (200, 200)


async def test_a_caller_that_leaves_the_queue_leaves_nothing_behind(gateway):
    prices = PriceTable((Rule("models", "*", Price(CREDIT, CREDIT)),))
    rules = policy(
        rate(amount=1, window_s=30.0), budgets=(Budget("b", 100 * CREDIT, Calendar(Per.DAY)),), prices=prices
    )
    rules = replace(rules, teams={"red": replace(rules.teams["red"], wait_max_s=600.0)})
    async with proxied(gateway.url, rules) as front:
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        async with aiohttp.ClientSession() as leaving:
            calls = [asyncio.create_task(leaving.post(front.url + "/v1/chat/completions", json=CHAT)) for _ in range(5)]
            await waiting(front, 5)
            assert queue(front).waiting_bytes > 0
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        await waiting(front, 0)
        await front.until(lambda: len(front.requests) == 6)
        assert queue(front).waiting_bytes == 0
        assert not queue(front)._futures
        assert [event.get("left") for event in front.requests[1:]] == [True] * 5
        await front.running.parts.books.written()
        assert front.running.parts.books.open_holds == 0
        assert len(gateway.journal) == 1
        (slots,) = queue(front).scheduler.rates.all_slots(queue(front).now_s())
        assert (slots.used, slots.waiting) == (1, {})


async def test_a_budget_that_is_busy_and_a_turn_are_one_wait(gateway):
    """Two calls wait for the money of a third and for a place; both are answered when it ends."""
    prices = PriceTable((Rule("models", "*", Price(0, 100 * CREDIT * 10**4)),))
    body = {**CHAT, "max_tokens": 50}
    gateway.set_fault("slow", gate="head", times=1)
    rules = policy(rate(amount=50), budgets=(Budget("b", 60 * CREDIT, Calendar(Per.DAY)),), prices=prices)
    async with proxied(gateway.url, rules) as front:
        slow = asyncio.create_task(front.post("/v1/chat/completions", body))
        await gateway.wait_for_gate("head")
        rest = [asyncio.create_task(front.post("/v1/chat/completions", body)) for _ in range(2)]
        await waiting(front, 2)
        gateway.open_gate("head")
        statuses = [(await call).status for call in (slow, *rest)]
        assert statuses[0] == 200
        assert set(statuses) <= {200, 402}
        await waiting(front, 0)


FIFTY = {**CHAT, "max_tokens": 50}


def dear(window, **more):
    """Room for the hold of one call of fifty tokens, and for no other one when it was answered."""
    prices = PriceTable((Rule("models", "*", Price(0, CREDIT * 10**6)),))
    return policy(budgets=(Budget("b", 50 * CREDIT, window),), prices=prices, **more)


async def test_who_waits_for_money_has_it_before_all_that_come_later(gateway):
    """While it is freed others ask for it all the time, each through a connection of its own."""
    for again in range(5):
        broken = {**FIFTY, "messages": [{"role": "user", "content": f"[[fault:slow gate=g{again}]] [[fault:500]]"}]}
        async with proxied(gateway.url, dear(Calendar(Per.TOTAL), wait_max_s=60.0)) as front:
            fails = asyncio.create_task(front.post("/v1/chat/completions", broken))
            await gateway.wait_for_gate(f"g{again}")
            first = asyncio.create_task(front.post("/v1/chat/completions", FIFTY))
            await waiting(front, 1)
            later = []

            async def keep_coming(front=front, first=first, later=later):
                while not first.done() and len(later) < 500:
                    body = {**FIFTY, "user": f"{len(later)}"}
                    headers = {"x-api-key": "blue"} if len(later) % 2 else {}
                    later.append(asyncio.create_task(front.post("/v1/chat/completions", body, headers=headers)))
                    await asyncio.sleep(0)

            coming = asyncio.create_task(keep_coming())
            await waiting_at_least(front, 3)
            gateway.open_gate(f"g{again}")
            assert (await fails).status == 500
            assert (await first).status == 200
            await coming
            assert {reply.status for reply in await asyncio.gather(*later)} == {402}
            assert len(gateway.journal) == 2
        gateway.journal.clear()


async def test_who_waits_for_a_window_to_slide_starts_when_it_has(gateway):
    """Nothing else happens meanwhile: the call that took the money is still open."""
    gateway.set_fault("slow", gate="head", times=1)
    async with proxied(gateway.url, dear(Sliding(1.0), wait_max_s=60.0)) as front:
        slow = asyncio.create_task(front.post("/v1/chat/completions", FIFTY))
        await gateway.wait_for_gate("head")
        # Sooner than anybody would look by chance.
        reply = await front.post("/v1/chat/completions", FIFTY, headers={"X-Sluicegate-Wait-Max": f"{WATCH_S - 1}"})
        assert reply.status == 200
        gateway.open_gate("head")
        assert (await slow).status == 200


async def test_bodies_that_wait_have_room_and_no_more(gateway):
    async with proxied(
        gateway.url, policy(rate(amount=1, window_s=30.0), wait_max_s=600.0), queue_bytes="1MiB"
    ) as front:
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        big = {**CHAT, "messages": [{"role": "user", "content": "x" * 700_000}]}
        async with aiohttp.ClientSession() as other:
            first = asyncio.create_task(other.post(front.url + "/v1/chat/completions", json=big))
            await front.until(lambda: queue(front).waiting_bytes > 0)
            reply = await front.post("/v1/chat/completions", big, headers={"X-Sluicegate-Wait-Max": "3600"})
            assert (reply.status, reply.error["reason"]) == (429, "turn_too_far")
            assert "--queue-bytes" in reply.error["message"]
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)


async def test_answers_tell_what_is_left_of_the_tightest_rate(gateway):
    rates = rate("wide", 100, 60.0), rate("tight", 3, 30.0), rate("shadow", 1, 60.0, shadow=True)
    async with proxied(gateway.url, policy(*rates)) as front:
        reply = await front.post("/v1/chat/completions", CHAT)
        assert reply.headers["RateLimit-Policy"] == '"wide";q=100;w=60, "tight";q=3;w=30'
        assert reply.headers["RateLimit"].startswith('"tight";r=2;t=')
        assert (reply.headers["x-ratelimit-limit-requests"], reply.headers["x-ratelimit-remaining-requests"]) == (
            "3",
            "2",
        )
        assert "x-ratelimit-limit-requests" not in (await front.get("/v1/credits")).headers
        await front.post("/v1/chat/completions", CHAT)
        refused = await front.post("/v1/chat/completions", CHAT, headers={"X-Sluicegate-Wait-Max": "0"})
        assert refused.status == 429
        assert refused.headers["RateLimit"].startswith('"tight";r=0;t=')
        assert "queue;dur=" in reply.headers["Server-Timing"]
    async with proxied(gateway.url, policy(*rates, rate_headers=RateHeaders.HIDE)) as front:
        assert "RateLimit" not in (await front.post("/v1/chat/completions", CHAT)).headers


async def test_the_queue_tells_a_start_that_was_not_known_when_its_calls_began_to_wait(gateway):
    async with proxied(gateway.url, policy(rate(amount=1, window_s=30.0, each=Each.TEAM), wait_max_s=60.0)) as front:
        gateway.set_fault("slow", gate="head")
        first = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await gateway.wait_for_gate("head")
        call = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await waiting(front, 1)
        gateway.open_gate("head")
        assert (await first).status == 200
        async with front.client.get(front.running.admin_url + "/api/queue") as reply:
            (lane,) = (await reply.json())["lanes"]
        assert lane["held_by"] == "rate"
        assert 1 < lane["starts_in_s"] <= 31.1
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


async def test_the_queue_can_be_looked_at(gateway):
    async with proxied(gateway.url, policy(rate(amount=1, window_s=30.0, each=Each.TEAM), wait_max_s=60.0)) as front:
        await front.post("/v1/chat/completions", CHAT)
        call = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await waiting(front, 1)
        async with front.client.get(front.running.admin_url + "/api/queue") as reply:
            told = await reply.json()
        (lane,) = told["lanes"]
        assert (lane["team"], lane["route"], lane["held_by"], lane["limit"]) == ("red", "chat", "rate", "member")
        assert 1 < lane["starts_in_s"] <= 30.1
        assert told["limits"] == [{"name": "member", "of": "red", "amount": 1, "now": 1, "used": 1, "waiting": 1}]
        assert 'sluicegate_upstream_limit_used_ratio{limit="member"} 1.0' in await metrics(front)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


@pytest.mark.parametrize("durability", ["full", "normal"])
async def test_a_restart_opens_no_second_burst(gateway, tmp_path, durability):
    rules = policy(rate(amount=3, window_s=60.0, excess=Excess.REFUSE))
    async with restarted(gateway.url, rules, tmp_path, durability=durability) as front:
        statuses = [(await front.post("/v1/chat/completions", CHAT)).status for _ in range(2)]
        assert statuses == [200, 200]
        assert (await front.get("/v1/credits")).status == 200
    async with restarted(gateway.url, rules, tmp_path, durability=durability) as front:
        assert (await front.get("/v1/credits")).status == 429
    assert len(gateway.journal) == 3


def used(front):
    """Places taken of all rates together."""
    queued = queue(front)
    return sum(slots.used for slots in queued.scheduler.rates.all_slots(queued.now_s()))


async def test_a_reload_does_not_bring_back_what_an_earlier_process_gave_out_and_was_over(gateway, tmp_path):
    rules = policy(rate(amount=3, window_s=0.5, excess=Excess.REFUSE))
    async with restarted(gateway.url, rules, tmp_path) as front:
        for _ in range(3):
            assert (await front.post("/v1/chat/completions", CHAT)).status == 200
    async with restarted(gateway.url, rules, tmp_path) as front:
        await front.until(lambda: used(front) == 0)
        for _ in range(2):
            await queue(front).take_up(rules)
            assert used(front) == 0
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200


async def test_a_reload_keeps_what_an_earlier_process_gave_out_and_is_not_over(gateway, tmp_path):
    rules = policy(rate(amount=3, window_s=60.0, excess=Excess.REFUSE))
    async with restarted(gateway.url, rules, tmp_path) as front:
        for _ in range(3):
            assert (await front.post("/v1/chat/completions", CHAT)).status == 200
    async with restarted(gateway.url, rules, tmp_path) as front:
        for _ in range(2):
            await queue(front).take_up(rules)
            assert used(front) == 3
        assert (await front.post("/v1/chat/completions", CHAT)).status == 429


async def test_a_call_that_an_earlier_process_never_saw_end_is_waited_out_once(gateway, tmp_path):
    rules = policy(rate(amount=1, window_s=3.0, excess=Excess.REFUSE))
    async with restarted(gateway.url, rules, tmp_path) as front:
        turn = await queue(front).take(waiter_of_red(), None, 0, lambda _: None)
        assert turn.open
    async with restarted(gateway.url, rules, tmp_path) as front:
        assert used(front) == 1
        await front.until(lambda: used(front) == 0)
        await queue(front).take_up(rules)
        assert used(front) == 0


def waiter_of_red():
    now_s = time.monotonic()
    return Waiter("never-ended", Draw(Facts("red", "k", "chat"), ""), now_s + 5.0, asked_s=now_s)


async def test_a_new_policy_begins_with_what_was_given_out(gateway):
    async with proxied(gateway.url, policy(rate("a", 3, 60.0, excess=Excess.REFUSE))) as front:
        for _ in range(2):
            await front.get("/v1/credits")
        await queue(front).take_up(policy(rate("b", 2, 120.0, excess=Excess.REFUSE)))
        assert (await front.get("/v1/credits")).status == 429


async def test_the_proxys_own_questions_draw_on_the_same_rates(gateway):
    async with proxied(gateway.url, policy(rate(amount=1, window_s=60.0, each=Each.MEMBER))) as front:
        await reconciler.look(front.running.parts)
        assert len(gateway.journal) == 1
        assert (await front.get("/v1/credits")).error["reason"] == "turn_too_far"
        with pytest.raises(reconciler.BalanceUnknown, match="The rate member allows"):
            await reconciler.look(front.running.parts)


async def test_callers_who_bring_keys_of_one_member_share_its_rate(gateway):
    other = "sk-emu-alpha-2"
    rules = policy(rate(amount=1, window_s=60.0, each=Each.MEMBER), wait_max_s=0.0)
    joined = replace(rules, members={credential_of(KEY): "alpha", credential_of(other): "alpha"})
    for rules_, status in ((rules, 200), (joined, 429)):
        async with proxied(gateway.url, rules_, None, auth="keys", credential="caller") as front:
            assert (await front.post("/v1/chat/completions", CHAT, headers={"x-api-key": KEY})).status == 200
            assert (await front.post("/v1/chat/completions", CHAT, headers={"x-api-key": other})).status == status


async def test_the_gateways_own_limits_hold_without_a_word_in_a_policy(gateway):
    rates = tuple(replace(one, amount=max(1, one.amount // 30)) for one in gateway_rates())
    async with proxied(gateway.url, policy(*rates, wait_max_s=0.0)) as front:
        tools = [(await front.post("/v1/mcp/calc", TOOL)).json for _ in range(2)]
        assert "result" in tools[0]
        assert tools[1]["error"]["data"]["limit"] == "tool-minute"
        bots = [(await front.post("/v1/chatbots/7/chat/completions", {"messages": CHAT["messages"]})) for _ in range(2)]
        assert [reply.status for reply in bots] == [200, 429]
        assert "The rate chatbot allows 1 requests within 60 s" in bots[1].error["message"]
        listed = [(await front.get("/v1/credits")).status for _ in range(3)]
        assert listed == [200, 200, 429]


def commits(store):
    """A queue on a home whose commits are in the test's hands, and a call for it."""
    rules = policy(rate(amount=1, window_s=60.0))
    room = Queue(rules, Books(store), Metrics(process=False), boot=Boot("b"), wall=lambda: 0.0, room=2**20)
    return room, lambda: Waiter("w", Draw(Facts("red", "k", "chat")), room.now_s() + 600.0)


def commits_of_money(store):
    """The same without a rate; each call may cost all there is."""
    room = Queue(policy(), Books(store), Metrics(process=False), boot=Boot("b"), wall=lambda: 0.0, room=2**20)
    facts = Facts("red", "k", "chat")

    def take(name):
        hold = OpenHold(name, Credits(CREDIT), False, 0)
        waiter = Waiter(name, Draw(facts, spends=True), room.now_s() + 600.0, credits=CREDIT)
        return asyncio.ensure_future(room.take(waiter, hold, 0, lambda _: None))

    return room, take


async def test_what_a_call_was_let_go_for_is_free_again_when_its_hold_could_not_be_written():
    store = SlowLedger(Budget("b", CREDIT, Calendar(Per.TOTAL)))
    store.away = 1
    room, take = commits_of_money(store)
    first = take("a")
    await asyncio.sleep(0)
    second = take("b")
    await asyncio.sleep(0)
    assert len(room.scheduler) == 1
    store.gate.set()
    with pytest.raises(ProxyError, match="ledger"):
        await first
    assert (await second).id == "b"


async def test_what_a_call_was_let_go_for_is_free_again_when_its_caller_leaves_before_it_is_written():
    store = SlowLedger(Budget("b", CREDIT, Calendar(Per.TOTAL)))
    _, take = commits_of_money(store)
    first = take("a")
    await asyncio.sleep(0)
    second, third = take("b"), take("c")
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    second.cancel()
    store.gate.set()
    assert (await third).id == "c"
    await asyncio.gather(first, second, return_exceptions=True)
    assert store.projection.accounts.promised == {}


def taken(room):
    return [slots.used for slots in room.scheduler.rates.all_slots(room.now_s())]


class HeldUp(Boot):
    """The machine's clock, after which the process has to wait for its turn on the processor."""

    @staticmethod
    def since_s():
        found_s = Boot.since_s()
        time.sleep(0.05)
        return found_s


async def test_a_process_that_is_held_up_while_it_takes_up_old_turns_gives_no_place_back_early():
    store, rules = MemoryLedger(), policy(rate(amount=9, window_s=60.0))
    facts, counted_s = Facts("red", "k", "chat"), Boot.since_s()
    for name in "abcd":
        row = Turn(name, facts, True, True, 0, 0.0, "b", counted_s)
        await store.apply([row, TurnWritten(name, 0.0, counted_s)])
    room = Queue(rules, Books(store), Metrics(process=False), boot=HeldUp("b"), wall=lambda: 0.0, room=2**20)
    await room.take_up()
    now_s = room.now_s()
    passed_s = Boot.since_s() - counted_s
    (slots,) = room.scheduler.rates.all_slots(now_s)
    assert slots.used == 4
    assert all(place.ends_s - now_s >= slots.span_s - passed_s for place in slots.ending)


async def test_rows_that_a_clock_set_forward_makes_look_old_are_kept_until_they_are():
    store, rules = MemoryLedger(), policy(rate(amount=10_000, window_s=60.0))

    class Clocks(Boot):
        since, wall = 0.0, 0.0

        @classmethod
        def since_s(cls):
            return cls.since

        @classmethod
        def wall_s(cls):
            return cls.wall

    room = Queue(rules, Books(store), Metrics(process=False), boot=Clocks("b"), wall=Clocks.wall_s, room=2**20)

    async def take(name, count=1):
        for at in range(count):
            waiter = Waiter(f"{name}{at}", Draw(Facts("red", "k", "chat")), room.now_s() + 600.0)
            await room.take(waiter, None, 0, lambda _: None)

    async def kept():
        return {kept.turn.id[0] for kept in await store.turns(0.0)}

    await take("a")
    Clocks.since, Clocks.wall = 1.0, 1_000_000.0
    await take("b", FORGET_EVERY)
    assert await kept() == {"a", "b"}, "a is a second old"
    Clocks.since, Clocks.wall = 200.0, 1_000_199.0
    await take("c", FORGET_EVERY)
    assert await kept() == {"c"}, "a and b count no more"
    Clocks.since, Clocks.wall = 300.0, 1_000_299.0
    await take("d", FORGET_EVERY)
    assert await kept() == {"c", "d"}, "two windows are not over yet"
    # One that is set back makes nothing look old.
    Clocks.since, Clocks.wall = 425.0, 1_000_420.0
    await take("e", FORGET_EVERY)
    assert await kept() == {"e"}
    Clocks.since, Clocks.wall = 426.0, 421.0
    await take("f", FORGET_EVERY)
    assert await kept() == {"e", "f"}


async def test_a_turn_that_could_not_be_written_is_free_again():
    store = SlowLedger()
    store.gate.set()
    store.away = 1
    room, call = commits(store)
    with pytest.raises(ProxyError, match="ledger"):
        await room.take(call(), None, 0, lambda _: None)
    assert taken(room) == [0]
    await room.take(call(), None, 0, lambda _: None)
    assert taken(room) == [1]


async def test_a_caller_cancelled_during_the_commit_leaves_its_turn_to_the_next():
    store = SlowLedger()
    room, call = commits(store)
    asking = asyncio.ensure_future(room.take(call(), None, 0, lambda _: None))
    await asyncio.sleep(0)
    assert taken(room) == [1]
    waits = asyncio.ensure_future(room.take(call(), None, 0, lambda _: None))
    await asyncio.sleep(0)
    assert len(room.scheduler) == 1
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    store.gate.set()
    await waits
    assert (taken(room), len(room.scheduler)) == ([1], 0)


async def test_the_turn_of_a_call_whose_hold_does_not_fit_is_free_again():
    store = SlowLedger(Budget("b", CREDIT - 1, Calendar(Per.TOTAL)))
    store.gate.set()
    room, waiter = commits(store)
    with pytest.raises(ProxyError, match="budget"):
        await room.take(replace(waiter(), credits=CREDIT), OpenHold("a", Credits(CREDIT), False, 0), 0, lambda _: None)
    assert taken(room) == [0]
