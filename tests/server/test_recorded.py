"""Requests are recorded behind their answers, with others that ended in the same turn of the loop."""

import asyncio

import pytest

from proxy.server import record
from proxy.server.call import Call
from proxy.server.inbound import Given
from tests.proxies import CHAT, proxied


@pytest.fixture
async def front(gateway):
    async with proxied(gateway.url) as running:
        yield running


def a_call(front, name):
    parts = front.running.parts
    call = Call(name, Given("GET", "/v1/models", {"user-agent": "tester/1"}), parts.state.policy, parts.wall())
    call.status = 200
    record.began(parts)
    return call


async def test_what_ended_in_one_turn_is_recorded_in_the_next_in_its_order(front):
    parts = front.running.parts
    for name in ("one", "two", "three"):
        record.soon(a_call(front, name), parts)
    assert not front.requests
    await asyncio.sleep(0)
    assert [line["id"] for line in front.requests] == ["one", "two", "three"]
    assert not parts.ended
    assert parts.metrics.total("requests_in_flight") == 0


async def test_how_long_it_took_does_not_grow_while_others_are_recorded(front):
    call = a_call(front, "one")
    record.soon(call, front.running.parts)
    call.began_s, call.ended_s = call.ended_s - 100, call.ended_s - 99
    await asyncio.sleep(0)
    assert front.requests[0]["dur_s"] == 1


async def test_a_fault_in_one_costs_no_other_its_line(front):
    broken = a_call(front, "broken")
    broken.match = object()
    for call in (broken, a_call(front, "whole")):
        record.soon(call, front.running.parts)
    await asyncio.sleep(0)
    assert [line["id"] for line in front.requests] == ["whole"]
    assert [(line["id"], line["kind"]) for line in front.events if line["event"] == "fault"] == [
        ("broken", "AttributeError")
    ]


async def test_who_has_an_answer_finds_it_recorded(front):
    for at in range(5):
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        assert len(front.requests) == at + 1
