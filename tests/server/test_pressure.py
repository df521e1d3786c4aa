"""What the gateway refuses teaches: callers wait where waiting helps, and a storm is one request upstream."""

import asyncio
import hashlib
from dataclasses import replace

import pytest

from proxy.core.ledger import Void
from proxy.core.limits import Counts, Each, Rate
from proxy.core.policy import DEFAULT_POLICY, KeyRef, Storms, Team
from tests.proxies import CHAT, NATIVE, RESPONSE, proxied

TOOL = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}


def statuses(gateway):
    return [seen.status for seen in gateway.journal]


async def storm(front, body=RESPONSE, path="/v1/responses", times=6):
    """An agent repeats a refused call as it was."""
    return [await front.post(path, body) for _ in range(times)]


async def test_a_429_all_the_same_is_a_delay_and_no_error(front, gateway):
    gateway.set_fault("429", times=1, retry=1)
    reply = await front.post("/v1/chat/completions", CHAT)
    assert reply.status == 200
    assert statuses(gateway) == [429, 200]
    event = await front.request()
    assert event["waited_s"] >= 1.0
    voids = [entry for entry in front.entries if isinstance(entry, Void)]
    assert len(voids) == 1, "the first hold was voided, the second settled"
    assert front.running.parts.books.open_holds == 0


async def test_all_of_a_member_wait_while_it_is_paused_and_less_is_given_out(gateway):
    rules = replace(DEFAULT_POLICY, rates=(Rate("member", Counts.REQUESTS, 100, 60.0, each=Each.MEMBER),))
    gateway.set_fault("429", times=1, retry=25)
    async with proxied(gateway.url, rules) as front:
        queue = front.running.parts.queue
        first = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await gateway.wait_for(lambda journal: len(journal) == 1)
        await front.until(lambda: len(queue.scheduler) == 1)
        rest = [asyncio.create_task(front.post("/v1/messages", NATIVE)) for _ in range(3)]
        await front.until(lambda: len(queue.scheduler) == 4)
        assert len(gateway.journal) == 1
        (slots,) = queue.scheduler.rates.all_slots(queue.now_s())
        assert slots.capacity == 80
        # The rest of the pause is let pass.
        queue.scheduler.gates._gates.clear()
        queue.look()
        assert {(await call).status for call in (first, *rest)} == {200}


@pytest.mark.parametrize("retry", ["90", "decade"])
async def test_a_429_that_lasts_longer_than_the_caller_waits_is_told_with_its_figure(front, gateway, retry):
    gateway.set_fault("429", retry=retry)
    reply = await front.post("/v1/chat/completions", CHAT)
    assert (reply.status, reply.error["message"]) == (429, "Rate limit exceeded")
    assert reply.error["retry_after_s"] >= 90
    again = await front.post("/v1/chat/completions", CHAT)
    assert (again.status, again.error["reason"]) == (429, "turn_too_far")
    assert 1 < again.error["retry_after_s"] <= 60, "the pause is never longer than a minute"
    assert statuses(gateway) == [429]


async def test_a_429_on_a_tool_call_pauses_tool_calls_and_nothing_else(front, gateway):
    gateway.set_fault("429", times=1, retry=60)
    assert (await front.post("/v1/mcp/calc", TOOL)).json["error"]["code"] == -32003
    assert (await front.post("/v1/mcp/calc", TOOL)).json["error"]["data"]["reason"] == "turn_too_far"
    assert (await front.post("/v1/mcp/calc", {**TOOL, "method": "tools/list", "params": {}})).json["result"]
    assert (await front.post("/v1/chat/completions", CHAT)).status == 200


@pytest.mark.parametrize(("fault", "status"), [("403", 403), ("404", 404), ("422", 422), ("401", 502), ("1010", 403)])
async def test_an_identical_refused_call_is_one_request_upstream(front, gateway, fault, status):
    gateway.set_fault(fault)
    replies = await storm(front)
    assert [reply.status for reply in replies] == [status] * 6
    assert len(gateway.journal) == 1
    assert len({reply.error["message"] for reply in replies}) == 1
    gateway.clear_faults()
    assert (await front.post("/v1/responses", {**RESPONSE, "temperature": 0.5})).status == 200


async def test_a_refusal_is_remembered_for_seconds_only(front, gateway):
    gateway.set_fault("404", times=1)
    assert (await front.post("/v1/responses", RESPONSE)).status == 404
    refusals = front.running.parts.refusals
    (key,) = refusals._said
    until_s, said = refusals._said[key]
    refusals._said[key] = (until_s - 10.0, said)
    assert (await front.post("/v1/responses", RESPONSE)).status == 200


async def test_an_empty_purse_is_asked_once_for_calls_that_cost_as_much(front, gateway):
    gateway.set_credits("alpha", 0)
    replies = await storm(front)
    assert [reply.status for reply in replies] == [402] * 6
    assert [reply.error.get("reason") for reply in replies] == [None] + ["gateway_credits_exhausted"] * 5
    assert len(gateway.journal) == 1
    small = {**RESPONSE, "max_output_tokens": 1}
    assert (await front.post("/v1/responses", small)).error.get("reason") is None, "a cheaper one may still be taken"
    assert (await front.get("/v1/models")).status == 200


async def test_maintenance_is_heard_once_and_told_with_its_end(front, gateway):
    gateway.set_fault("503", retry=45)
    replies = await storm(front, times=30)
    assert {reply.status for reply in replies} == {503}
    assert [reply.error.get("reason") for reply in replies[1:]] == ["paused"] * 29
    assert 1 < replies[-1].error["retry_after_s"] <= 45
    assert (await front.post("/v1/chat/completions", CHAT)).error["reason"] == "paused"
    assert len(gateway.journal) == 1


async def test_maintenance_without_a_figure_lasts_a_minute_and_retrying_it_is_pointless_no_sooner(front, gateway):
    gateway.set_fault("503")
    first, second = await storm(front, times=2)
    assert (first.status, second.error["reason"], second.headers["Retry-After"]) == (503, "paused", "60")
    assert len(gateway.journal) == 1


async def test_a_suite_that_is_paused_is_no_other_suite(front, gateway):
    gateway.set_fault("paused", prefix="/v1/gateway/mcp/calc", retry=60)
    for reason in ("gateway", "paused"):
        assert (await front.post("/v1/mcp/calc", TOOL)).json["error"]["data"]["reason"] == reason
    search = {**TOOL, "params": {"name": "search", "arguments": {"query": "x"}}}
    assert (await front.post("/v1/mcp/docs", search)).json["result"]
    assert (await front.post("/v1/chat/completions", CHAT)).status == 200
    assert [seen.target for seen in gateway.journal][:2] == ["/v1/gateway/mcp/calc/", "/v1/gateway/mcp/docs/"]


async def test_after_a_pause_one_call_looks_and_the_others_follow(front, gateway):
    gateway.set_fault("503", retry=1, times=1)
    assert (await front.post("/v1/chat/completions", CHAT)).status == 503
    gateway.set_fault("slow", gate="look", times=1)
    calls = [asyncio.create_task(front.post("/v1/chat/completions", CHAT)) for _ in range(4)]
    await gateway.wait_for_gate("look")
    assert len(gateway.journal) == 2
    gateway.open_gate("look")
    assert [(await call).status for call in calls] == [200] * 4


async def test_a_caller_that_leaves_while_it_looks_lets_the_next_one_look(front, gateway):
    gateway.set_fault("503", retry=1, times=1)
    assert (await front.post("/v1/chat/completions", CHAT)).status == 503
    gateway.set_fault("hang", times=1)
    front.running.parts.exchanges.bounds = replace(front.running.parts.exchanges.bounds, at_once=0)
    looks = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
    await gateway.wait_for(lambda journal: len(journal) == 2)
    looks.cancel()
    await asyncio.gather(looks, return_exceptions=True)
    assert (await front.post("/v1/chat/completions", CHAT)).status == 200


async def test_failures_of_one_model_shut_its_way_and_no_other(front, gateway):
    gateway.set_fault("500", times=5)
    for _ in range(5):
        assert (await front.post("/v1/chat/completions", CHAT)).status == 500
    no_wait = {"X-Sluicegate-Wait-Max": "0"}
    reply = await front.post("/v1/chat/completions", CHAT, headers=no_wait)
    assert (reply.status, reply.error["reason"]) == (503, "paused")
    assert len(gateway.journal) == 5
    assert (await front.post("/v1/chat/completions", {**CHAT, "model": "gpt-4o"}, headers=no_wait)).status == 200
    assert (await front.post("/v1/chat/completions", CHAT)).status == 200, "it waits for the way to open"


NO_WAIT = {"X-Sluicegate-Wait-Max": "0"}


def crowd():
    """Teams whose keys are their names."""
    keys = {name: (KeyRef(name, hashlib.sha256(name.encode()).digest()),) for name in ("red", "blue", "green")}
    return replace(DEFAULT_POLICY, teams={name: Team(name, key) for name, key in keys.items()}, open_team=None)


async def chat(front, team):
    reply = await front.post("/v1/chat/completions", CHAT, headers={"x-api-key": team, **NO_WAIT})
    return reply.status, reply.error.get("reason") if reply.status != 200 else None


def notes(front, *events):
    return [(event["event"], event["what"], event["why"]) for event in front.events if event["event"] in events]


async def test_failures_of_one_team_shut_the_way_for_that_team_alone_and_the_log_says_so(gateway):
    async with proxied(gateway.url, crowd(), auth="keys") as front:
        gateway.set_fault("500", times=5)
        for _ in range(5):
            assert await chat(front, "red") == (500, None)
        assert await chat(front, "red") == (503, "paused")
        assert await chat(front, "blue") == (200, None)
        shut = f"chat/{CHAT['model']} of red"
        assert notes(front, "breaker_open") == [("breaker_open", shut, "it failed again and again")]
        (event,) = [event for event in front.events if event["event"] == "breaker_open"]
        assert event["level"] == "warning"
        assert 0 < event["for_s"] <= 5
        assert event["until"].endswith("Z")
        reply = await front.post("/v1/chat/completions", CHAT, headers={"x-api-key": "red"})
        assert reply.status == 200, "it waits for the way to open"
        assert notes(front, "breaker_closed") == [("breaker_closed", shut, "a call was answered")]


async def test_failures_of_several_teams_shut_the_way_for_all(gateway):
    async with proxied(gateway.url, crowd(), auth="keys") as front:
        gateway.set_fault("status", code=524, times=5)
        for team in ("red", "red", "red", "blue", "red"):
            assert (await chat(front, team))[0] == 524
        assert await chat(front, "green") == (503, "paused")
        assert notes(front, "breaker_open") == [
            ("breaker_open", f"chat/{CHAT['model']}", "it failed again and again"),
        ]
        assert len(gateway.journal) == 5


async def test_a_model_that_is_named_like_the_way_of_a_team_shuts_nothing_of_that_team(gateway):
    async with proxied(gateway.url, crowd(), auth="keys") as front:
        gateway.set_fault("500")
        invented = {**CHAT, "model": f"{CHAT['model']} of red"}
        for team in ("blue", "green") * 3:
            headers = {"x-api-key": team, **NO_WAIT}
            assert (await front.post("/v1/chat/completions", invented, headers=headers)).status in (500, 503)
        gateway.clear_faults()
        assert await chat(front, "red") == (200, None)
        ((_, told, _),) = notes(front, "breaker_open")
        assert told == f"chat/{CHAT['model']} of red"


async def test_what_a_caller_asked_wrong_is_no_failure_of_the_gateway(front, gateway):
    for code in (400, 501):
        gateway.clear_faults()
        gateway.set_fault("status", code=code)
        for number in range(6):
            reply = await front.post("/v1/chat/completions", {**CHAT, "temperature": number / 10}, headers=NO_WAIT)
            assert reply.status == code
    gateway.clear_faults()
    assert (await front.post("/v1/chat/completions", CHAT, headers=NO_WAIT)).status == 200


async def test_a_model_named_maintenance_closes_nothing(front, gateway):
    gateway.set_fault("status", code=503, message="Model maintenance is loading", times=1)
    body = {**CHAT, "model": "maintenance"}
    assert (await front.post("/v1/chat/completions", body, headers=NO_WAIT)).status == 503
    assert (await front.post("/v1/chat/completions", CHAT, headers=NO_WAIT)).status == 200


async def test_a_pause_from_outside_and_an_empty_purse_are_told_once_in_the_log(front, gateway):
    gateway.set_fault("429", retry=90)
    await storm(front, {**CHAT, "temperature": 0}, "/v1/chat/completions", times=2)
    assert notes(front, "gateway_pause") == [("gateway_pause", "member", "the gateway asked for a pause")]
    assert [event["for_s"] > 50 for event in front.events if event["event"] == "gateway_pause"] == [True]
    front.running.parts.queue.scheduler.gates._gates.clear()
    gateway.clear_faults()
    gateway.set_credits("alpha", 0)
    await storm(front)
    assert [event["for_s"] for event in front.events if event["event"] == "credits_latch"] == [15.0]
    gateway.set_credits("alpha", 10**15)
    assert (await front.post("/v1/responses", {**RESPONSE, "max_output_tokens": 1})).status == 200
    assert [event["level"] for event in front.events if event["event"] == "credits_latch_opened"] == ["info"]


async def test_a_gateway_that_cannot_be_reached_is_not_tried_by_every_call():
    async with proxied("http://127.0.0.1:9") as front:
        replies = [
            await front.post("/v1/chat/completions", CHAT, headers={"X-Sluicegate-Wait-Max": "0"}) for _ in range(7)
        ]
        assert [reply.error["reason"] for reply in replies] == ["upstream_unreachable"] * 5 + ["paused"] * 2


async def test_an_agent_that_repeats_a_429_seven_times_is_one_request_upstream(front, gateway):
    gateway.set_fault("429", retry=90)
    replies = await storm(front, NATIVE, "/v1/messages", times=7)
    assert [reply.status for reply in replies] == [429] * 7
    assert len(gateway.journal) == 1
    assert {reply.error["reason"] for reply in replies[1:]} == {"turn_too_far"}


async def test_fourteen_countings_of_one_text_at_once_are_one(front, gateway):
    body = {"model": "claude-sonnet-x", "messages": [{"role": "user", "content": "hi"}]}
    replies = await asyncio.gather(*(front.post("/v1/messages/count_tokens", body) for _ in range(14)))
    assert {reply.status for reply in replies} == {200}
    assert len(gateway.journal) == 1


async def test_all_of_it_can_be_switched_off(gateway):
    async with proxied(gateway.url, replace(DEFAULT_POLICY, storms=Storms.PASS)) as front:
        for fault in ("402", "404", "429", "503"):
            gateway.clear_faults()
            gateway.set_fault(fault)
            assert {reply.status for reply in await storm(front, times=2)} == {int(fault)}
        assert len(gateway.journal) == 8
