"""The gateway as our sending code sees it, against a gateway that says exactly what a test makes it say."""

import asyncio
import contextlib
import gzip
from contextlib import asynccontextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.server.upstream import Broke, NeverSent, Outgoing, TimedOut, Upstream, headers_of

OUT = Outgoing("POST", "/chat", headers_of({"x-a": "b"}), b"{}", "id-1")
STREAM = OUT._replace(headers=headers_of({"accept": "text/event-stream"}))
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\nx-credits: 5\r\n\r\n" + b'{"a":1}'
HELD = object()
"""The gateway waits here until the test lets it go on."""


class Said:
    """A gateway that answers each request with the next of some pieces, and knows its connections."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.connections, self.open, self.asked = 0, 0, 0
        self.on = asyncio.Event()
        self.changed = asyncio.Condition()
        self.over = asyncio.Event()
        self.tasks, self.writers = [], []

    async def serve(self, reader, writer):
        self.tasks.append(asyncio.current_task())
        self.writers.append(writer)
        await self._count(connections=1, open=1)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                await reader.readexactly(length)
                await self._count(asked=1)
                for piece in self.answers.pop(0):
                    if piece is HELD:
                        await self._held()
                    elif piece is None:
                        return
                    else:
                        writer.write(piece)
                        await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            await self._count(open=-1)

    async def _held(self):
        waits = [asyncio.create_task(event.wait()) for event in (self.on, self.over)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()
        self.on.clear()

    async def _count(self, **more):
        async with self.changed:
            for name, number in more.items():
                setattr(self, name, getattr(self, name) + number)
            self.changed.notify_all()

    async def until(self, holds):
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(holds)


@asynccontextmanager
async def gateway(*answers, read_s=60.0, keepalive_s=60.0):
    said = Said(answers)
    server = await asyncio.start_server(said.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    upstream = Upstream(f"http://127.0.0.1:{port}/v1", connect_s=60.0, read_s=read_s, keepalive_s=keepalive_s)
    try:
        yield said, upstream
    finally:
        await upstream.close()
        said.over.set()
        for writer in said.writers:
            writer.transport.abort()
        await asyncio.gather(*said.tasks)
        server.close()
        await server.wait_closed()


async def whole(answer):
    body = b""
    while piece := await answer.read():
        body += piece
    return body


async def told(upstream, out=OUT):
    """What an answer comes to; or the fault that came in its place."""
    try:
        answer = await upstream.send(out)
    except (Broke, TimedOut) as fault:
        return type(fault)
    try:
        body = await whole(answer)
    except (Broke, TimedOut) as fault:
        return type(fault)
    finally:
        answer.close()
    lines = [(name.lower(), value) for name, value in answer.headers]
    return answer.status, lines, answer.content_type, answer.is_stream, answer.content_length, body


async def sees(holds):
    """Wait for what happens on our side of a connection without anybody telling."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0)


ANSWERS = [
    PLAIN,
    PLAIN.replace(b"200 OK", b"404 "),
    PLAIN.replace(b"application/json", b"text/event-stream; charset=utf-8"),
    PLAIN.replace(b"x-credits: 5", b"X-Odd:  \xff\t\xc3\xa9  \r\nx-odd:"),
    PLAIN.replace(b"Content-Length: 7", b"Connection: keep-alive\r\ncontent-length:7"),
    PLAIN.replace(b"Content-Length: 7", b"Content-Length: 007"),
    PLAIN.replace(b"Content-Type: application/json\r\n", b""),
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"0123456789", mtime=0),
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabcd",
    b"HTTP/1.1 200 OK\r\nbad name: x\r\nContent-Length: 3\r\n\r\nabc",
    b"nonsense\r\n\r\n",
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ANSWERS), st.integers(1, 400))
@example(ANSWERS[9], 1)
def test_an_answer_says_the_same_in_one_piece_and_in_two(data, cut):
    async def both():
        # The second piece is sent once the first one was read: the gateway waits until it is let go on.
        async with gateway([data, None], [data[:cut], HELD, data[cut:], None]) as (said, upstream):
            at_once = await told(upstream)
            second = asyncio.create_task(told(upstream))
            await said.until(lambda: said.asked == 2)
            said.on.set()
            return at_once, await second

    at_once, in_two = asyncio.run(both())
    assert at_once == in_two


@pytest.mark.parametrize("data", ANSWERS)
async def test_an_answer_says_the_same_whether_events_were_asked_for_or_not(data):
    said = []
    for out in (OUT, STREAM):
        async with gateway([data, None]) as (_, upstream):
            said.append(await told(upstream, out))
    assert said[0] == said[1]


async def test_the_parser_is_there_before_the_answer_to_whom_asks_for_events():
    async with gateway([HELD, PLAIN]) as (said, upstream):
        line = await upstream._lines.opened()
        upstream._lines.give_back(line)
        sending = asyncio.create_task(told(upstream, STREAM))
        await said.until(lambda: said.asked == 1)
        assert line._parser is not None
        said.on.set()
        assert (await sending)[0] == 200


async def test_a_connection_is_used_again_and_again():
    async with gateway(*[[PLAIN]] * 5) as (said, upstream):
        for _ in range(5):
            assert (await told(upstream))[0] == 200
        assert (said.asked, said.connections) == (5, 1)


async def test_nobody_waits_for_a_connection_at_rest_and_nothing_is_left_of_a_closed_one():
    async with gateway([PLAIN]) as (_, upstream):
        await told(upstream)
        ((line, _),) = upstream._lines._resting
        assert (line.patience._end, line.patience.since_s) == (None, None)
        await upstream.close()
        await sees(lambda: line.transport is None)
        assert line.patience._timer is None


async def test_calls_at_once_have_a_connection_each_and_leave_them_to_others():
    async with gateway(*[[HELD, PLAIN]] * 2, *[[PLAIN]] * 2) as (said, upstream):
        calls = [asyncio.create_task(told(upstream)) for _ in range(2)]
        await said.until(lambda: said.asked == 2)
        said.on.set()
        assert [(await call)[0] for call in calls] == [200, 200]
        for _ in range(2):
            assert (await told(upstream))[0] == 200
        assert said.connections == 2


@pytest.mark.parametrize(
    "first",
    [
        [PLAIN.replace(b"x-credits: 5", b"Connection: close")],
        [PLAIN + b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnot"],
        [PLAIN, None],
        [b"HTTP/1.1 200 OK\r\n\r\nuntil the end", None],
    ],
    ids=["it says so", "more came than was asked for", "it was closed", "its end is the answer's"],
)
async def test_a_connection_that_cannot_be_used_again_is_not(first):
    async with gateway(first, [PLAIN]) as (said, upstream):
        await told(upstream)
        if None not in first:
            assert not upstream._lines._resting, "it was closed as soon as that was known"
        else:
            await sees(lambda: not any(line.usable for line, _ in upstream._lines._resting))
        body = (await told(upstream))[-1]
        assert (body, said.connections) == (b'{"a":1}', 2)


async def test_what_comes_unasked_between_two_calls_answers_nobody():
    async with gateway([PLAIN, HELD, PLAIN.replace(b"1", b"2"), HELD], [PLAIN]) as (said, upstream):
        first = await told(upstream)
        ((line, _),) = upstream._lines._resting
        assert line.usable
        said.on.set()
        await sees(lambda: not line.usable)
        assert first[-1] == (await told(upstream))[-1] == b'{"a":1}'
        assert said.connections == 2
        said.on.set()


async def test_a_connection_that_rests_too_long_is_closed():
    async with gateway([PLAIN], [PLAIN], keepalive_s=0.01) as (said, upstream):
        await told(upstream)
        await said.until(lambda: said.connections == 1 and not said.open)
        await told(upstream)
        assert said.connections == 2


async def test_a_connection_that_rested_too_long_is_not_used_although_nobody_came_to_close_it():
    async with gateway([PLAIN], [PLAIN]) as (said, upstream):
        await told(upstream)
        ((line, since_s),) = upstream._lines._resting
        upstream._lines._resting[0] = line, since_s - 60.0
        await told(upstream)
        assert said.connections == 2


async def test_reading_what_is_left_of_an_answer_does_not_disturb_the_call_that_has_its_connection():
    big = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + b"x" * 60_000
    async with gateway([big[:100], HELD, big[100:]], [HELD], read_s=0.3) as (said, upstream):
        first = await upstream.send(OUT)
        said.on.set()
        # All of it is here, and none of it was read.
        await sees(lambda: upstream._lines._resting)
        second = asyncio.create_task(told(upstream))
        await said.until(lambda: said.asked == 2)
        assert len(await whole(first)) == 60_000
        assert await second is TimedOut, "the silence of its own answer was noticed"
        assert said.connections == 1
        said.on.set()


async def test_a_gateway_that_falls_silent_is_left_before_and_within_an_answer():
    async with gateway([HELD], [PLAIN[:-3], HELD], read_s=0.05) as (said, upstream):
        assert [await told(upstream), await told(upstream)] == [TimedOut, TimedOut]
        said.on.set()


@pytest.mark.parametrize("said_first", [[None], [PLAIN[:30], None], [PLAIN[:-2], None]])
async def test_a_connection_that_breaks_is_a_broken_answer(said_first):
    async with gateway(said_first) as (_, upstream):
        assert await told(upstream) is Broke


async def test_a_large_body_that_is_refused_before_it_was_sent_is_answered_and_its_connection_left():
    refused = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"

    left = asyncio.Event()

    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refused)
        await writer.drain()
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass
        writer.close()
        left.set()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    upstream = Upstream(f"http://127.0.0.1:{port}", connect_s=60.0, read_s=60.0, keepalive_s=60.0)
    try:
        answer = await upstream.send(OUT._replace(body=b"x" * 20_000_000))
        assert (answer.status, await whole(answer)) == (413, b"big")
        await left.wait()
    finally:
        await upstream.close()
        server.close()
        await server.wait_closed()


async def test_a_large_body_is_handed_over_as_fast_as_it_is_taken():
    going_on, left = asyncio.Event(), asyncio.Event()

    async def take_nothing(_reader, writer):
        await going_on.wait()
        writer.transport.abort()
        left.set()

    server = await asyncio.start_server(take_nothing, "127.0.0.1", 0, limit=1024)
    port = server.sockets[0].getsockname()[1]
    upstream = Upstream(f"http://127.0.0.1:{port}", connect_s=60.0, read_s=60.0, keepalive_s=60.0)
    sending = asyncio.create_task(upstream.send(OUT._replace(body=b"x" * 25_000_000)))
    try:
        lines = upstream._lines._connector._acquired
        await sees(lambda: any(line.transport.get_write_buffer_size() for line in lines if line.transport))
        ((line,),) = [lines]
        assert line.transport.get_write_buffer_size() < 5_000_000
        going_on.set()
        with pytest.raises(Broke):
            await sending
    finally:
        going_on.set()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await upstream.close()
        await left.wait()
        server.close()
        await server.wait_closed()


async def test_a_gateway_that_takes_no_more_of_a_large_body_is_left():
    left = asyncio.Event()

    async def take_nothing(_reader, writer):
        await left.wait()
        writer.transport.abort()

    server = await asyncio.start_server(take_nothing, "127.0.0.1", 0, limit=1024)
    port = server.sockets[0].getsockname()[1]
    upstream = Upstream(f"http://127.0.0.1:{port}", connect_s=60.0, read_s=0.05, keepalive_s=60.0)
    try:
        with pytest.raises(TimedOut):
            async with asyncio.timeout(60):
                await upstream.send(OUT._replace(body=b"x" * 25_000_000))
    finally:
        left.set()
        await upstream.close()
        server.close()
        await server.wait_closed()


async def test_each_piece_of_a_body_that_is_taken_begins_the_wait_anew_until_an_answer_begins():
    async with gateway([HELD]) as (said, upstream):
        line = await upstream._lines.opened()
        line.ask(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n")
        for since_s in (1.0, None):
            line.patience.since_s = since_s
            await line.say(b"x")
            assert (line.patience.since_s or 0.0) > 1.0 if since_s else line.patience.since_s is None
        line.connection.close()
        await said.until(lambda: said.open == 0)


async def test_a_connection_is_used_again_after_an_answer_that_was_read_piece_by_piece():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    stream = [head, HELD, b"2\r\n{}\r\n", HELD, b"2\r\n[]\r\n0\r\n\r\n"]
    async with gateway(stream, stream, [PLAIN]) as (said, upstream):
        for _ in range(2):
            answer = await upstream.send(OUT)
            pieces = []
            while not pieces or pieces[-1]:
                said.on.set()
                pieces.append(await answer.read())
            assert b"".join(pieces) == b"{}[]"
        assert (await told(upstream))[-1] == b'{"a":1}'
        assert said.connections == 1


async def test_bytes_on_a_connection_at_rest_close_it_whatever_the_parser_of_the_answer_before_makes_of_them():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    for junk in (b"H", b"HTTP/1.1 200 OK\r\nContent", PLAIN):
        async with gateway([chunked, HELD, junk, HELD], [PLAIN]) as (said, upstream):
            assert (await told(upstream))[-1] == b"{}"
            ((line, _),) = upstream._lines._resting
            said.on.set()
            await sees(lambda line=line: not line.usable)
            assert (await told(upstream))[-1] == b'{"a":1}'
            assert said.connections == 2
            said.on.set()


async def test_nobody_there_is_never_sent():
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    upstream = Upstream(f"http://127.0.0.1:{port}", connect_s=60.0, read_s=60.0, keepalive_s=60.0)
    with pytest.raises(NeverSent):
        await upstream.send(OUT)
    await upstream.close()


@pytest.mark.parametrize("value", ["b\r\nhost: else", "b\rc", "b\nc", "b\0c"])
async def test_nothing_is_sent_with_a_header_line_that_would_be_two_requests(value):
    async with gateway() as (said, upstream):
        for out in (OUT._replace(headers=headers_of({"x-a": value})), OUT._replace(target=f"/chat?{value}")):
            with pytest.raises(NeverSent):
                await upstream.send(out)
        assert said.asked == 0
