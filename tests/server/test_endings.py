"""Every way a call can end, brought about by the gateway's double, and what it costs."""

import asyncio
import hashlib
import io
from dataclasses import replace

import orjson
import pytest

from proxy.core.charges import Basis, Ending
from proxy.core.ledger import Hold, Settle, Void
from proxy.core.policy import DEFAULT_POLICY, KeyRef, Team
from proxy.core.prices import FLAT
from proxy.core.pricing import token_credits
from tests.proxies import CHAT, NATIVE, NOW, RESPONSE, proxied

ROUTES = {"/v1/chat/completions": CHAT, "/v1/messages": NATIVE, "/v1/responses": RESPONSE}


def ended(front):
    """The ending entry of the one hold in the books."""
    held, ending = front.entries
    assert isinstance(held, Hold)
    assert ending.hold == held.hold
    return ending


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answered_call_is_charged_what_its_usage_says(front, gateway, path, stream):
    options = {"stream_options": {"include_usage": True}} if stream and "chat" in path else {}
    reply = await front.post(path, {**ROUTES[path], "stream": stream, **options})
    assert reply.status == 200
    event = await front.request()
    assert (event["ending"], event["stage"], event["basis"]) == ("answered", "relay", "usage")
    assert len(gateway.journal) == 1, "one call of a caller is one call of the gateway"
    ending = ended(front)
    assert isinstance(ending, Settle)
    assert ending.charge.basis is Basis.USAGE
    assert 0 < ending.charge.credits < front.entries[0].credits
    if not stream:
        usage = reply.json["usage"]
        tokens = (
            usage.get("prompt_tokens", usage.get("input_tokens")),
            usage.get("completion_tokens", usage.get("output_tokens")),
        )
        assert ending.charge.credits == token_credits(*tokens, FLAT)


# fmt: off
FAULTS = [
    # fault                         status  ending               basis       charged  uncertain
    ("400-like",                    None,   None,                None,       None,    None),
    ("401",                         502,    "gateway_refused",   None,       False,   False),
    ("402",                         402,    "gateway_refused",   None,       False,   False),
    ("403",                         403,    "gateway_refused",   None,       False,   False),
    ("404",                         404,    "gateway_refused",   None,       False,   False),
    ("422",                         422,    "gateway_refused",   None,       False,   False),
    ("429",                         429,    "gateway_refused",   None,       False,   False),
    ("500",                         500,    "gateway_failed",    None,       False,   True),
    ("502",                         502,    "gateway_failed",    None,       False,   True),
    ("503",                         503,    "gateway_failed",    None,       False,   True),
    ("1010",                        403,    "gateway_refused",   None,       False,   False),
    ("redirect",                    502,    "gateway_refused",   None,       False,   False),
    ("html",                        502,    "gateway_failed",    None,       False,   True),
    ("html200",                     502,    "upstream_broke",    Basis.HOLD, True,    False),
    ("reset-before-head",           502,    "upstream_broke",    Basis.HOLD, True,    False),
    ("reset-in-head",               502,    "upstream_broke",    Basis.HOLD, True,    False),
    ("empty-body",                  502,    "upstream_broke",    Basis.HOLD, True,    False),
    ("no-usage",                    200,    "answered",          Basis.METERED, True, False),
]
# fmt: on


@pytest.mark.parametrize(("fault", "status", "ending", "basis", "charged", "uncertain"), FAULTS[1:])
async def test_each_fault_of_the_gateway_has_its_ending_and_its_charge(
    front, gateway, fault, status, ending, basis, charged, uncertain
):
    gateway.set_fault(fault)
    reply = await front.post("/v1/chat/completions", CHAT, headers=NOW)
    assert reply.status == status, reply.body
    event = await front.request()
    assert event["ending"] == ending
    entry = ended(front)
    if charged:
        assert isinstance(entry, Settle)
        assert entry.charge.basis is basis
        held = front.entries[0].credits
        assert entry.charge.credits == held if basis is Basis.HOLD else 0 < entry.charge.credits < held
    else:
        assert isinstance(entry, Void)
        assert entry.uncertain is uncertain
    assert front.running.parts.books.open_holds == 0
    assert len(gateway.journal) == 1


async def test_a_gateway_that_cannot_be_reached_costs_nothing():
    async with proxied("http://127.0.0.1:9") as front:
        reply = await front.post("/v1/chat/completions", CHAT, headers={"X-Sluicegate-Wait-Max": "0"})
        assert (reply.status, reply.error["reason"]) == (502, "upstream_unreachable")
        entry = ended(front)
        assert isinstance(entry, Void)
        assert entry.ending is Ending.NEVER_SENT


async def test_a_call_of_which_nothing_was_sent_is_tried_once_more_with_a_hold_of_its_own():
    async with proxied("http://127.0.0.1:9") as front:
        await front.post("/v1/chat/completions", CHAT)
        await front.running.parts.books.written()
        assert [type(entry) for entry in front.entries] == [Hold, Void, Hold, Void]
        assert len({entry.hold for entry in front.entries}) == 2
        reply = await front.post("/v1/chat/completions", CHAT, headers={"X-Sluicegate-Wait-Max": "0"})
        assert reply.status == 502
        await front.running.parts.books.written()
        assert len(front.entries) == 6, "a caller that does not wait is told at once"


async def test_a_silent_gateway_times_out_and_the_hold_is_charged(gateway):
    async with proxied(gateway.url, upstream_read_timeout="1s") as front:
        gateway.set_fault("hang")
        reply = await front.post("/v1/chat/completions", CHAT)
        assert (reply.status, reply.error["reason"]) == (504, "upstream_timeout")
        entry = ended(front)
        assert isinstance(entry, Settle)
        assert (entry.ending, entry.charge.basis) == (Ending.TIMED_OUT, Basis.HOLD)


async def test_a_large_body_that_gets_no_answer_times_out_too(gateway):
    async with proxied(gateway.url, upstream_read_timeout="1s") as front:
        gateway.set_fault("hang")
        large = orjson.dumps({**CHAT, "messages": [{"role": "user", "content": "x" * 2_000_000}]})
        reply = await front.call("POST", "/v1/chat/completions", data=io.BytesIO(large))
        assert (reply.status, reply.error["reason"]) == (504, "upstream_timeout")


async def test_a_stream_that_falls_silent_ends_with_an_error_and_is_charged_what_was_seen(gateway):
    async with proxied(gateway.url, upstream_read_timeout="3s") as front:
        gateway.set_fault("hang", after=3)
        reply = await front.post("/v1/chat/completions", {**CHAT, "stream": True})
        assert reply.body.count(b"upstream_disconnected") == 1
        entry = ended(front)
        assert isinstance(entry, Settle)
        assert (entry.ending, entry.charge.basis) == (Ending.TIMED_OUT, Basis.METERED)


async def test_a_stream_that_is_cut_is_charged_what_was_seen_of_it(front, gateway):
    gateway.set_fault("cut", after=4)
    reply = await front.post("/v1/chat/completions", {**CHAT, "stream": True})
    assert reply.body.count(b"upstream_disconnected") == 1
    assert b"[DONE]" not in reply.body
    entry = ended(front)
    assert (entry.ending, entry.charge.basis) == (Ending.UPSTREAM_BROKE, Basis.METERED)
    assert 0 < entry.charge.credits < front.entries[0].credits


@pytest.mark.parametrize(
    ("asked", "basis"),
    [
        ({}, Basis.METERED),
        ({"thinking": {"type": "adaptive"}}, Basis.HOLD),
        ({"thinking": {"type": "disabled"}}, Basis.METERED),
    ],
)
async def test_a_stream_with_hidden_thinking_that_is_cut_is_charged_at_its_hold(front, gateway, asked, basis):
    """What is seen of such an answer says nothing of what was thought, and thinking is charged."""
    gateway.set_fault("cut", after=2)
    await front.post("/v1/messages", {**NATIVE, "max_tokens": 4000, "stream": True, **asked})
    assert ended(front).charge.basis is basis


async def test_a_tool_call_counts_as_one_call_and_costs_its_unit_price(front):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    reply = await front.post("/v1/mcp/calc", call)
    assert reply.json["id"] == 1
    entry = ended(front)
    assert (entry.charge.calls, entry.charge.credits, entry.charge.uncertain) == (1, 0, False)


async def test_a_tool_call_lost_on_its_way_counts_and_is_uncertain(front, gateway):
    gateway.set_fault("reset-before-head")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    reply = await front.post("/v1/mcp/calc", call)
    assert (reply.status, reply.json["error"]["code"]) == (200, -32004)
    entry = ended(front)
    assert (entry.charge.calls, entry.charge.uncertain) == (1, True)


async def test_a_refused_tool_call_is_not_counted(front, gateway):
    gateway.set_fault("429", retry="7")
    call = {
        "jsonrpc": "2.0",
        "id": "a",
        "method": "tools/call",
        "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
    }
    reply = await front.post("/v1/mcp/calc", call, headers=NOW)
    error = reply.json["error"]
    assert (reply.status, reply.json["id"], error["code"], error["data"]["retry_after_s"]) == (200, "a", -32003, 7.0)
    entry = ended(front)
    assert isinstance(entry, Void)


async def test_a_caller_who_leaves_after_the_first_byte_still_pays_for_the_whole_answer(front, gateway):
    """The emulator sees its connection stay open to the usage, and the hold settles at it."""
    gateway.set_fault("slow", gate="rest", at=2)
    stream = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    async with front.client.post(front.url + "/v1/chat/completions", json=stream) as response:
        await response.content.readany()
        response.close()
    await front.until(lambda: len(front.running.parts.exchanges.readers) == 1)
    gateway.open_gate("rest")
    event = await front.request()
    assert event["ending"] == "caller_left"
    assert event["basis"] == "usage"
    (seen,) = gateway.journal
    assert (seen.finished, seen.caller_gone) == (True, False)
    assert ended(front).charge.basis is Basis.USAGE
    assert len(front.running.parts.exchanges.readers) == 0


async def test_a_caller_who_leaves_before_the_answer_begins_still_pays(front, gateway):
    gateway.set_fault("slow", gate="head")
    asked = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
    await gateway.wait_for_gate("head")
    asked.cancel()
    await front.until(lambda: len(front.running.parts.exchanges.readers) == 1)
    gateway.open_gate("head")
    event = await front.request()
    assert (event["ending"], event["basis"]) == ("caller_left", "usage")


async def test_reading_on_ends_with_its_time_and_what_was_not_read_is_charged_at_the_hold(gateway):
    """What was seen of it is what its caller chose to see."""
    async with proxied(gateway.url, read_on_time="0.2s") as front:
        gateway.set_fault("slow", gate="never", at=3)
        async with front.client.post(front.url + "/v1/chat/completions", json={**CHAT, "stream": True}) as response:
            await response.content.readany()
            response.close()
        event = await front.request()
        assert (event["ending"], event["basis"]) == ("caller_left", "hold")
        await gateway.wait_for(lambda journal: journal[0].caller_gone)
        assert front.running.parts.books.open_holds == 0


async def test_reading_on_is_for_so_many_callers_only(gateway):
    async with proxied(gateway.url, read_on_max=0) as front:
        gateway.set_fault("slow", gate="never")
        asked = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await gateway.wait_for_gate("never")
        asked.cancel()
        event = await front.request()
        assert (event["ending"], event["basis"]) == ("caller_left", "hold")


async def test_answers_that_one_team_left_take_no_other_teams_part_of_reading_on(gateway):
    keys = {name: (KeyRef(name, hashlib.sha256(name.encode()).digest()),) for name in ("greedy", "calm")}
    rules = replace(DEFAULT_POLICY, teams={name: Team(name, key) for name, key in keys.items()}, open_team=None)
    gateway.set_fault("slow", gate="late", at=3)

    async def leaves(front, team, number):
        body = {**CHAT, "stream": True, "temperature": 0.5 + number / 10, "stream_options": {"include_usage": True}}
        async with front.client.post(
            front.url + "/v1/chat/completions", json=body, headers={"x-api-key": team}
        ) as response:
            await response.content.readany()
            response.close()

    async with proxied(gateway.url, rules, auth="keys", read_on_max=2) as front:
        readers = front.running.parts.exchanges.readers
        for number in range(3):
            await leaves(front, "greedy", number)
            await front.until(lambda number=number: len(readers) == min(number + 1, 2))
        await leaves(front, "calm", 3)
        await front.until(lambda: len(front.requests) == 2)
        gateway.open_gate("late")
        await front.until(lambda: len(front.requests) == 4)
        kept = {(event["team"], event["basis"]) for event in front.requests[2:]}
        assert kept == {("greedy", "usage"), ("calm", "usage")}
        assert {(event["team"], event["basis"]) for event in front.requests[:2]} == {("greedy", "hold")}
        assert len(readers) == 0


async def test_a_call_cut_short_by_the_end_of_the_process_says_so(gateway):
    """Its caller is still there: it must not be told that it left."""
    gateway.set_fault("slow", gate="never")
    async with proxied(gateway.url) as front:
        asked = asyncio.create_task(front.post("/v1/chat/completions", CHAT))
        await gateway.wait_for_gate("never")
        await front.running.drain(0.1)
        reply = await asked
        assert (reply.status, reply.error["reason"]) == (503, "draining")
        assert (await front.request())["ending"] == "proxy_stopped"
        assert front.running.parts.books.open_holds == 0


async def test_the_drain_waits_for_answers_that_are_read_on(gateway):
    gateway.set_fault("slow", gate="rest", at=2)
    async with proxied(gateway.url, drain="20s") as front:
        stream = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
        async with front.client.post(front.url + "/v1/chat/completions", json=stream) as response:
            await response.content.readany()
            response.close()
        await front.until(lambda: len(front.running.parts.exchanges.readers) == 1)
        drained = asyncio.create_task(front.running.drain(20))
        await front.until(lambda: front.running.parts.state.draining)
        assert not drained.done()
        gateway.open_gate("rest")
        await drained
        assert ended(front).charge.basis is Basis.USAGE
