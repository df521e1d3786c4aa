"""A request whose head came before byte for byte is served without the library, and nobody can tell from outside."""

import asyncio
import itertools
import os
import socket

import orjson
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from proxy.emulator.gateway import running as emulated
from proxy.emulator.options import Options
from proxy.server.heads import KEPT_BYTES_MAX, Heads, Sent
from proxy.server.inbound import Again
from proxy.server.listener import HELD_MAX
from tests.proxies import CHAT, proxied
from tests.raw import Raw, exchange, request

JSON = "Content-Type: application/json"


def chat(content="hi", *lines, **more):
    body = orjson.dumps({**CHAT, "messages": [{"role": "user", "content": content}], **more})
    return request("POST", "/v1/chat/completions", JSON, *lines, body=body)


def again(front, sent):
    """Whether a request would be served without the library."""
    return front.running.parts.heads.again(sent) is not None


async def known(front, sent):
    """A request that came before, so that its head is known."""
    await exchange(front.address, sent)
    assert again(front, sent)
    return sent


def connection_of(front, raw):
    port = raw.writer.get_extra_info("sockname")[1]
    live = [one for one in front.running._listener.connections if one.transport is not None]
    return next(one for one in live if one.transport.get_extra_info("peername")[1] == port)


DIFFERS = {"date", "x-request-id", "request-id", "server-timing", "ratelimit", "ratelimit-policy"}


def told(reply):
    """An answer without what is of its moment."""
    lines = [line for line in reply.head.split("\r\n") if line.partition(":")[0].lower() not in DIFFERS]
    lines = [line for line in lines if not line.lower().startswith("x-ratelimit")]
    return lines, reply.body


# --- which requests ---


async def test_the_same_head_is_known_whatever_its_body(front):
    await known(front, chat("hi"))
    assert again(front, chat("something longer"))
    assert again(front, chat("x" * 40_000))


def other_forms(sent):
    head, _, body = sent.partition(b"\r\n\r\n")
    length = b"Content-Length: %d" % len(body)
    yield "another line", sent.replace(b"Host:", b"X-Other: 1\r\nHost:")
    yield "lower case", sent.replace(b"Content-Type", b"content-type")
    yield "another target", sent.replace(b"completions HTTP", b"completions?a=b HTTP")
    yield "another version", sent.replace(b"HTTP/1.1", b"HTTP/1.0")
    yield "a body cut short", sent[:-1]
    yield "more behind it", sent + b"G"
    yield "the next one behind it", sent + sent
    yield "no length", sent.replace(length + b"\r\n", b"").replace(b"\r\n" + length, b"")
    yield "two lengths", sent.replace(length, length + b"\r\n" + length)
    yield "a signed length", sent.replace(length, b"Content-Length: +%d" % len(body))
    yield "a long length", sent.replace(length, b"Content-Length: %030d" % len(body))
    yield "a length without a blank", sent.replace(length, b"Content-Length:%d" % len(body))
    yield "half a head", head


async def test_what_differs_in_anything_else_goes_to_the_library(front):
    sent = await known(front, chat())
    for name, other in other_forms(sent):
        assert other != sent, name
        assert not again(front, other), name
    (head,) = front.running.parts.heads._by_bytes.values()
    assert head.body_of(sent) == sent.partition(b"\r\n\r\n")[2]
    for name, other in other_forms(sent):
        assert head.body_of(other) is None, name


async def test_a_connection_knows_the_head_that_it_sent_last(front):
    """And no more than that: each other one is looked for among all."""
    first, second, unknown = chat("hi"), request("GET", "/-/health"), chat("hi", "X-Other: 1")
    await known(front, first)
    await known(front, second)
    raw = await Raw.open(front.address)
    for sent, target in (
        (first, "/v1/chat/completions"),
        (chat("longer"), "/v1/chat/completions"),
        (second, "/-/health"),
    ):
        await raw.send(sent)
        assert (await raw.reply()).status == 200
        assert connection_of(front, raw).head.known.target == target
    await raw.send(unknown)
    assert b"choices" in (await raw.reply()).body
    assert connection_of(front, raw).head.known.target == "/-/health"
    raw.close()


@given(st.binary(max_size=40), st.integers(0, 99), st.sampled_from([0, 1, -1]))
def test_a_body_is_that_of_a_head_where_both_make_the_whole(body, cut, off):
    before, behind = b"POST / HTTP/1.1\r\nContent-Length: ", b"\r\nHost: a\r\n\r\n"
    head = Sent(before, behind, None)
    sent = before + b"%d" % len(body) + behind + body
    assert head.body_of(sent) == body
    assert head.body_of(sent + b"x") is None
    assert head.body_of(sent[: cut % len(sent)]) is None
    other = before + b"%d" % (len(body) + off) + behind + body
    assert (head.body_of(other) == body) == (off == 0)


@pytest.mark.parametrize(
    "sent",
    [
        chat("hi", "Connection: close"),
        chat("hi", "Expect: 100-continue"),
        chat().replace(b"HTTP/1.1", b"HTTP/1.0"),
        request("HEAD", "/"),
        chat().replace(b"Content-Length: ", b"Content-Length:"),
        request("GET", "/v1/nowhere"),
        request("OPTIONS", "/v1/models", "Origin: http://localhost", "Access-Control-Request-Method: GET"),
        request("POST", "/v1/chat/completions", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        request("GET", "/v1/models", "Host: again"),
    ],
)
async def test_some_requests_are_never_known(front, sent):
    for _ in range(2):
        raw = await Raw.open(front.address)
        await raw.send(sent)
        await raw.reader.readuntil(b"\r\n\r\n")
        raw.close()
    assert not again(front, sent)


async def test_a_request_without_a_body_is_known_too(front):
    sent = await known(front, request("GET", "/-/health"))
    first = await exchange(front.address, sent)
    assert told(await exchange(front.address, sent)) == told(first)


async def test_what_is_remembered_is_bounded():
    heads = Heads()
    for number in range(1030):
        heads.keep_bytes(request("GET", f"/{number}"), None)
    assert len(heads._by_bytes) == 1024
    assert heads.again(request("GET", "/0")) is None


async def test_a_long_head_is_not_remembered(front):
    for size, remembered in ((KEPT_BYTES_MAX - 1000, True), (KEPT_BYTES_MAX + 1, False)):
        sent = chat("hi", f"X-Long-{remembered}: " + "x" * size)
        assert (await exchange(front.address, sent)).status == 200
        assert again(front, sent) is remembered
    kept = [place for place in front.running.parts.heads._known if any(name == b"X-Long-False" for name, _ in place[4])]
    assert not kept


async def test_all_of_a_known_head_is_there(front, gateway):
    sent = await known(front, chat("hi", "X-Twice: one", "x-twice: two", "Accept-Language: d\xe9"))
    found, body = front.running.parts.heads.again(sent)
    raw = await Raw.open(front.address)
    await raw.send(sent)
    await raw.reply()
    here = Again(connection_of(front, raw), found.known, body, sent)
    assert here.body_here(1000, AssertionError) == body
    assert here.header_lines == list(here.request.headers.items())
    assert [line for line in here.header_lines if line[0].lower() == "x-twice"] == [
        ("X-Twice", "one"),
        ("x-twice", "two"),
    ]
    assert (here.method, here.target, here.http_version, here.peer) == (
        "POST",
        "/v1/chat/completions",
        (1, 1),
        "127.0.0.1",
    )
    assert {name for name, _ in here.raw_headers} == {
        b"Host",
        b"Content-Type",
        b"X-Twice",
        b"x-twice",
        b"Accept-Language",
    }
    raw.close()


# --- the answer ---


@pytest.mark.parametrize(
    "sent",
    [
        chat("hi"),
        chat("hi", stream=True),
        chat("hi", model="no-such-model"),
        chat("hi").replace(b'"messages"', b'"messagez"'),
        request("POST", "/v1/chat/completions", JSON, body=b'{"model": nonsense}'),
        request("POST", "/v1/messages", JSON, body=orjson.dumps({**CHAT, "model": "claude-sonnet-x", "max_tokens": 5})),
        request("GET", "/v1/models"),
        request("GET", "/v1/credits"),
        request("POST", "/v1/chat/completions", JSON, "Authorization: Basic eA==", body=b"{}"),
    ],
)  # fmt: skip
async def test_it_is_the_answer_that_the_library_would_have_given(front, sent):
    fresh = sent.replace(b"\r\n\r\n", b"\r\nX-Fresh: 1\r\n\r\n", 1)
    for _ in range(3):
        # What may be remembered of it is.
        by_library = await exchange(front.address, fresh)
    await known(front, sent)
    raw = await Raw.open(front.address)
    for _ in range(2):
        await raw.send(sent)
        here = await raw.reply()
        assert told(here)[0] == told(by_library)[0]
        assert here.status == by_library.status
        assert len(here.body) == len(by_library.body)
    assert not connection_of(front, raw)._request_count, "the library was not asked"
    raw.close()
    here, there = front.requests[-1], front.requests[2]
    of_the_moment = {"id", "time", "dur_s", "asked_at", "head_s", "upstream_s", "waited_s"}
    assert {k: v for k, v in here.items() if k not in of_the_moment} == {
        k: v for k, v in there.items() if k not in of_the_moment
    }


async def test_a_body_that_is_too_large_is_refused_as_any_other(gateway):
    async with proxied(gateway.url, max_body="2000") as front:
        await known(front, chat())
        refused = await exchange(front.address, chat("x" * 3000))
        assert refused.status == 413
        assert (await exchange(front.address, chat("x" * 100))).status == 200


async def test_a_key_is_looked_up_for_each_of_them(gateway):
    async with proxied(gateway.url, auth="keys") as front:
        sent = chat("hi", "Authorization: Bearer sk-unknown")
        for _ in range(3):
            assert (await exchange(front.address, sent)).status == 401
        assert again(front, sent)


# --- what comes meanwhile, and who leaves ---

_FORMS = (
    chat("hi"),
    chat("hi", stream=True),
    request("GET", "/-/health"),
    request("POST", "/v1/chat/completions", JSON, body=b'{"model": nonsense}'),
    chat("of another length"),
    chat("hi").replace(b"Content-Type", b"content-type"),
)


@given(
    order=st.lists(st.sampled_from(range(len(_FORMS))), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 2500), max_size=6),
)
def test_however_requests_are_cut_each_has_its_answer_in_its_turn(order, cuts):
    async def answers():
        async with emulated(Options(limits=False)) as gateway, proxied(gateway.url) as front:
            alone = []
            for sent in _FORMS:
                await exchange(front.address, sent)
                alone.append(await exchange(front.address, sent))
            raw = await Raw.open(front.address)
            data = b"".join(_FORMS[at] for at in order)
            places = sorted({0, len(data), *[cut for cut in cuts if cut < len(data)]})
            for begins, ends in itertools.pairwise(places):
                await raw.send(data[begins:ends])
                await asyncio.sleep(0)
            for at in order:
                reply = await raw.reply()
                assert reply.status == alone[at].status
                assert len(reply.body) == len(alone[at].body)
            raw.close()

    asyncio.run(answers())


@pytest.fixture
async def held(request, gateway):
    """A proxy that knows a head, and a call with that head which the gateway does not answer yet.

    Settings of that proxy are the fixture's parameter, where it has one.
    """
    async with proxied(gateway.url, **getattr(request, "param", {})) as front:
        sent = await known(front, chat())
        gateway.set_fault("slow", times=1, gate="head")
        raw = await Raw.open(front.address)
        await raw.send(sent)
        await gateway.wait_for_gate("head")
        assert connection_of(front, raw)._serving is not None
        yield front, raw
        raw.close()


async def test_what_is_sent_ahead_waits_and_is_not_read_without_end(gateway, held):
    front, raw = held
    connection = connection_of(front, raw)
    ahead = request("GET", "/-/health", "X-Long: " + "x" * 4000)
    writing = asyncio.ensure_future(raw.send(ahead * 2000))
    await front.until(lambda: len(connection._held) >= HELD_MAX)
    assert len(connection._held) < HELD_MAX + 300_000, "what one read brings behind the bound, and no more"
    assert not writing.done(), "the rest is not read"
    gateway.open_gate("head")
    for _ in range(2001):
        assert (await raw.reply()).status == 200
    await writing


@pytest.mark.parametrize("held", [{"keepalive_timeout": "0.2s"}], indirect=True)
async def test_a_call_that_takes_longer_than_a_connection_may_be_idle_is_answered(gateway, held):
    front, raw = held
    closes_s = connection_of(front, raw)._next_keepalive_close_time
    await front.until(lambda: connection_of(front, raw)._next_keepalive_close_time > closes_s)
    gateway.open_gate("head")
    assert (await raw.reply()).status == 200
    assert await raw.closed(), "and once it is idle the connection is closed"


async def test_who_leaves_is_charged_as_any_other(gateway, held):
    front, raw = held
    raw.close()
    gateway.open_gate("head")
    await front.until(lambda: len(front.requests) == 2)
    event = front.requests[-1]
    assert (event["ending"], event["basis"], event["left"]) == ("caller_left", "usage", True)
    assert front.running.parts.books.open_holds == 0


async def test_a_drain_waits_for_it_and_closes_its_connection(gateway, held):
    front, raw = held
    draining = asyncio.create_task(front.running.drain(20))
    await front.until(lambda: front.running.parts.state.draining)
    gateway.open_gate("head")
    reply = await raw.reply()
    assert (reply.status, reply.header("connection")) == (200, "close")
    assert await raw.closed()
    await draining


async def test_a_stream_that_begins_during_a_drain_closes_its_connection_behind_it(gateway):
    async with proxied(gateway.url) as front:
        sent = await known(front, chat(stream=True))
        gateway.set_fault("slow", times=1, gate="head")
        raw = await Raw.open(front.address)
        await raw.send(sent)
        await gateway.wait_for_gate("head")
        draining = asyncio.create_task(front.running.drain(20))
        await front.until(lambda: front.running.parts.state.draining)
        gateway.open_gate("head")
        reply = await raw.reply()
        assert (reply.status, reply.header("connection")) == (200, "close")
        assert reply.body.endswith(b"data: [DONE]\n\n")
        assert await raw.closed()
        await draining


async def test_the_head_of_a_stream_goes_out_at_once_and_without_a_request_of_the_librarys(gateway, monkeypatch):
    async with proxied(gateway.url) as front:
        sent = await known(front, chat(stream=True))
        begun = []
        monkeypatch.setattr(Again, "request", property(lambda _: begun.append(1)))
        gateway.set_fault("slow", times=1, gate="first", at=1)
        raw = await Raw.open(front.address)
        await raw.send(sent)
        head = await raw.reader.readuntil(b"\r\n\r\n")
        assert begun == []
        assert b"\r\nTransfer-Encoding: chunked\r\n" in head
        assert b"\r\nDate: " in head
        monkeypatch.undo()
        gateway.open_gate("first")
        assert (await raw.reader.readuntil(b"\r\n0\r\n\r\n")).count(b"[DONE]") == 1
        raw.close()


async def test_the_meter_of_a_stream_is_made_before_its_answer(gateway):
    async with proxied(gateway.url) as front:
        gateway.set_fault("slow", times=1, gate="head")
        asking = asyncio.create_task(exchange(front.address, chat(stream=True)))
        await gateway.wait_for_gate("head")
        ((made,),) = [front.running.parts.exchanges.open]
        ready = made._of_stream
        assert ready is not None
        gateway.open_gate("head")
        assert (await asking).status == 200
        assert made.meter is ready


USED = orjson.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }
)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(USED), USED)


async def test_who_asks_for_events_and_gets_a_whole_answer_pays_for_its_usage():
    async def answers(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    async with server, proxied(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as front:
        assert (await exchange(front.address, chat(stream=True))).status == 200
        assert (front.requests[-1]["ending"], front.requests[-1]["basis"]) == ("answered", "usage")


async def test_a_drain_that_takes_too_long_ends_it(gateway, held):
    front, _ = held
    await front.running.drain(0.1)
    assert front.running.parts.books.open_holds == 0
    assert not [one for one in front.running._listener.connections if one.transport is not None]
    gateway.open_gate("head")


async def test_a_connection_that_is_used_is_not_idle(front):
    sent = await known(front, chat())
    raw = await Raw.open(front.address)
    await raw.send(sent)
    await raw.reply()
    closes_s = connection_of(front, raw)._next_keepalive_close_time
    await raw.send(sent)
    await raw.reply()
    assert connection_of(front, raw)._next_keepalive_close_time > closes_s
    raw.close()


async def test_nothing_is_served_behind_a_request_that_closes_its_connection(gateway, front):
    sent = await known(front, chat())
    gateway.set_fault("slow", times=1, gate="head")
    raw = await Raw.open(front.address)
    await raw.send(chat("hi", "Connection: close"))
    await gateway.wait_for_gate("head")
    assert not connection_of(front, raw)._between, "also not in the instant between its answer and the closing"
    await raw.send(sent)
    gateway.open_gate("head")
    assert (await raw.reply()).status == 200
    assert await raw.closed()
    assert len(front.requests) == 2


# --- one request close behind another ---


def on_uvloop(story, **settings):
    """A story told on the loop that the proxy runs on, whose turns are not those of the tests' own."""

    async def told_there():
        async with emulated(Options(limits=False)) as gateway, proxied(gateway.url, **settings) as front:
            await story(front, gateway)

    uvloop.run(told_there())


async def close_behind(front, turns, first, second):
    """Two requests on one connection, a piece each, the second so many turns of the loop behind the first."""
    raw = await Raw.open(front.address)
    await front.until(lambda: connection_of(front, raw)._waiter is not None)
    raw.writer.write(first)
    for _ in range(turns):
        await asyncio.sleep(0)
    raw.writer.write(second)
    return raw


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("behind", ["known", "kept answer", "new"])
def test_a_request_that_comes_while_another_is_taken_up_waits_for_its_turn(behind, turns):
    async def story(front, gateway):
        health, models = request("GET", "/-/health"), request("GET", "/v1/models")
        for sent in (health, models):
            for _ in range(2):
                assert (await exchange(front.address, sent)).status == 200
        first = chat()
        second = {"known": health, "kept answer": models, "new": request("GET", "/v1/credits")}[behind]
        raw = await close_behind(front, turns, first, second)
        here, there = await raw.reply(), await raw.reply()
        raw.close()
        assert b"choices" in here.body
        assert b"choices" not in there.body
        called = [one.body for one in gateway.journal if "completions" in one.target]
        assert called == [first.partition(b"\r\n\r\n")[2]]

    on_uvloop(story)


def test_a_connection_goes_on_taking_the_short_way_behind_a_request_that_came_too_early_for_it():
    async def story(front, gateway):
        sent = await known(front, chat())
        raw = await Raw.open(front.address)
        await front.until(lambda: connection_of(front, raw)._waiter is not None)
        connection = connection_of(front, raw)
        gate, socket_of_caller = connection._request_handler, raw.writer.get_extra_info("socket").fileno()

        async def answered_while_the_next_one_comes(request):
            connection._request_handler = gate
            response = await gate(request)
            # It is read before the library's loop over requests has heard that this one is done.
            os.write(socket_of_caller, sent)
            return response

        connection._request_handler = answered_while_the_next_one_comes
        await raw.send(chat("hi", "X-New: 1"))
        assert [(await raw.reply()).status for _ in range(2)] == [200, 200]
        assert connection._request_count == 2, "both were the library's"
        await raw.send(sent)
        assert (await raw.reply()).status == 200
        assert connection._request_count == 2
        assert len(gateway.journal) == 4
        raw.close()

    on_uvloop(story)


async def test_the_first_request_of_a_connection_takes_the_short_way_before_the_library_looks_for_it(front):
    sent = await known(front, chat())
    raw = await Raw.open(front.address)
    connection = connection_of(front, raw)
    looks, connection._waiter = connection._waiter, None
    await raw.send(sent)
    assert (await raw.reply()).status == 200
    assert connection._request_count == 0
    connection._waiter = looks
    await raw.send(chat("hi", "X-New: 1"))
    assert (await raw.reply()).status == 200
    assert connection._request_count == 1
    raw.close()


@pytest.mark.parametrize("cut", [1, 3, 40, 150])
async def test_the_end_of_a_head_is_not_remembered_as_one(front, cut):
    sent = chat()
    raw = await Raw.open(front.address)
    await raw.send(sent[:cut])
    await front.until(lambda: connection_of(front, raw)._between is False)
    await raw.send(sent[cut:])
    assert (await raw.reply()).status == 200
    assert not front.running.parts.heads._by_bytes
    raw.close()


async def test_the_beginning_of_a_request_behind_one_that_waits_is_not_one(front, gateway):
    gateway.set_fault("slow", times=1, gate="head")
    raw = await Raw.open(front.address)
    await raw.send(request("GET", "/v1/models"))
    await gateway.wait_for_gate("head")
    await raw.send(request("GET", "/-/health"))
    await front.until(lambda: connection_of(front, raw)._messages)
    await raw.send(b"GET")
    await front.until(lambda: not connection_of(front, raw)._between)
    gateway.open_gate("head")
    assert [(await raw.reply()).status for _ in range(2)] == [200, 200]
    raw.close()


@pytest.mark.parametrize("turns", range(6))
def test_no_head_is_remembered_as_what_another_came_to(turns):
    async def story(front, _gateway):
        unknown = chat("hi", "Authorization: Bearer sk-unknown")
        foreign = request("GET", "/-/health", "Origin: https://evil.example", host="evil.example")
        for number, (other, status) in enumerate(((unknown, 401), (foreign, 403))):
            raw = await close_behind(front, turns, request("GET", "/-/health", f"X-New: {number}"), other)
            assert [(await raw.reply()).status for _ in range(2)] == [200, status]
            raw.close()
            assert [(await exchange(front.address, other)).status for _ in range(2)] == [status] * 2

    on_uvloop(story, auth="keys")


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("closing", ["HTTP/1.0", "close"])
def test_nothing_is_begun_behind_an_answer_that_closes(closing, turns):
    async def story(front, gateway):
        sent = await known(front, chat())
        calls = len(gateway.journal)
        last = request("GET", "/-/health", *(["Connection: close"] if closing == "close" else []))
        last = last.replace(b"HTTP/1.1", b"HTTP/1.0") if closing == "HTTP/1.0" else last
        raw = await close_behind(front, turns, last, sent)
        assert (await raw.reply()).status == 200
        # What was sent behind it may make the system reset the connection.
        await raw.closed()
        assert len(gateway.journal) == calls

    on_uvloop(story)


def test_bytes_are_those_of_the_request_that_is_asked_about():
    async def story(front, _gateway):
        sent = chat()
        taken = []
        gate = front.running._listener.request_handler
        raw = await Raw.open(front.address)
        await front.until(lambda: connection_of(front, raw)._waiter is not None)
        connection = connection_of(front, raw)

        async def looked_at(request):
            connection._whole = (object(), b"another's")
            taken.append(connection.take_whole(request))
            return await gate(request)

        connection._request_handler = looked_at
        await raw.send(sent)
        assert (await raw.reply()).status == 200
        raw.close()
        assert taken == [None]

    on_uvloop(story)


async def test_an_answer_that_says_so_closes_the_connection(front):
    sent = await known(front, chat())
    raw = await Raw.open(front.address)
    front.running.parts.state.draining = True
    await raw.send(sent)
    refused = await raw.reply()
    assert (refused.status, refused.header("connection")) == (503, "close")
    async with asyncio.timeout(20):
        assert await raw.closed()
    front.running.parts.state.draining = False


async def test_an_answer_that_is_not_read_is_not_done(gateway):
    async with proxied(gateway.url) as front:
        sent = await known(front, chat())
        gateway.set_fault("big", mb=1)
        lazy = socket.socket()
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(lazy, front.address)
        await loop.sock_sendall(lazy, sent)
        await front.until(lambda: len(front.requests) == 2)
        (connection,) = [one for one in front.running._listener.connections if one.transport is not None]
        assert connection._paused
        assert connection._serving is not None
        lazy.close()


async def test_a_caller_that_does_not_read_is_dropped(gateway):
    async with proxied(gateway.url, write_timeout="0.3s") as front:
        sent = await known(front, chat())
        gateway.set_fault("big", mb=8)
        lazy = await Raw.open(front.address)
        lazy.writer.transport.pause_reading()
        await lazy.send(sent)
        await front.until(lambda: len(front.requests) == 2)
        await front.until(lambda: not front.running._listener.peers)
        lazy.close()
