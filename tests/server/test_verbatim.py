"""A request that came before byte for byte is answered from memory without being parsed, and decided like any other."""

import asyncio
import hashlib
import socket
from dataclasses import replace

import orjson
import pytest

from proxy.core.deterministic import CacheRule
from proxy.core.policy import DEFAULT_POLICY, CacheScope, KeyRef, Policy, Team
from proxy.server import verbatim
from proxy.server.repeats import SEEN_MAX
from tests.proxies import AFTERNOON_S, CHAT, NATIVE, proxied
from tests.raw import Raw, exchange, request

SURE = orjson.dumps({**CHAT, "temperature": 0})
ASK = request("POST", "/v1/chat/completions", "Content-Type: application/json", body=SURE)


@pytest.fixture
async def front(gateway):
    """Its clock stands still: an answer is as old on one way as on the other."""
    async with proxied(gateway.url, wall=lambda: AFTERNOON_S) as running:
        yield running


def known(front, sent=ASK):
    """Whether a request would be answered by its bytes alone."""
    return bool(verbatim.answer(sent, front.running.parts))


async def asked(raw, sent=ASK):
    await raw.send(sent)
    return await raw.reply()


async def learned(front, sent=ASK):
    """A connection on which a request was asked until it is known: fetched, and twice given from memory."""
    raw = await Raw.open(front.address)
    first = await asked(raw, sent)
    for _ in range(2):
        assert not known(front, sent)
        await asked(raw, sent)
    assert known(front, sent)
    # What was asked just now was answered, and is recorded in the next turn of the loop.
    await asyncio.sleep(0)
    return raw, first


def lines(reply):
    """The names of the header lines, in order."""
    return [line.partition(":")[0].lower() for line in reply.head.split("\r\n")[1:]]


STREAM = orjson.dumps({**CHAT, "temperature": 0, "stream": True})
MESSAGE = orjson.dumps({**NATIVE, "temperature": 0})


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/chat/completions", SURE), ("/v1/chat/completions", STREAM), ("/v1/messages", MESSAGE)],
)
async def test_it_is_the_answer_that_the_long_way_gives(front, gateway, path, body):
    sent = request("POST", path, "Content-Type: application/json", "User-Agent: tester/1", body=body)
    raw, first = await learned(front, sent)
    long_way = await exchange(front.address, sent.replace(b"tester/1", b"tester/2"))
    fetched = len(gateway.journal)
    short_way = await asked(raw, sent)
    assert short_way.body == long_way.body == first.body
    # What the library repeats of a stream's framing apart: stored bytes have a length.
    assert lines(short_way) == lines(long_way)
    assert short_way.header("Cache-Status") == long_way.header("Cache-Status")
    assert short_way.header("X-Request-ID") != long_way.header("X-Request-ID")
    assert len(gateway.journal) == fetched
    short, long = front.requests[-1], front.requests[-2]
    assert short["user_agent"] == "tester/1"
    differs = {"id", "user_agent", "dur_s", "time"}
    assert {k: v for k, v in short.items() if k not in differs} == {k: v for k, v in long.items() if k not in differs}
    raw.close()


async def test_it_is_counted_as_any_hit(front):
    raw, _ = await learned(front)
    metrics = front.running.parts.metrics
    before = metrics.total("requests_total", code="200"), metrics.total("cache_requests_total", result="hit")
    for _ in range(3):
        await asked(raw)
    assert metrics.total("requests_total", code="200") == before[0] + 3
    assert metrics.total("cache_requests_total", result="hit") == before[1] + 3
    assert metrics.total("requests_in_flight") == 0
    raw.close()


# --- what is decided each time ---


def keyed(*names):
    return {
        name: Team(name, (KeyRef("ci", hashlib.sha256(f"sk-{name}".encode()).digest()),), cache=CacheScope.SHARED)
        for name in names
    }


async def test_a_request_by_another_name_of_its_model_is_known_by_its_own_bytes(gateway):
    policy = replace(DEFAULT_POLICY, aliases={"fast": CHAT["model"]})
    async with proxied(gateway.url, policy, wall=lambda: AFTERNOON_S) as front:
        body = orjson.dumps({**CHAT, "model": "fast", "temperature": 0})
        sent = request("POST", "/v1/chat/completions", "Content-Type: application/json", body=body)
        raw, first = await learned(front, sent)
        assert (await asked(raw, sent)).body == first.body
        raw.close()


async def test_a_key_that_is_no_longer_known_is_refused_and_a_key_that_moves_is_another_team(gateway):
    sent = request("POST", "/v1/chat/completions", "Authorization: Bearer sk-red", body=SURE)
    async with proxied(gateway.url, Policy(keyed("red"), open_team=None), auth="keys") as front:
        raw, _ = await learned(front, sent)
        state = front.running.parts.state
        state.policy = Policy(keyed("blue"), open_team=None)
        assert not known(front, sent)
        assert (await asked(raw, sent)).status == 401
        raw.close()
        moved = replace(keyed("red")["red"], name="blue")
        state.policy = Policy({"blue": moved}, open_team=None)
        assert (await exchange(front.address, sent)).status == 200
        assert front.requests[-1]["team"] == "blue"


async def test_a_new_policy_an_old_answer_and_a_purge_end_it(gateway):
    now = [1_800_000_000.0]
    rules = (CacheRule(ttl_s=60.0),)
    async with proxied(gateway.url, replace(DEFAULT_POLICY, cache=rules), wall=lambda: now[0]) as front:
        raw, _ = await learned(front)
        now[0] += 61
        assert not known(front)
        assert (await asked(raw)).header("Cache-Status").startswith("sluicegate; fwd=stale")
        await asked(raw)
        assert known(front)
        status, _ = await front.admin("POST", "/api/cache/purge", {"route": "chat"})
        assert status == 200
        assert not known(front)
        await asked(raw)
        await asked(raw)
        assert known(front)
        front.running.parts.state.policy = replace(DEFAULT_POLICY, cache=rules)
        assert not known(front)
        raw.close()


async def test_nothing_is_answered_by_a_proxy_that_drains(front):
    raw, _ = await learned(front)
    front.running.parts.state.draining = True
    assert not known(front)
    assert (await asked(raw)).status == 503
    raw.close()


@pytest.mark.parametrize(
    "line", ["Connection: close", "Cache-Control: no-cache", "Idempotency-Key: k", "Transfer-Encoding: chunked"]
)
async def test_some_requests_are_never_known(front, line):
    body = SURE if "chunked" not in line else b"%x\r\n%b\r\n0\r\n\r\n" % (len(SURE), SURE)
    sent = request("POST", "/v1/chat/completions", line, body=body)
    if "chunked" in line:
        sent = sent.replace(b"Content-Length: %d\r\n" % len(body), b"")
    for _ in range(3):
        raw = await Raw.open(front.address)
        assert (await asked(raw, sent)).status == 200
        raw.close()
    assert not known(front, sent)


# --- where a request begins and ends ---


async def test_the_rest_of_a_request_is_not_taken_for_one_that_is_known(front):
    """Bytes that are known are still the end of what came before, where something came before."""
    raw, _ = await learned(front)
    # One whole request and the beginning of the next, which swallows the known one as a header line and a body.
    await raw.send(ASK + b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Swallows: ")
    assert (await raw.reply()).body.startswith(b'{"id":"chatcmpl')
    await raw.send(ASK)
    swallowed = await raw.reply()
    assert b"chatcmpl" not in swallowed.body
    raw.close()


@pytest.mark.parametrize("cut", [1, 20, ASK.index(b"\r\n\r\n") + 4, len(ASK) - 1])
async def test_a_request_in_two_pieces_is_answered_once(front, cut):
    raw, first = await learned(front)
    done = len(front.requests)
    await raw.send(ASK[:cut])
    # What was cut off has been read when another connection has had its answer after it.
    await exchange(front.address, ASK)
    await raw.send(ASK[cut:])
    assert (await raw.reply()).body == first.body
    assert (await asked(raw)).body == first.body
    assert len(front.requests) == done + 3
    raw.close()


async def test_requests_sent_ahead_are_answered_in_their_order(front):
    raw, first = await learned(front)
    other = request("GET", "/-/health")
    await raw.send(ASK + other + ASK)
    await raw.send(ASK)
    await raw.send(other)
    replies = [await raw.reply() for _ in range(5)]
    assert [reply.body == first.body for reply in replies] == [True, False, True, True, False]
    raw.close()


async def test_a_caller_that_does_not_read_fills_no_memory(front):
    raw, _ = await learned(front)
    raw.close()
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    lazy.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(lazy, front.address)

    async def send():
        """One more request, which has been read when another connection has had its answer after it."""
        await loop.sock_sendall(lazy, ASK)
        await exchange(front.address, request("GET", "/-/health"))

    await send()
    port = lazy.getsockname()[1]
    live = [one for one in front.running._listener.connections if one.transport is not None]
    (connection,) = [one for one in live if one.transport.get_extra_info("peername")[1] == port]
    while not connection._paused:
        await send()
    done = len([one for one in front.requests if one["route"] == "chat"])
    for _ in range(5):
        await send()
    answered = len([one for one in front.requests if one["route"] == "chat"])
    assert answered <= done + 1, "at most one, which waits until its answer goes out"
    lazy.close()


async def test_a_connection_that_is_used_is_not_idle(front):
    raw, _ = await learned(front)
    fresh = await Raw.open(front.address)
    assert (await asked(fresh)).status == 200
    (used,) = [one for one in front.running._listener.connections if not one._request_count]
    closes_s = used._next_keepalive_close_time
    assert (await asked(fresh)).status == 200
    assert used._next_keepalive_close_time > closes_s
    fresh.close()
    raw.close()


async def test_an_idle_connection_is_still_closed(gateway):
    async with proxied(gateway.url, keepalive_timeout="0.2s") as front:
        for _ in range(3):
            await exchange(front.address, ASK)
        assert known(front)
        fresh = await Raw.open(front.address)
        assert (await asked(fresh)).status == 200
        assert await fresh.closed()


async def test_what_is_remembered_is_bounded(front):
    raw = await Raw.open(front.address)
    for number in range(SEEN_MAX + 5):
        sent = request("POST", "/v1/chat/completions", f"X-Number: {number}", body=SURE)
        await asked(raw, sent)
    assert len(front.running.parts.repeats._seen) == SEEN_MAX
    long = request("POST", "/v1/chat/completions", "X-Long: " + "x" * 17_000, body=SURE)
    for _ in range(3):
        await asked(raw, long)
    assert not known(front, long)
    raw.close()
