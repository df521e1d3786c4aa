"""A call that its client gives up: it leaves the queue if it is certainly the one, and a call that was sent goes on."""

import asyncio
import hashlib
from dataclasses import replace

import pytest

from proxy.core.charges import Ending
from proxy.core.limits import Counts, Rate
from proxy.core.policy import DEFAULT_POLICY, KeyRef, Policy, Team
from tests.held import Held
from tests.proxies import proxied
from tests.suites import call, suites, tool

ONE = Rate("one", Counts.REQUESTS, 1, 600.0)
PATIENT = replace(
    DEFAULT_POLICY,
    rates=(ONE,),
    teams={"default": replace(DEFAULT_POLICY.teams["default"], wait_max_s=3600.0)},
)
ELSE = {"User-Agent": "somebody else"}


def cancel(number):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number, "reason": "tired"}}


def queued(front):
    return len(front.running.parts.queue.scheduler)


async def waiting(front, count):
    await front.until(lambda: queued(front) == count)


async def test_a_call_that_waits_leaves_the_queue_and_is_never_sent():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, PATIENT) as front:
        assert (await front.post("/mcp/calc", call("add", 1))).json["result"]
        later = asyncio.ensure_future(front.post("/mcp/calc", call("add", 2)))
        await waiting(front, 1)
        assert (await front.post("/mcp/calc/", cancel(2))).status == 202
        told = await later
        assert (told.status, told.json["id"]) == (200, 2)
        assert "cancelled" in told.json["error"]["message"]
        assert queued(front) == 0
        assert front.requests[-1]["ending"] == Ending.CALLER_LEFT.value
        assert len(gateway.asked) == 1
        assert len(front.running.parts.cancelling) == 0


async def test_a_call_that_is_given_up_while_its_hold_is_written_is_never_sent():
    ledger = Held()
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, PATIENT, ledger=ledger) as front:
        asked = asyncio.ensure_future(front.post("/mcp/calc", call("add", 2)))
        await ledger.asked.wait()
        assert (await front.post("/mcp/calc", cancel(2))).status == 202
        ledger.gate.set()
        told = await asked
        assert (told.status, told.json["id"]) == (200, 2)
        assert "cancelled" in told.json["error"]["message"]
        assert not gateway.asked
        assert front.requests[-1]["ending"] == Ending.NEVER_SENT.value


@pytest.mark.parametrize(
    ("path", "number", "headers"),
    [
        ("/mcp/calc", "2", {}),
        ("/mcp/calc", 3, {}),
        ("/mcp/docs", 2, {}),
        ("/mcp/calc", 2, ELSE),
        ("/mcp/calc", None, {}),
    ],
)
async def test_only_the_very_call_is_meant(path, number, headers):
    async with suites(calc=[tool("add")], docs=[]) as gateway, proxied(gateway.url, PATIENT, drain="0s") as front:
        assert (await front.post("/mcp/calc", call("add", 1))).json["result"]
        later = asyncio.ensure_future(front.post("/mcp/calc", call("add", 2)))
        await waiting(front, 1)
        assert (await front.post(path, cancel(number), headers=headers)).status == 202
        assert queued(front) == 1
        await front.post("/mcp/calc", cancel(2))
        assert "cancelled" in (await later).json["error"]["message"]


async def test_what_could_mean_two_calls_means_none():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, PATIENT, drain="0s") as front:
        assert (await front.post("/mcp/calc", call("add", 2))).json["result"], (
            "another client's second call, over by now"
        )
        later = asyncio.ensure_future(front.post("/mcp/calc", call("add", 2)))
        await waiting(front, 1)
        await front.post("/mcp/calc", cancel(2))
        both = [asyncio.ensure_future(front.post("/mcp/calc", call("add", 9))) for _ in range(2)]
        await waiting(front, 3)
        assert (await front.post("/mcp/calc", cancel(9))).status == 202
        assert queued(front) == 3
        for task in (later, *both):
            task.cancel()
        await waiting(front, 0)


async def test_no_team_takes_back_the_call_of_another():
    teams = {
        name: Team(name, (KeyRef("a", hashlib.sha256(f"{name}-key".encode()).digest()),), wait_max_s=3600.0)
        for name in ("red", "blue")
    }
    policy = Policy(teams, rates=(ONE,))
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, policy, auth="keys", drain="0s") as front:
        red, blue = ({"x-api-key": f"{name}-key"} for name in teams)
        assert (await front.post("/mcp/calc", call("add", 1), headers=red)).json["result"]
        later = asyncio.ensure_future(front.post("/mcp/calc", call("add", 2), headers=red))
        await waiting(front, 1)
        await front.post("/mcp/calc", cancel(2), headers=blue)
        assert queued(front) == 1
        await front.post("/mcp/calc", cancel(2), headers=red)
        assert "cancelled" in (await later).json["error"]["message"]


async def test_who_shows_another_key_takes_no_call_back_although_keys_are_not_looked_at():
    mine, others = ({"Authorization": f"Bearer {name}"} for name in ("mine", "others"))
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, PATIENT, drain="0s") as front:
        assert (await front.post("/mcp/calc", call("add", 1))).json["result"]
        later = asyncio.ensure_future(front.post("/mcp/calc", call("add", 2), headers=mine))
        await waiting(front, 1)
        for forged in (others, {}, {"x-api-key": "min"}):
            assert (await front.post("/mcp/calc", cancel(2), headers=forged)).status == 202
        assert queued(front) == 1
        await front.post("/mcp/calc", cancel(2), headers=mine)
        assert "cancelled" in (await later).json["error"]["message"]


async def test_a_call_that_was_sent_goes_on_and_is_counted(front, gateway):
    gateway.set_fault("slow", gate="held", at=0, times=1)
    running = asyncio.ensure_future(front.post("/mcp/calc", call("add", 5, a=1, b=2)))
    await front.until(lambda: len(gateway.journal) == 1)
    assert (await front.post("/mcp/calc", cancel(5))).status == 202
    gateway.open_gate("held")
    assert (await running).json["result"]["content"][0]["text"] == "3"
    (entry,) = [entry for entry in front.entries if hasattr(entry, "charge")]
    assert (entry.ending, entry.charge.calls) == (Ending.ANSWERED, 1)


async def test_a_client_that_only_leaves_has_its_call_counted(front, gateway):
    gateway.set_fault("slow", gate="held", at=0, times=1)
    running = asyncio.ensure_future(front.post("/mcp/calc", call("add", 5, a=1, b=2)))
    await front.until(lambda: len(gateway.journal) == 1)
    running.cancel()
    await front.until(
        lambda: bool(front.running.parts.exchanges.open) and next(iter(front.running.parts.exchanges.open)).left
    )
    gateway.open_gate("held")
    await front.until(lambda: any(hasattr(entry, "charge") for entry in front.entries))
    (entry,) = [entry for entry in front.entries if hasattr(entry, "charge")]
    assert (entry.ending, entry.charge.calls) == (Ending.CALLER_LEFT, 1)
    assert not gateway.journal[0].caller_gone
