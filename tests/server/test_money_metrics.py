"""What the metrics of money say is what the ledger says: each hold's end once, whoever hears of it."""

import asyncio
from dataclasses import replace

import pytest

from proxy.core.ledger import Settle, Void
from proxy.core.policy import DEFAULT_POLICY, StreamUsage
from proxy.core.prices import FLAT
from proxy.emulator.rooms.images import FAILS
from proxy.server import polling
from proxy.units import CREDIT
from tests.proxies import CHAT, proxied
from tests.server.test_media import IMAGE_ASYNC, IMAGE_SYNC, VIDEO, done
from tests.server.test_relay import readers


def outcomes(front):
    """How holds ended, those that did."""
    return {labels[0]: value for labels, value in front.running.parts.metrics.rows("reservations_total") if value}


def spent(front, **labels):
    return front.running.parts.metrics.total("spent_credits_total", **labels)


async def agrees(front):
    """Metrics and ledger agree: what was spent, and how many holds were settled and let go."""
    await front.running.parts.books.written()
    counted = outcomes(front)
    settled = sum(isinstance(entry, Settle) for entry in front.entries)
    voided = sum(isinstance(entry, Void) for entry in front.entries)
    assert sum(counted.values()) - counted.get("released", 0) == settled
    assert counted.get("released", 0) == voided
    assert spent(front) == pytest.approx(front.running.parts.books.settled / CREDIT, abs=1e-9)
    return counted


@pytest.mark.parametrize("status", [400, 402, 404, 422, 500, 502])
async def test_a_call_that_the_gateway_refused_is_let_go(front, gateway, status):
    gateway.set_fault("status", code=status)
    await front.post("/v1/chat/completions", CHAT)
    assert await agrees(front) == {"released": 1}


async def test_each_attempt_of_a_call_that_is_sent_again_is_counted(front, gateway):
    gateway.set_fault("status", code=429, times=2, retry=0)
    assert (await front.post("/v1/chat/completions", CHAT)).status == 200
    assert await agrees(front) == {"released": 2, "settled": 1}


async def test_a_model_that_refuses_to_be_asked_for_usage_is_counted_for_both_attempts(gateway):
    policy = replace(DEFAULT_POLICY, stream_usage=StreamUsage.INJECT)
    async with proxied(gateway.url, policy) as front:
        gateway.set_fault("status", code=400, times=1, message="stream_options")
        assert (await front.post("/v1/chat/completions", {**CHAT, "stream": True})).status == 200
        assert await agrees(front) == {"released": 1, "settled": 1}


async def test_a_call_is_settled_once(front):
    await front.post("/v1/chat/completions", CHAT)
    assert await agrees(front) == {"settled": 1}


@pytest.mark.parametrize("path", ["/v1/video/generation", "/v1/images/generate"])
async def test_work_that_goes_on_is_counted_when_it_ends(front, path):
    model, price = (VIDEO, FLAT.per_video) if "video" in path else (IMAGE_ASYNC, FLAT.per_image)
    begun = await front.post(path, {"model": model, "prompt": "a heron"})
    assert await agrees(front) == {}, "its hold is open"
    reply = await done(front, f"{path}/{begun.json['operation_id']}")
    assert await agrees(front) == {"settled": 1}
    assert spent(front, model=model) == price / CREDIT
    # Whoever heard of it hears what it cost, and where the price stands.
    assert reply.headers["X-Sluicegate-Credits"].startswith(f"charged={price // CREDIT}")
    (said,) = [event for event in front.events if event["event"] == "operation_ended"]
    assert (said["model"], said["outcome"], said["basis"]) == (model, "completed", "hold")
    assert said["place"] == front.requests[-1]["place"] == FLAT.place


async def test_work_that_fails_is_let_go(front):
    begun = await front.post("/v1/images/generate", {"model": IMAGE_ASYNC, "prompt": f"{FAILS} x"})
    await done(front, f"/v1/images/generate/{begun.json['operation_id']}")
    assert await agrees(front) == {"released": 1}


async def test_work_that_nobody_hears_the_end_of_expires(gateway):
    now_s = 1_800_000_000.0
    async with proxied(gateway.url, wall=lambda: now_s) as front:
        gateway.set_fault("status", code=500, method="GET")
        await front.post("/v1/video/generation", {"model": VIDEO, "prompt": "a heron"})
        now_s += front.running.parts.state.policy.expires_after_s + 1
        await polling.look(front.running.parts)
        assert await agrees(front) == {"expired": 1}


async def test_a_synchronous_image_is_settled_with_its_call(front):
    await front.post("/v1/images/generate", {"model": IMAGE_SYNC, "prompt": "x"})
    assert await agrees(front) == {"settled": 1}


async def test_a_call_whose_first_caller_left_while_others_read_on_is_counted_when_it_ends(front, gateway):
    for gate, at in (("second", 2), ("fourth", 4)):
        gateway.set_fault("slow", gate=gate, at=at)
    body = {**CHAT, "temperature": 0, "stream": True}
    first = asyncio.create_task(front.post("/v1/chat/completions", body))
    await gateway.wait_for_gate("second")
    other = asyncio.create_task(front.post("/v1/chat/completions", body))
    await front.until(lambda: readers(front) == 2)
    first.cancel()
    await front.until(lambda: readers(front) == 1)
    gateway.open_gate("second")
    await front.until(lambda: len(front.requests) == 1)
    assert outcomes(front) == {}
    gateway.open_gate("fourth")
    assert (await other).status == 200
    assert await agrees(front) == {"settled": 1}
    assert spent(front) == spent(front, model=CHAT["model"]), "the gateway has answered well for it by then"
