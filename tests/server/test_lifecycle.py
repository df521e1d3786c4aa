"""Cancellation, crowds, slow neighbours and drain: no hold stays open, and nobody pays for somebody else's trouble."""

import asyncio
import types
from contextlib import AsyncExitStack, asynccontextmanager

import orjson
import pytest

from proxy.config.settings import LogFormat
from proxy.config.sources import load
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
