"""One call a key: repeats get its answer or hear why not, and nothing is sent twice, across restarts too."""

import asyncio
import contextlib
import hashlib

import orjson
import pytest

from proxy.core.body import LARGE
from proxy.core.idempotency import BODY_MAX
from proxy.core.policy import KeyRef, Policy, Team
from proxy.core.riders import Promise
from proxy.stores.ledger.sqlite import SqliteLedger
from tests.held import Held
from tests.proxies import CHAT, NATIVE, NOW, RESPONSE, proxied

ONCE = {"Idempotency-Key": "order-66"}
TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
NOW_S = 1_800_000_000.0

# fmt: off
CALLS = [
    ("/v1/chat/completions",  CHAT),
    ("/v1/chat/completions",  {**CHAT, "stream": True}),
    ("/v1/messages",          {**NATIVE, "stream": True}),
    ("/v1/responses",         RESPONSE),
    ("/v1/audio/speech",      {"model": "speech-standard", "input": "hello", "voice": "Kore", "response_format": "wav"}),
    ("/v1/video/generation",  {"model": "video-200", "prompt": "a heron"}),
    ("/v1/mcp/calc",          TOOL),
]
# fmt: on


@contextlib.asynccontextmanager
async def on_disk(gateway, tmp_path, policy=None, **flags):
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=NOW_S)
    async with proxied(gateway.url, *([policy] if policy else []), ledger=ledger, **flags) as front:
        yield front


def sent(gateway):
    return sum(seen.method == "POST" for seen in gateway.journal)


@pytest.mark.parametrize(("path", "body"), CALLS)
async def test_a_repeat_gets_the_same_answer_and_the_gateway_one_call(gateway, tmp_path, path, body):
    async with on_disk(gateway, tmp_path) as front:
        first = await front.post(path, body, headers=ONCE)
        again = await front.post(path, body, headers=ONCE)
        spent = front.running.parts.books.figures("default")
    async with on_disk(gateway, tmp_path) as front:
        later = await front.post(path, body, headers=ONCE)
        assert front.running.parts.books.figures("default") == spent
    assert first.status == 200
    assert "Idempotency-Replayed" not in first.headers
    for reply in (again, later):
        assert (reply.status, reply.body) == (200, first.body)
        assert reply.headers["Content-Type"] == first.headers["Content-Type"]
        assert reply.headers["Idempotency-Replayed"] == "true"
        assert reply.headers["X-Sluicegate-Credits"].startswith("charged=0, saved=")
    assert sent(gateway) == 1


async def test_what_a_key_was_for_is_told_by_where_it_went_and_every_byte_of_its_body(gateway, tmp_path):
    """It is compared after a restart, by another release perhaps."""
    small, large = orjson.dumps(CHAT), orjson.dumps({**CHAT, "user": "x" * LARGE})
    async with on_disk(gateway, tmp_path) as front:
        for key, body in (("small", small), ("large", large)):
            await front.call("POST", "/v1/chat/completions", data=body, headers={"Idempotency-Key": key})
            kept = await front.running.parts.books.outcome("default", key)
            asked = b"/v1/gateway/chat/completions/\0" + hashlib.sha256(body).digest()
            assert kept.promise.digest == hashlib.sha256(asked).hexdigest()


async def test_another_request_with_the_same_key_is_refused(gateway, tmp_path):
    async with on_disk(gateway, tmp_path) as front:
        await front.post("/v1/chat/completions", CHAT, headers=ONCE)
        for path, body in (("/v1/chat/completions", {**CHAT, "n": 2}), ("/v1/responses", RESPONSE)):
            reply = await front.post(path, body, headers=ONCE)
            assert (reply.status, reply.error["reason"]) == (422, "idempotency_mismatch")
    assert sent(gateway) == 1


async def test_while_a_call_runs_its_key_is_taken(gateway, tmp_path):
    gateway.set_fault("slow", gate="rest")
    async with on_disk(gateway, tmp_path) as front:
        running = asyncio.ensure_future(front.post("/v1/chat/completions", CHAT, headers=ONCE))
        await front.until(lambda: sent(gateway) == 1)
        same = await front.post("/v1/chat/completions", CHAT, headers=ONCE)
        other = await front.post("/v1/chat/completions", {**CHAT, "n": 2}, headers=ONCE)
        gateway.open_gate("rest")
        first = await running
        after = await front.post("/v1/chat/completions", CHAT, headers=ONCE)
    assert (same.status, same.error["reason"]) == (409, "idempotency_running")
    assert (other.status, other.error["reason"]) == (422, "idempotency_mismatch")
    assert after.body == first.body
    assert sent(gateway) == 1


async def test_two_at_the_same_moment_are_one_call(gateway, tmp_path):
    async with on_disk(gateway, tmp_path) as front:
        replies = await asyncio.gather(
            *(front.post("/v1/chat/completions", {**CHAT, "temperature": 0}, headers=ONCE) for _ in range(10))
        )
    assert sorted({reply.status for reply in replies}) in ([200], [200, 409])
    assert sent(gateway) == 1


def team(name):
    return Team(name, (KeyRef(name, hashlib.sha256(name.encode()).digest()),))


async def test_a_key_belongs_to_its_team(gateway, tmp_path):
    policy = Policy(teams={name: team(name) for name in ("red", "blue")})
    async with on_disk(gateway, tmp_path, policy, auth="keys") as front:
        for name in ("red", "blue"):
            reply = await front.post("/v1/chat/completions", CHAT, headers={**ONCE, "x-api-key": name})
            assert "Idempotency-Replayed" not in reply.headers
    assert sent(gateway) == 2


async def test_callers_with_gateway_keys_of_their_own_do_not_share_keys(gateway, tmp_path):
    async with on_disk(gateway, tmp_path, credential="caller", key=None) as front:
        for key in ("sk-emu-alpha-1", "sk-emu-beta-1"):
            reply = await front.post("/v1/chat/completions", CHAT, headers={**ONCE, "x-api-key": key})
            assert (reply.status, "Idempotency-Replayed" in reply.headers) == (200, False)
    assert sent(gateway) == 2


@pytest.mark.parametrize("fault", ["429", "500", "400"])
async def test_a_call_that_cost_nothing_lets_go_of_its_key(gateway, tmp_path, fault):
    """SDKs repeat such calls with the same key and mean it."""
    async with on_disk(gateway, tmp_path) as front:
        gateway.set_fault(fault)
        assert (await front.post("/v1/chat/completions", CHAT, headers={**ONCE, **NOW})).status == int(fault)
        gateway.clear_faults()
        assert (await front.post("/v1/chat/completions", CHAT, headers=ONCE)).status == 200
    assert sent(gateway) == 2


async def test_a_call_that_waited_a_429_out_keeps_its_key(gateway, tmp_path):
    async with on_disk(gateway, tmp_path) as front:
        gateway.set_fault("429", times=1, retry=1)
        first, second = [await front.post("/v1/chat/completions", CHAT, headers=ONCE) for _ in range(2)]
        assert (first.status, second.status) == (200, 200)
        assert first.body == second.body
        assert "Idempotency-Replayed" in second.headers
    assert sent(gateway) == 2


async def test_a_refused_call_lets_go_of_its_key(gateway, tmp_path):
    async with on_disk(gateway, tmp_path) as front:
        reply = await front.post("/v1/chat/completions", CHAT, headers={"Idempotency-Key": "x" * 256})
        assert (reply.status, reply.error["reason"]) == (400, "bad_request")
        assert not front.running.parts.promises._running


@pytest.mark.parametrize(("fault", "options"), [("reset-before-head", {}), ("cut", {"bytes": 60})])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_broke_off_is_not_sent_again(gateway, tmp_path, fault, options, stream):
    body = {**CHAT, "stream": stream}
    gateway.set_fault(fault, **options)
    async with on_disk(gateway, tmp_path) as front:
        with contextlib.suppress(Exception):
            await front.post("/v1/chat/completions", body, headers=ONCE)
        gateway.clear_faults()
        reply = await front.post("/v1/chat/completions", body, headers=ONCE)
        assert (reply.status, reply.error["reason"]) == (409, "idempotency_lost")
        assert "may have been charged" in reply.error["message"]
        assert reply.headers["x-should-retry"] == "false"
    assert sent(gateway) == 1


async def test_a_tool_that_failed_may_have_acted_and_is_not_called_again(gateway, tmp_path):
    gateway.set_fault("502")
    async with on_disk(gateway, tmp_path) as front:
        await front.post("/v1/mcp/calc", TOOL, headers=ONCE)
        gateway.clear_faults()
        reply = await front.post("/v1/mcp/calc", TOOL, headers=ONCE)
        assert (reply.status, reply.error["data"]["reason"]) == (409, "idempotency_lost")
    assert sent(gateway) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_who_left_finds_its_answer_when_it_comes_back(gateway, tmp_path, stream):
    body = {**CHAT, "stream": stream, "stream_options": {"include_usage": True}} if stream else CHAT
    gateway.set_fault("slow", gate="rest", at=1 if stream else 0)
    async with on_disk(gateway, tmp_path) as front:
        calling = asyncio.ensure_future(front.post("/v1/chat/completions", body, headers=ONCE))
        await front.until(lambda: sent(gateway) == 1)
        calling.cancel()
        await front.until(lambda: any(one.left for one in front.running.parts.exchanges.open))
        gateway.open_gate("rest")
        await front.request()
        gateway.clear_faults()
        reply = await front.post("/v1/chat/completions", body, headers=ONCE)
        assert reply.status == 200
        assert reply.headers["Idempotency-Replayed"] == "true"
        if stream:
            assert reply.body.endswith(b"data: [DONE]\n\n")
        else:
            assert reply.json["choices"]
    assert sent(gateway) == 1


async def test_a_caller_who_left_before_its_call_was_sent_may_send_it_again(gateway):
    ledger = Held()
    async with proxied(gateway.url, ledger=ledger) as front:
        calling = asyncio.ensure_future(front.post("/v1/chat/completions", CHAT, headers=ONCE))
        await ledger.asked.wait()
        calling.cancel()
        # The proxy has seen the end of a connection that was closed before this was asked.
        await front.get("/v1/-/health")
        ledger.gate.set()
        await front.until(lambda: any(event.get("ending") == "never_sent" for event in front.requests))
        assert sent(gateway) == 0
        reply = await front.post("/v1/chat/completions", CHAT, headers=ONCE)
        assert (reply.status, "Idempotency-Replayed" in reply.headers) == (200, False)
    assert sent(gateway) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_too_long_to_keep_is_not_sent_again(gateway, tmp_path, stream):
    body = {**CHAT, "stream": stream}
    gateway.set_fault("big", mb=BODY_MAX // 2**20 + 1)
    async with on_disk(gateway, tmp_path) as front:
        first = await front.post("/v1/chat/completions", body, headers=ONCE)
        assert (first.status, len(first.body) > BODY_MAX) == (200, True)
        reply = await front.post("/v1/chat/completions", body, headers=ONCE)
        assert (reply.status, reply.error["reason"]) == (409, "idempotency_lost")
        assert "too long to keep" in reply.error["message"]
    assert sent(gateway) == 1


async def test_after_a_crash_in_the_middle_the_outcome_is_said_to_be_unknown(gateway, tmp_path):
    """The file as a killed process leaves it: the call is promised, and nobody knows its outcome."""
    async with on_disk(gateway, tmp_path) as front:
        await front.post("/v1/chat/completions", CHAT, headers=ONCE)
        ledger = front.running.parts.books._store
        kept = await ledger.outcome("default", "order-66")
        await ledger.apply([Promise("default", "order-66", kept.promise.digest, kept.promise.at_s)])
    async with on_disk(gateway, tmp_path) as front:
        reply = await front.post("/v1/chat/completions", CHAT, headers=ONCE)
        assert (reply.status, reply.error["reason"]) == (409, "idempotency_lost")
    assert sent(gateway) == 1


async def test_a_day_later_a_key_is_as_new(gateway, tmp_path):
    clock = [NOW_S]
    async with on_disk(gateway, tmp_path, wall=lambda: clock[0]) as front:
        await front.post("/v1/chat/completions", CHAT, headers=ONCE)
        clock[0] += 86_401.0
        reply = await front.post("/v1/chat/completions", CHAT, headers=ONCE)
        assert "Idempotency-Replayed" not in reply.headers
    assert sent(gateway) == 2


async def test_calls_that_spend_nothing_do_not_use_their_key(gateway, tmp_path):
    async with on_disk(gateway, tmp_path) as front:
        for _ in range(2):
            reply = await front.get("/v1/models", headers=ONCE)
            assert reply.status == 200
            assert "Idempotency-Replayed" not in reply.headers


async def test_a_call_with_a_key_asks_for_an_outcome_of_its_own(gateway, tmp_path):
    """An identical call in flight would be shared otherwise, and its answer belongs to no key."""
    same = {**CHAT, "temperature": 0}
    gateway.set_fault("slow", gate="rest")
    async with on_disk(gateway, tmp_path) as front:
        shared = asyncio.ensure_future(front.post("/v1/chat/completions", same))
        await front.until(lambda: sent(gateway) == 1)
        keyed = asyncio.ensure_future(front.post("/v1/chat/completions", same, headers=ONCE))
        await front.until(lambda: sent(gateway) == 2)
        gateway.open_gate("rest")
        await asyncio.gather(shared, keyed)
