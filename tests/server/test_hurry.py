"""Who does not wait any more for calls that run: nothing new goes to the gateway, and every hold has its end."""

import asyncio

import pytest

from proxy.core.charges import Ending
from proxy.core.ledger import Settle, Void
from tests.held import Held, Late
from tests.proxies import CHAT, proxied


@pytest.mark.parametrize("body", [CHAT, {**CHAT, "temperature": 0}])
async def test_a_call_whose_hold_comes_when_all_are_to_end_is_not_sent(gateway, body):
    ledger = Held()
    async with proxied(gateway.url, ledger=ledger) as front:
        parts = front.running.parts
        asking = asyncio.create_task(front.post("/v1/chat/completions", body))
        await ledger.asked.wait()
        draining = asyncio.create_task(front.running.drain(20))
        await front.until(lambda: parts.state.draining)
        front.running.hurry()
        await front.until(lambda: parts.exchanges._stopping)
        ledger.gate.set()
        reply = await asking
        assert (reply.status, reply.error["reason"]) == (503, "draining")
        await draining
        assert len(gateway.journal) == 0
        assert isinstance(front.entries[-1], Void)
        assert (front.entries[-1].ending, parts.books.open_holds) == (Ending.NEVER_SENT, 0)
        assert not [line for line in front.events if line["event"] == "endings_unwritten"]


class EndsLate(Late):
    """A home that takes the ends of holds only once the gate is open."""

    def __init__(self):
        super().__init__()
        self.gate = asyncio.Event()

    def submit(self, steps, *, soon=True):
        if any(isinstance(step, Settle) for step in steps):
            return self.late(steps, soon=soon)
        return super().submit(steps, soon=soon)

    async def let_in(self, steps):
        await self.gate.wait()


async def test_what_calls_have_cost_is_waited_for_for_a_moment(gateway):
    ledger = EndsLate()
    async with proxied(gateway.url, ledger=ledger) as front:
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        front.running.hurry()
        draining = asyncio.create_task(front.running.drain(20))
        await front.until(lambda: front.running.parts.exchanges._stopping)
        ledger.gate.set()
        await draining
        assert front.running.parts.books.open_holds == 0
        assert not [line for line in front.events if line["event"] == "endings_unwritten"]
