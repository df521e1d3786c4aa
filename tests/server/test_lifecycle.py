"""Cancellation, crowds, slow neighbours and drain: no hold stays open, and nobody pays for somebody else's trouble."""

import asyncio
import contextlib
import types
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import orjson
import pytest

from proxy.config.settings import LogFormat
from proxy.config.sources import load
from proxy.core.deterministic import CacheRule
from proxy.core.ledger import Hold
from proxy.core.policy import DEFAULT_POLICY
from proxy.observe.log import RequestLog
from proxy.server import app, opening, pipeline
from proxy.server.inbound import Inbound
from proxy.server.listener import Listener
from proxy.stores.cache.memory import MemoryCache
from proxy.stores.ledger.memory import MemoryLedger
from tests.proxies import CHAT, KEY, proxied
from tests.raw import Raw, exchange, request


@types.coroutine
def cancelled_at(coroutine, suspension):
    """Run a coroutine, and cancel the running task when it suspends for the n-th time (from 1)."""
    iterator = coroutine.__await__()
    count, value, error = 0, None, None
    while True:
        try:
            waited_for = iterator.throw(error) if error else iterator.send(value)
        except StopIteration as done:
            return done.value
        count += 1
        if count == suspension:
            asyncio.current_task().cancel()
        value = error = None
        try:
            value = yield waited_for
        except BaseException as thrown:  # noqa: BLE001
            error = thrown


@asynccontextmanager
async def cancelling(upstream, suspension):
    """A proxy whose handler is cancelled at its n-th suspension; gives (address, parts, how often it suspended)."""
    flags = {"upstream": upstream, "listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "auth": "open"}
    settings = load(flags, {"SLUICEGATE_UPSTREAM_KEY": KEY}, None)
    log = RequestLog(lambda line: None, form=LogFormat.JSON)
    async with AsyncExitStack() as stack:
        parts = await opening.open_parts(
            stack, settings, DEFAULT_POLICY, opening.Doubles(log=log, ledger=MemoryLedger(), cache=MemoryCache(1024))
        )

        async def handle(request):
            return await cancelled_at(pipeline.answer(Inbound(request), parts), suspension)

        listener = Listener(handle, lambda refused: app._unparsed(refused, parts), app._limits(settings))
        server = await asyncio.get_running_loop().create_server(listener, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[:2], parts
        finally:
            server.close()
            for open_exchange in list(parts.exchanges.open):
                open_exchange.abandon()
            await listener.shutdown(0.1)


# fmt: off
CALLS = {
    "json":    ("/v1/chat/completions", CHAT),
    "stream":  ("/v1/chat/completions", {**CHAT, "stream": True}),
    "shared":  ("/v1/chat/completions", {**CHAT, "stream": True, "temperature": 0}),
    "tool":    ("/v1/mcp/calc", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 1}}}),
}
# fmt: on


@pytest.mark.parametrize("name", CALLS)
async def test_cancelled_at_every_await_no_hold_stays_open(gateway, name):
    """The handler is cancelled at its first suspension, its second, … until it runs to its end uncancelled."""
    path, body = CALLS[name]
    sent, held = 0, 0
    for suspension in range(1, 60):
        async with cancelling(gateway.url, suspension) as (address, parts):
            raw = await Raw.open(address)
            await raw.send(request("POST", path, "Connection: close", body=orjson.dumps(body)))
            answer = await raw.reader.read()
            async with asyncio.timeout(60):
                await parts.exchanges.finished()
            await parts.books.written()
            assert parts.books.open_holds == 0, f"cancelled at suspension {suspension}"
            entries = list(parts.books._store.entries)
            raw.close()
        sent += bool(answer)
        held += any(isinstance(entry, Hold) for entry in entries)
        if answer.endswith(b"0\r\n\r\n") or b"Content-Length" in answer:
            break
    else:
        raise AssertionError("the call never ran to its end")
    assert suspension >= 2, "the cancellations have to reach past the hold"
    assert held > 1


async def test_a_thousand_streams_are_open_on_one_process(gateway):
    """All have their first event before any has its last."""
    count = 1000
    gateway.set_fault("slow", gate="rest", at=2)
    async with proxied(gateway.url) as front:
        body = orjson.dumps({**CHAT, "stream": True})

        async def one():
            raw = await Raw.open(front.address)
            await raw.send(request("POST", "/v1/chat/completions", body=body))
            head = await raw.reader.readuntil(b"\r\n\r\n")
            return raw, head

        opened = []
        for _ in range(10):
            opened += await asyncio.gather(*(one() for _ in range(count // 10)))
        assert all(head.startswith(b"HTTP/1.1 200") for _, head in opened)
        await gateway.wait_for_gate("rest", count)
        assert len(front.running.parts.exchanges.open) == count
        gateway.open_gate("rest")
        bodies = await asyncio.gather(*(raw._chunks() for raw, _ in opened))
        assert {body[-14:] for body in bodies} == {b"data: [DONE]\n\n"}
        for raw, _ in opened:
            raw.close()
        await front.until(lambda: front.running.parts.books.open_holds == 0)


async def test_slow_and_silent_sockets_leave_other_callers_alone(gateway):
    """Silent, half-headed, half-bodied and non-reading callers, 200 of each, and a neighbour that is served throughout.

    Whether its latency stays as it was is measured by the bench; here it must be answered while all of them are stuck.
    """
    patience = dict.fromkeys(("head_timeout", "body_timeout", "body_idle_timeout", "write_timeout"), "10m")
    async with proxied(gateway.url, **patience) as front:
        body = orjson.dumps(CHAT)
        stuck = {
            "silent": b"",
            "half a head": b"POST /v1/chat/completions HTTP/1.1\r\nHost: lo",
            "half a body": request("POST", "/v1/chat/completions", body=body)[:-10],
            "not reading": request("POST", "/v1/chat/completions", body=body),
        }
        raws = []
        for kind, sent in stuck.items():
            for _ in range(200):
                raw = await Raw.open(front.address)
                if kind == "not reading":
                    raw.writer.transport.pause_reading()
                await raw.send(sent)
                raws.append(raw)
        await front.until(lambda: front.running._listener.peers.total() >= 800)
        for _ in range(20):
            assert (await exchange(front.address, request("POST", "/v1/chat/completions", body=body))).status == 200
        for raw in raws:
            raw.close()


async def test_draining_refuses_new_work_and_finishes_what_runs(gateway):
    gateway.set_fault("slow", gate="rest", at=2)
    async with proxied(gateway.url, drain="20s") as front:
        idle = await Raw.open(front.address)
        busy = await Raw.open(front.address)
        await busy.send(request("POST", "/v1/chat/completions", body=orjson.dumps({**CHAT, "stream": True})))
        await gateway.wait_for_gate("rest")
        draining = asyncio.create_task(front.running.drain(20))
        assert await idle.closed()
        async with front.client.get(front.running.admin_url + "/readyz") as ready:
            assert (ready.status, await ready.text()) == (503, "draining\n")
        async with front.client.get(front.running.admin_url + "/healthz") as alive:
            assert alive.status == 200
        with pytest.raises(OSError):
            await Raw.open(front.address)
        gateway.open_gate("rest")
        reply = await busy.reply()
        assert reply.body.endswith(b"data: [DONE]\n\n")
        await draining
        busy.close()


async def test_a_drain_ends_when_the_last_call_has_ended_however_long_it_may_take(gateway):
    async with proxied(gateway.url) as front:
        for _ in range(3):
            assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        async with asyncio.timeout(60):
            await front.running.drain(3600)


async def test_a_drain_that_takes_too_long_ends_what_runs_and_charges_it(gateway):
    gateway.set_fault("slow", gate="never", at=2)
    async with proxied(gateway.url) as front:
        raw = await Raw.open(front.address)
        await raw.send(request("POST", "/v1/chat/completions", body=orjson.dumps({**CHAT, "stream": True})))
        await gateway.wait_for_gate("never")
        await front.running.drain(0.1)
        assert front.running.parts.books.open_holds == 0
        assert front.entries[-1].charge.credits > 0
        raw.close()


# --- calls that are shared, and the end of the process ---

SURE = {**CHAT, "temperature": 0}


@pytest.mark.parametrize("stage", ["head", "half"])
async def test_who_shares_a_call_that_the_proxy_gives_up_is_told_so_and_nothing_is_sent_again(gateway, stage):
    gateway.set_fault("slow", gate=stage, **({"at": 1} if stage == "half" else {}))
    async with proxied(gateway.url) as front:
        calls = [asyncio.create_task(front.post("/v1/chat/completions", SURE)) for _ in range(5)]
        await gateway.wait_for_gate(stage)
        await front.until(lambda: [one.shared.readers for one in front.running.parts.in_flight._slots.values()] == [5])
        await front.running.drain(0)
        replies = await asyncio.gather(*calls)
        assert {(reply.status, reply.error["reason"]) for reply in replies} == {(503, "draining")}
        assert len(gateway.journal) == 1
        assert (len(front.entries), front.running.parts.books.open_holds) == (2, 0)
        gateway.open_gate(stage)


async def test_who_shared_an_answer_that_may_not_be_given_twice_is_not_sent_again_by_a_proxy_that_drains(gateway):
    gateway.set_fault("empty")
    gateway.set_fault("slow", gate="head", times=1)
    async with proxied(gateway.url) as front:
        calls = [asyncio.create_task(front.post("/v1/chat/completions", SURE)) for _ in range(3)]
        await gateway.wait_for_gate("head")
        await front.until(lambda: [one.shared.readers for one in front.running.parts.in_flight._slots.values()] == [3])
        draining = asyncio.create_task(front.running.drain(20))
        await front.until(lambda: front.running.parts.state.draining)
        gateway.open_gate("head")
        replies = await asyncio.gather(*calls)
        await draining
        assert sorted(reply.status for reply in replies) == [200, 503, 503]
        assert len(gateway.journal) == 1


@pytest.mark.parametrize("shared", [True, False])
async def test_an_answer_that_is_given_up_between_two_pieces_does_not_look_whole(shared):
    """Its caller reads slowly, so that nobody waits for the gateway when the proxy stops."""

    async def endless(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            head = b"HTTP/1.1 200 OK\r\nContent-Type: audio/L16\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(head)
            while True:
                writer.write(b"2000\r\n" + b"a" * 0x2000 + b"\r\n")
                await writer.drain()
        writer.close()

    rules = (CacheRule(routes=frozenset({"speech"}), ttl_s=60.0),) if shared else ()
    body = orjson.dumps({"model": "speech-standard", "input": "hello", "voice": "Kore", "response_format": "pcm"})
    async with await asyncio.start_server(endless, "127.0.0.1", 0) as gateway:
        url = f"http://127.0.0.1:{gateway.sockets[0].getsockname()[1]}"
        async with proxied(url, replace(DEFAULT_POLICY, cache=rules), spool_bytes="64MiB") as front:
            slow = await Raw.open(front.address)
            slow.writer.transport.pause_reading()
            await slow.send(request("POST", "/v1/audio/speech", "Content-Type: application/json", body=body))
            await front.until(lambda: any(one._paused for one in front.running._listener.connections))
            assert bool(front.running.parts.in_flight._slots) is shared
            draining = asyncio.create_task(front.running.drain(0))
            await front.running.parts.exchanges.finished()
            slow.writer.transport.resume_reading()
            with contextlib.suppress(ConnectionResetError):
                assert not (await slow.reader.read()).endswith(b"\r\n0\r\n\r\n")
            await draining
            slow.close()
