"""The border towards callers, on raw sockets: what is refused, what is bounded, and that nothing of it goes upstream."""

import asyncio
import io

import orjson
import pytest

from proxy.core.policy import KeyRef, Policy, Team
from tests.proxies import CHAT, proxied
from tests.raw import Raw, exchange, request

BODY = orjson.dumps(CHAT)
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
LIMIT = 26_214_400


def framed(*lines: str, body: bytes = BODY) -> bytes:
    return (HEAD + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode("latin-1") + body


LENGTH = f"Content-Length: {len(BODY)}"
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)

# fmt: off
MALFORMED = {
    "length and chunked":        framed(LENGTH, "Transfer-Encoding: chunked", body=CHUNKED),
    "two lengths":               framed(LENGTH, LENGTH),
    "two different lengths":     framed(LENGTH, "Content-Length: 3"),
    "signed length":             framed(f"Content-Length: +{len(BODY)}"),
    "list of lengths":           framed(f"Content-Length: {len(BODY)},{len(BODY)}"),
    "gzip, chunked":             framed("Transfer-Encoding: gzip, chunked", body=CHUNKED),
    "xchunked":                  framed("Transfer-Encoding: xchunked", body=CHUNKED),
    "chunked twice":             framed("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=CHUNKED),
    "chunked on 1.0":            framed("Transfer-Encoding: chunked", body=CHUNKED).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "HTTP/0.9":                  framed(LENGTH).replace(b"HTTP/1.1", b"HTTP/0.9"),
    "HTTP/2.0":                  framed(LENGTH).replace(b"HTTP/1.1", b"HTTP/2.0"),
    "folded line":               framed(LENGTH, "X-A: a\r\n b"),
    "space before colon":        framed(LENGTH, "X-A : a"),
    "bare line feed":            framed(LENGTH).replace(b"Host: localhost\r\n", b"Host: localhost\n"),
    "no Host":                   framed(LENGTH).replace(b"Host: localhost\r\n", b""),
    "two Hosts":                 framed(LENGTH, "Host: localhost"),
    "Host with a path":          framed(LENGTH).replace(b"localhost", b"localhost:4000/#@evil"),
    "two Authorizations":        framed(LENGTH, "Authorization: Bearer a", "Authorization: Bearer b"),
    "two different keys":        framed(LENGTH, "Authorization: Bearer a", "x-api-key: b"),
    "absolute target":           framed(LENGTH).replace(b"POST /v1", b"POST http://evil/v1"),
    "authority target":          framed(LENGTH).replace(b"POST /v1", b"POST //evil/v1"),
    "fragment":                  framed(LENGTH).replace(b"completions", b"completions#x"),
    "dot segment":               framed(LENGTH).replace(b"/v1/", b"/v1/../v1/"),
    "encoded dot segment":       framed(LENGTH).replace(b"/v1/", b"/v1/%2e%2E/v1/"),
    "backslash":                 framed(LENGTH).replace(b"/v1/", b"/v1\\"),
    "NUL escape":                framed(LENGTH).replace(b"completions", b"completions%00"),
    "bad escape":                framed(LENGTH).replace(b"completions", b"completions%zz"),
    "raw UTF-8 target":          framed(LENGTH).replace(b"completions", "완료".encode()),
    "NUL in a value":            framed(LENGTH, "X-A: a\x00b"),
    "control byte in a value":   framed(LENGTH, "X-A: a\x01b"),
    "CONNECT":                   b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TRACE":                     b"TRACE /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "unknown method":            b"BREW /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "h2c upgrade":               framed(LENGTH, "Connection: Upgrade", "Upgrade: h2c"),
    "odd Expect":                framed(LENGTH, "Expect: 200-ok"),
    "compressed body":           framed(LENGTH, "Content-Encoding: gzip"),
    "line feed in chunk size":   framed("Transfer-Encoding: chunked", body=b"%x;a\nb\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"),
    "not HTTP":                  b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n",
    "body shorter than chunks":  framed("Transfer-Encoding: chunked", body=b"zz\r\n"),
    "duplicate names":           framed("Content-Length: 29", body=b'{"model":"a","m":1,"model":1}'),
    "not an object":             framed("Content-Length: 2", body=b"[]"),
    "not JSON":                  framed("Content-Length: 2", body=b"{]"),
    "NaN":                       framed("Content-Length: 21", body=b'{"temperature":  NaN}'),
    "byte-order mark":           framed(f"Content-Length: {len(BODY) + 3}", body=b"\xef\xbb\xbf" + BODY),
    "lone surrogate":            framed("Content-Length: 18", body=b'{"model":"\\ud800"}'),
    "130 header lines":          framed(LENGTH, *(f"X-{n}: a" for n in range(130))),
    "huge header line":          framed(LENGTH, "X-A: " + "a" * 200_000),
}
# fmt: on


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_malformed_request_is_refused_and_nothing_goes_upstream(front, gateway, name):
    reply = await exchange(front.address, MALFORMED[name])
    assert reply.status in (400, 431), reply
    assert reply.error["reason"] in ("bad_request", "ambiguous_key", "headers_too_large")
    assert reply.header("x-sluicegate-error") == reply.error["reason"]
    assert len(gateway.journal) == 0
    assert front.entries == []


@pytest.mark.parametrize(("size", "status"), [(200, 200), (201, 413)])
async def test_a_body_that_comes_in_one_piece_with_its_head_is_bounded_as_any_other(gateway, size, status):
    async with proxied(gateway.url, max_body=200) as front:
        reply = await exchange(front.address, framed(f"Content-Length: {size}", body=BODY.ljust(size)))
    assert reply.status == status, reply
    assert len(gateway.journal) == (status == 200)


@pytest.mark.parametrize(("size", "status"), [(200, 200), (201, 413)])
async def test_a_body_in_one_chunk_that_comes_with_its_head_is_bounded_as_any_other(gateway, size, status):
    chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (size, BODY.ljust(size))
    async with proxied(gateway.url, max_body=200) as front:
        reply = await exchange(front.address, framed("Transfer-Encoding: chunked", body=chunk))
    assert reply.status == status, reply
    assert len(gateway.journal) == (status == 200)


async def test_a_refusal_repeats_nothing_of_a_secret(front):
    for line in ("Authorization: Bearer top-secret\x01", "x-api-key: top-secret\x00"):
        reply = await exchange(front.address, framed(LENGTH, line))
        assert reply.status == 400
        assert b"top-secret" not in reply.body
    assert "top-secret" not in str(front.events)


async def test_a_second_request_behind_a_refused_body_is_not_served(front, gateway):
    """What is left of a refused request must never be read as the next one."""
    raw = await Raw.open(front.address)
    hidden = request("GET", "/v1/models")
    await raw.send(request("POST", "/v1/nowhere", f"Content-Length: {len(hidden) + 10}") + hidden)
    assert (await raw.reply()).status == 404
    await raw.send(b"x" * 10)
    assert await raw.closed()
    assert len(gateway.journal) == 0
    raw.close()


def padded(size: int) -> bytes:
    """A valid body of exactly so many bytes."""
    head, tail = b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"', b'"}]}'
    return head + b"a" * (size - len(head) - len(tail)) + tail


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413)])
async def test_the_body_limit_is_exact_and_nothing_above_it_goes_upstream(front, gateway, chunked, size, status):
    body = padded(size)

    async def pieces():
        for start in range(0, len(body), 1 << 20):
            yield body[start : start + (1 << 20)]

    reply = await front.call(
        "POST",
        "/v1/chat/completions",
        data=pieces() if chunked else io.BytesIO(body),
        headers={"Content-Type": "application/json"},
    )
    assert reply.status == status
    if status == 413:
        assert reply.error["message"] == "Request body too large. Maximum size is 25MB."
        assert len(gateway.journal) == 0
    else:
        assert gateway.journal[0].body_bytes == LIMIT


async def test_a_length_above_the_limit_is_refused_before_the_body_is_asked_for(front):
    reply = await exchange(
        front.address,
        request("POST", "/v1/chat/completions", f"Content-Length: {LIMIT + 1}", "Expect: 100-continue"),
    )
    assert reply.status == 413


async def test_a_caller_that_waits_to_be_asked_is_asked_for_its_body(front):
    raw = await Raw.open(front.address)
    await raw.send(framed(LENGTH, "Expect: 100-continue", body=b""))
    assert (await raw.reply()).status == 100
    await raw.send(BODY)
    assert (await raw.reply()).status == 200
    raw.close()


async def test_without_a_key_a_caller_is_not_asked_for_its_body(gateway):
    async with proxied(gateway.url, auth="keys") as front:
        reply = await exchange(front.address, framed(LENGTH, "Expect: 100-continue", body=b""))
        assert (reply.status, reply.error["reason"]) == (401, "missing_key")


@pytest.mark.parametrize(
    ("sent", "flag"),
    [
        (b"", "head_timeout"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc", "head_timeout"),
    ],
)
async def test_a_silent_connection_and_half_a_head_are_closed(gateway, sent, flag):
    async with proxied(gateway.url, **{flag: "0.2s"}) as front:
        raw = await Raw.open(front.address)
        await raw.send(sent)
        assert await raw.closed()


async def test_a_head_that_trickles_in_is_closed(gateway):
    async with proxied(gateway.url, head_timeout="0.3s") as front:
        raw = await Raw.open(front.address)
        closed = asyncio.create_task(raw.closed())
        for byte in HEAD.encode() * 100:
            if closed.done() or raw.writer.is_closing():
                break
            raw.writer.write(bytes([byte]))
            await asyncio.wait([closed], timeout=0.02)
        assert await closed


async def test_half_a_head_on_a_used_connection_is_closed(gateway):
    # Nothing else would close it for as long as anybody waits.
    async with proxied(gateway.url, head_timeout="2s", keepalive_timeout="10m") as front:
        raw = await Raw.open(front.address)
        await raw.send(request("GET", "/"))
        assert (await raw.reply()).status == 200
        await raw.send(b"GET / HT")
        assert await asyncio.wait_for(raw.closed(), 60)


@pytest.mark.parametrize("flags", [{"body_idle_timeout": "0.2s"}, {"body_timeout": "0.2s"}])
async def test_half_a_body_is_answered_408_and_closed(gateway, flags):
    async with proxied(gateway.url, **flags) as front:
        raw = await Raw.open(front.address)
        await raw.send(framed(LENGTH, body=BODY[:10]))
        reply = await raw.reply()
        assert (reply.status, reply.error["reason"]) == (408, "request_timeout")
        assert reply.header("connection") == "close"
        assert len(gateway.journal) == 0
        raw.close()


async def test_a_caller_that_does_not_read_is_dropped_and_its_answer_is_read_on(gateway):
    gateway.set_fault("big", mb=8)
    async with proxied(gateway.url, write_timeout="0.3s") as front:
        raw = await Raw.open(front.address)
        raw.writer.transport.pause_reading()
        await raw.send(framed(LENGTH))
        event = await front.request()
        assert event["ending"] in ("caller_left", "answered")
        await gateway.wait_for(lambda journal: journal[0].finished)
        await front.until(lambda: front.running.parts.books.open_holds == 0)
        raw.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:8787", 200),
        ("[::1]:1", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("app.internal", 200),
        ("10.0.0.7", 403),
    ],
)
async def test_only_hosts_of_ours_are_served(gateway, host, status):
    async with proxied(gateway.url, allowed_hosts=["app.internal"]) as front:
        reply = await exchange(front.address, request("GET", "/v1/models", host=host))
        assert reply.status == status
        if status == 403:
            assert reply.error["reason"] == "host_refused"
            assert "--allowed-host" in reply.error["message"]
            assert len(gateway.journal) == 0


@pytest.mark.parametrize(
    ("origin", "status", "allowed"),
    [
        (None, 200, None),
        ("http://localhost:3000", 200, None),
        ("https://app.example", 200, "https://app.example"),
        ("https://evil.example", 403, None),
        ("null", 403, None),
    ],
)
async def test_only_pages_of_ours_may_call_and_only_named_ones_get_cors_lines(gateway, origin, status, allowed):
    async with proxied(gateway.url, cors_origins=["https://app.example"]) as front:
        lines = [f"Origin: {origin}"] if origin else []
        reply = await exchange(front.address, request("GET", "/v1/models", *lines))
        assert reply.status == status
        assert reply.header("access-control-allow-origin") == allowed
        preflight = await exchange(front.address, request("OPTIONS", "/v1/models", *lines))
        assert preflight.status == (204 if status == 200 else 403)
        assert preflight.header("access-control-allow-origin") == allowed


async def test_a_proxy_that_points_at_itself_refuses_the_loop(gateway):
    async with proxied(gateway.url) as front:
        via = f"Via: 1.1 other, 1.1 {front.running.parts.instance}"
        reply = await exchange(front.address, request("GET", "/v1/models", via))
        assert (reply.status, reply.error["reason"]) == (508, "loop")
        assert len(gateway.journal) == 0


async def test_more_connections_than_allowed_are_closed_at_once(gateway):
    async with proxied(gateway.url, max_connections=3) as front:
        held = [await Raw.open(front.address) for _ in range(3)]
        await front.until(lambda: front.running._listener.peers.total() == 3)
        extra = await Raw.open(front.address)
        assert await extra.closed()
        held.pop().close()
        await front.until(lambda: front.running._listener.peers.total() == 2)
        assert (await exchange(front.address, request("GET", "/"))).status == 200
        for raw in held:
            raw.close()


async def test_pipelined_requests_are_answered_in_order(front):
    raw = await Raw.open(front.address)
    await raw.send(request("GET", "/v1/models") + request("GET", "/v1/nowhere") + request("GET", "/-/health"))
    assert [(await raw.reply()).status for _ in range(3)] == [200, 404, 200]
    raw.close()


LAST = {
    "no body":           request("GET", "/v1/models", "Connection: close"),
    "a body":            request("POST", "/v1/chat/completions", "Connection: Close", body=BODY),
    "chunks":            request("POST", "/v1/chat/completions", "connection:close", "Transfer-Encoding: chunked") + CHUNKED,
    "an older version":  request("POST", "/v1/chat/completions", body=BODY).replace(b"HTTP/1.1", b"HTTP/1.0"),
}  # fmt: skip


@pytest.mark.parametrize("behind", [b"x", request("GET", "/v1/models"), b"\x00" * 100_000, b"\r\nGET / HTTP/1.1\r\n"],
                         ids=["a byte", "a request", "much", "half a head"])  # fmt: skip
@pytest.mark.parametrize("last", LAST)
async def test_what_comes_behind_a_callers_last_request_is_passed_over(front, gateway, last, behind):
    raw = await Raw.open(front.address)
    await raw.send(LAST[last] + behind)
    reply = await raw.reply()
    assert reply.status == 200, reply
    assert reply.head.startswith("HTTP/1.0" if last == "an older version" else "HTTP/1.1")
    assert await raw.closed()
    assert len(gateway.journal) == 1


async def test_a_preflight_keeps_its_connection(front):
    raw = await Raw.open(front.address)
    for _ in range(2):
        await raw.send(request("OPTIONS", "/v1/chat/completions"))
        reply = await raw.reply()
        assert (reply.status, reply.header("connection"), reply.header("content-length")) == (204, None, None)
    await raw.send(request("OPTIONS", "/v1/chat/completions", "Content-Length: 5"))
    assert (await raw.reply()).header("connection") == "close", "what is left of its body is no next request"
    raw.close()


async def test_a_caller_that_closes_its_side_has_left(front, gateway):
    """Nobody can tell it from one that is gone for good, for which nothing shall be spent."""
    gateway.set_fault("slow", gate="head")
    raw = await Raw.open(front.address)
    await raw.send(request("POST", "/v1/chat/completions", body=BODY))
    await gateway.wait_for_gate("head")
    raw.writer.write_eof()
    assert await raw.closed()
    gateway.open_gate("head")
    event = await front.request()
    assert (event["ending"], event["basis"]) == ("caller_left", "usage")


KEYS = Policy(
    teams={"red": Team("red", (KeyRef("laptop", __import__("hashlib").sha256(b"red-key").digest()),))}, open_team=None
)


@pytest.mark.parametrize(
    ("lines", "status", "reason"),
    [
        ([], 401, "missing_key"),
        (["Authorization: Bearer red-key"], 200, None),
        (["x-api-key: red-key"], 200, None),
        (["Authorization: Bearer red-key", "x-api-key: red-key"], 200, None),
        (["Authorization: Bearer wrong"], 401, "invalid_key"),
        (["Authorization: Basic cmVkLWtleTo="], 401, "invalid_key"),
        (["Authorization: Bearer red-key", "x-api-key: other"], 400, "ambiguous_key"),
    ],
)
async def test_a_virtual_key_names_the_team_and_never_goes_upstream(gateway, lines, status, reason):
    async with proxied(gateway.url, KEYS, auth="keys") as front:
        reply = await exchange(front.address, request("GET", "/v1/models", *lines))
        assert reply.status == status
        event = await front.request()
        if reason:
            assert reply.error["reason"] == reason
            assert len(gateway.journal) == 0
        else:
            assert event["team"] == "red"
            assert gateway.journal[0].header("authorization") == "Bearer sk-emu-alpha-1"
            assert "red-key" not in str(gateway.journal[0].headers)


async def test_a_caller_may_bring_its_own_gateway_key(gateway):
    async with proxied(gateway.url, credential="caller", auth="keys") as front:
        reply = await front.get("/v1/models", headers={"x-api-key": "sk-emu-beta-1"})
        assert reply.status == 200
        assert gateway.journal[0].header("authorization") == "Bearer sk-emu-beta-1"
        assert (await front.get("/v1/models", headers={"x-api-key": "nobody"})).status == 401
        assert (await front.get("/v1/models")).status == 401
