"""Whole answers to callers that are not of the usual kind."""

import asyncio

import pytest

from proxy.server.whole import Whole, head_of
from tests.proxies import proxied


@pytest.mark.parametrize(
    ("asked", "begins", "has_body"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 ", True),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 ", True),
        (b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 ", False),
    ],
    ids=["an older version", "one that closes", "a head alone"],
)
async def test_an_answer_is_of_the_callers_version_and_has_a_body_only_where_one_may_be(
    gateway, asked, begins, has_body
):
    async with proxied(gateway.url) as front:
        reader, writer = await asyncio.open_connection(*front.address)
        writer.write(asked)
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
    assert answer.startswith(begins)
    assert bool(answer.partition(b"\r\n\r\n")[2]) is has_body


@pytest.mark.parametrize("status", [204, 304])
def test_what_has_no_body_is_left_to_the_library(status):
    assert Whole(status, b"", {"Server": "sluicegate"}).said() is None
    assert Whole(200, b"{}", {}).said().endswith(b"Content-Length: 2\r\n\r\n{}")


def test_a_header_line_that_would_begin_another_is_not_sent():
    assert head_of(200, {"Server": "sluicegate"}, 2) == (
        b"HTTP/1.1 200 OK\r\nServer: sluicegate\r\nContent-Length: 2\r\n\r\n"
    )
    assert head_of(299, {}, 0, closes=True) == b"HTTP/1.1 299 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    for broken in ({"x-model": "a\rb"}, {"x-model": "a\nb"}, {"x-model": "a\r\nb"}, {"x-\nmodel": "a"}):
        with pytest.raises(ValueError, match="line break"):
            head_of(200, broken, 0)


def test_an_answer_tells_what_it_holds():
    answer = Whole(200, b"{}", {"x-model": "a"})
    assert (answer.status, answer.body, answer.headers["X-Model"]) == (200, b"{}", "a")
    assert repr(answer) == "<whole answer: 200>"
