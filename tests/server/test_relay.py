"""What passes through: streams byte for byte, errors with their text, and nothing that should stay behind."""

import asyncio
import contextlib
import json
import random
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from proxy.core.charges import Basis, Ending
from proxy.core.ledger import Settle
from proxy.core.policy import DEFAULT_POLICY, StreamUsage
from proxy.emulator.faults.asking import Armed, Recording
from tests.proxies import CHAT, NATIVE, NOW, RESPONSE, proxied
from tests.raw import Raw, request

CORPUS = Path(__file__).parent.parent / "wire" / "sse"
EXPECTED = json.loads((CORPUS / "expected.json").read_text())
TOOL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
FAMILIES = {
    "chat": ("/v1/chat/completions", {**CHAT, "stream": True}),
    "messages": ("/v1/messages", {**NATIVE, "stream": True}),
    "responses": ("/v1/responses", {**RESPONSE, "stream": True}),
    "mcp": ("/v1/mcp/calc", TOOL),
}
# The event that each family's clients read as an error, where a stream did not come to its end.
BROKEN = {
    "chat": b'data: {"error":{',
    "messages": b"event: error\n",
    "responses": b"event: response.failed\n",
}


def pieces_of(stream: bytes, seed: int) -> tuple[bytes, ...]:
    """Cut a stream at places drawn by a seed; seed 0 cuts everywhere in its first two KB."""
    if seed == 0:
        return tuple(stream[at : at + 1] for at in range(min(len(stream), 2048))) + (stream[2048:],) * (
            len(stream) > 2048
        )
    places = sorted(random.Random(seed).sample(range(1, len(stream)), min(12, len(stream) - 1)))
    return tuple(stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True))


@pytest.mark.parametrize("name", EXPECTED)
async def test_a_stream_arrives_byte_for_byte_and_a_broken_one_says_so(front, gateway, name):
    expected = EXPECTED[name]
    stream = (CORPUS / name).read_bytes()
    path, body = FAMILIES[expected["family"]]
    for seed in range(4):
        gateway.recordings[name] = Recording(pieces_of(stream, seed))
        gateway.armed.append(Armed("raw", {"name": name}))
        reply = await front.post(path, body, headers={"Accept": "application/json, text/event-stream"})
        gateway.clear_faults()
        assert reply.status == 200
        assert reply.body[: len(stream)] == stream, f"seed {seed}"
        added = reply.body[len(stream) :]
        event = await front.request()
        cut = expected["end"] == "cut" or name in ("chat-18-detail-error-midway.sse", "resp-06-error-event.sse")
        if cut:
            assert added.count(BROKEN[expected["family"]]) == 1
            assert added.endswith(b"\n\n")
            assert event["ending"] == "upstream_broke"
        else:
            assert added == b""
            # An error that tells no usage leaves open what the gateway took.
            unknown = name in ("chat-16-data-error-midway.sse", "msg-07-error-overloaded.sse")
            assert event["ending"] == ("upstream_broke" if unknown else "answered")


@pytest.mark.parametrize("family", BROKEN)
@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
async def test_a_stream_that_breaks_off_ends_with_its_familys_error(front, gateway, family, fault):
    path, body = FAMILIES[family]
    gateway.set_fault(fault, after=3)
    reply = await front.post(path, body)
    assert reply.status == 200
    assert reply.body.count(BROKEN[family]) == 1
    assert b"broke off" in reply.body
    assert (await front.request())["ending"] == "upstream_broke"


@pytest.mark.parametrize("fault", ["slow"])
async def test_a_stream_is_passed_on_as_it_comes(front, gateway, fault):
    """The first event is with the caller while the gateway still holds the second back."""
    gateway.set_fault(fault, gate="second", at=2)
    async with front.client.post(front.url + "/v1/chat/completions", json={**CHAT, "stream": True}) as response:
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["X-Accel-Buffering"] == "no"
        first = await response.content.readany()
        assert first.startswith(b"data: ")
        await gateway.wait_for_gate("second")
        gateway.open_gate("second")
        rest = await response.content.read()
    assert rest.endswith(b"data: [DONE]\n\n")


async def test_a_heartbeat_fills_the_silence_between_two_events(gateway):
    policy = replace(DEFAULT_POLICY, heartbeat_s=0.05)
    async with proxied(gateway.url, policy) as front:
        gateway.set_fault("slow", gate="second", at=2)
        async with front.client.post(front.url + "/v1/chat/completions", json={**CHAT, "stream": True}) as response:
            seen = b""
            while seen.count(b": heartbeat\n\n") < 3:
                seen += await response.content.readany()
            gateway.open_gate("second")
            seen += await response.content.read()
    frames = [frame for frame in seen.split(b"\n\n") if frame and frame != b": heartbeat"]
    assert all(frame.startswith(b"data: ") for frame in frames)
    assert frames[-1] == b"data: [DONE]"


@pytest.mark.parametrize("asked", [False, True])
async def test_injected_usage_is_charged_exactly_and_not_shown(gateway, asked):
    """The caller that did not ask reads a stream without usage; the charge is what the usage says all the same."""
    policy = replace(DEFAULT_POLICY, stream_usage=StreamUsage.INJECT)
    options = {"stream_options": {"include_usage": True}} if asked else {}
    async with proxied(gateway.url, policy) as front:
        reply = await front.post("/v1/chat/completions", {**CHAT, "stream": True, **options})
        assert (b'"usage"' in reply.body) is asked
        assert reply.body.endswith(b"data: [DONE]\n\n")
        assert b'"include_usage"' in gateway.journal[0].body
        assert (await front.request())["basis"] == "usage"


async def test_a_model_that_refuses_to_be_asked_for_usage_is_asked_no_more(gateway):
    policy = replace(DEFAULT_POLICY, stream_usage=StreamUsage.INJECT)
    sentence = orjson.dumps({"detail": "stream_options is not supported by this model"})
    gateway.recordings["no"] = Recording((sentence,), status=400, headers=(("Content-Type", "application/json"),))
    async with proxied(gateway.url, policy) as front:
        gateway.armed.append(Armed("raw", {"name": "no"}, times=1))
        for calls in (2, 3):
            reply = await front.post("/v1/chat/completions", {**CHAT, "stream": True})
            assert (reply.status, len(gateway.journal)) == (200, calls)
            assert b"include_usage" not in gateway.journal[-1].body
        await front.running.parts.books.written()
        assert front.running.parts.books.open_holds == 0


async def test_no_heartbeat_unless_the_policy_asks_for_one(front, gateway):
    gateway.set_fault("slow", every="0.2")
    reply = await front.post("/v1/chat/completions", {**CHAT, "stream": True, "max_tokens": 2})
    assert b"heartbeat" not in reply.body


# fmt: off
MESSAGES = [
    # path                   body                                          fault                   status  text
    ("/v1/chat/completions", CHAT,                                         "402",                  402,    "Credit balance exhausted"),
    ("/v1/chat/completions", CHAT,                                         "429",                  429,    "Rate limit exceeded"),
    ("/v1/chat/completions", CHAT,                                         "503",                  503,    "Service is temporarily stopped for maintenance"),
    ("/v1/chat/completions", CHAT,                                         "1010",                 403,    "edge block: empty or refused User-Agent (error code: 1010)"),
    ("/v1/chat/completions", {**CHAT, "model": "nope"},                    None,                   404,    "Model 'nope' not found"),
    ("/v1/messages",         {**NATIVE, "model": "gpt-4o"},                None,                   400,    "Model 'gpt-4o' is not an Anthropic model"),
    ("/v1/responses",        {**RESPONSE, "model": "claude-sonnet-x"},   None,                   400,    "Model 'claude-sonnet-x' is not an OpenAI model"),
    ("/v1/chat/completions", {"model": "gpt-4o"},                          None,                   422,    "body.messages: Field required"),
    ("/v1/messages",         NATIVE,                                       "402",                  402,    "Credit balance exhausted"),
    ("/v1/responses",        RESPONSE,                                     "402",                  402,    "Credit balance exhausted"),
]
# fmt: on


@pytest.mark.parametrize(("path", "body", "fault", "status", "text"), MESSAGES)
async def test_the_gateways_sentence_reaches_the_caller_word_for_word(front, gateway, path, body, fault, status, text):
    if fault:
        gateway.set_fault(fault)
    reply = await front.post(path, body, headers=NOW)
    assert reply.status == status
    assert reply.headers["Content-Type"] == "application/json"
    value = reply.json
    assert value["type"] == "error"
    assert value["error"]["message"] == text
    assert value["request_id"] == reply.headers["X-Request-ID"]
    assert set(value["error"]) >= {"type", "message", "param", "code", "retry_after_s", "resets_at"}
    assert ("reason" in value["error"]) is (fault == "1010")
    assert "detail" in value
    if status == 422:
        assert value["detail"][0]["type"] == "missing"
        assert value["error"]["param"] == "body.messages"


@pytest.mark.parametrize(
    ("retry", "after", "true", "again"),
    [
        ("7", "7", 7.0, None),
        ("0", "1", 0.0, None),
        ("90", "60", 90.0, "false"),
        ("past", "1", 0.0, None),
        ("decade", "60", 315360000.0, "false"),
        ("text", "5", None, None),
        ("none", "5", None, None),
    ],
)
async def test_retry_after_is_a_number_every_client_obeys_and_the_true_figure_is_in_the_body(
    front, gateway, retry, after, true, again
):
    gateway.set_fault("429", retry=retry)
    reply = await front.post("/v1/chat/completions", CHAT, headers=NOW)
    assert reply.headers["Retry-After"] == after
    assert reply.headers["Retry-After-Ms"] == f"{after}000"
    assert reply.headers.get("X-Should-Retry") == again
    assert reply.error["retry_after_s"] == true


async def test_a_redirect_is_neither_followed_nor_passed_on(front, gateway):
    gateway.set_fault("redirect")
    reply = await front.post("/v1/chat/completions", CHAT)
    assert (reply.status, reply.error["reason"]) == (502, "upstream_redirect")
    assert "Location" not in reply.headers
    assert len(gateway.journal) == 1


async def test_a_page_with_status_200_is_an_error_for_the_caller(front, gateway):
    gateway.set_fault("html200")
    for path, body in (("/v1/chat/completions", CHAT), ("/v1/messages", NATIVE)):
        reply = await front.post(path, body)
        assert (reply.status, reply.error["reason"]) == (502, "upstream_broken")
    assert (await front.get("/v1/models")).status == 502


@pytest.mark.parametrize("code", [101, 206, 600, 999])
async def test_a_status_that_answers_nothing_is_an_error_for_the_caller(front, gateway, code):
    gateway.set_fault("status", code=code)
    reply = await front.post("/v1/chat/completions", CHAT)
    assert (reply.status, reply.error["reason"]) == (502, "upstream_broken")


BODILESS = {
    "chat":   ("/v1/chat/completions", {**CHAT, "temperature": 0}, "application/json", b'{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'),
    "stream": ("/v1/chat/completions", {**CHAT, "stream": True}, "text/event-stream", b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'),
    "long":   ("/v1/chat/completions", CHAT, "application/json", b'{"choices":[{"index":0,"message":{"content":"' + b"x" * 5_000_000 + b'"}}]}'),
}  # fmt: skip


@pytest.mark.parametrize("what", BODILESS)
async def test_a_status_that_has_no_body_is_passed_on_without_one(aiohttp_server, what):
    path, body, kind, said = BODILESS[what]

    async def answer(request):
        await request.read()
        return web.Response(status=205, body=said, content_type=kind)

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", answer)
    upstream = await aiohttp_server(app)
    async with proxied(f"http://127.0.0.1:{upstream.port}") as front:
        raw = await Raw.open(front.address)
        for _ in range(2):
            await raw.send(request("POST", path, body=orjson.dumps(body)))
            reply = await raw.reply()
            assert (reply.status, reply.body, reply.header("content-length")) == (205, b"", "0")
            assert "hit" not in reply.header("cache-status")
            event = await front.request()
            assert (event["ending"], event["sent_bytes"]) == ("answered", 0)
        raw.close()


@pytest.mark.parametrize("status", [200, 204])
async def test_an_answer_without_a_body_is_told_with_its_status(front, gateway, status):
    gateway.set_fault("empty-body", status=status)
    reply = await front.post("/v1/chat/completions", CHAT)
    assert (reply.status, reply.error["reason"]) == (502, "upstream_broken")
    assert f"answered {status} with" in reply.error["message"]


async def test_a_gateway_that_repeats_our_key_does_not_hand_it_to_callers(front, gateway):
    gateway.set_fault("400", message="sk-emu-alpha-1")
    reply = await front.post("/v1/chat/completions", CHAT)
    assert reply.status == 400
    assert b"sk-emu-alpha-1" not in reply.body


async def test_a_gateway_that_refuses_our_key_is_our_fault_not_the_callers(gateway):
    async with proxied(gateway.url, key="sk-emu-revoked") as front:
        reply = await front.post("/v1/chat/completions", CHAT)
        assert (reply.status, reply.error["reason"]) == (502, "gateway_key_refused")
        async with front.client.get(front.running.admin_url + "/readyz") as ready:
            assert (ready.status, await ready.text()) == (503, "gateway_key_refused\n")


async def test_a_key_that_is_taken_again_makes_the_proxy_ready_again(front, gateway):
    gateway.set_fault("401", times=1)
    for temperature, status, ready in ((0.1, 502, 503), (0.2, 200, 200)):
        # Another body, for the same one would hear the refusal from memory.
        assert (await front.post("/v1/chat/completions", {**CHAT, "temperature": temperature})).status == status
        async with front.client.get(front.running.admin_url + "/readyz") as answer:
            assert answer.status == ready


async def test_a_key_file_is_read_again_when_the_gateway_refuses_the_key(gateway, tmp_path):
    """A rotated key needs no restart: the first refused call makes the proxy read it."""
    path = tmp_path / "key"
    path.write_text("sk-emu-revoked\n")
    path.chmod(0o600)
    async with proxied(gateway.url, key=None, upstream_key_file=str(path)) as front:
        path.write_text("sk-emu-alpha-1\n")
        assert [(await front.post("/v1/chat/completions", CHAT)).status for _ in range(2)] == [502, 200]


async def test_a_key_that_was_read_again_is_masked_in_the_log(gateway, tmp_path):
    path = tmp_path / "key"
    path.write_text("sk-emu-revoked\n")
    path.chmod(0o600)
    async with proxied(gateway.url, key=None, upstream_key_file=str(path)) as front:
        path.write_text("gk_alpha_2x0\n")
        for _ in range(2):
            await front.post("/v1/chat/completions", CHAT, headers={"User-Agent": "x gk_alpha_2x0 y"})
        assert [line["user_agent"] for line in front.requests] == ["x *** y", "x *** y"]


async def test_only_allowed_header_lines_go_up(front, gateway):
    sent = {
        "X-Stainless-Lang": "python",
        "X-Codex-Turn-Metadata": "{}",
        "Cookie": "a=b",
        "Session-Id": "s",
        "OpenAI-Organization": "o",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "anthropic-version": "2026-10-21",
        "anthropic-beta": "prompt-caching-2024-07-31",
        "User-Agent": "",
        "Authorization": "Bearer anything",
    }
    reply = await front.post("/v1/messages?beta=true", NATIVE, headers=sent)
    assert reply.status == 200
    (seen,) = gateway.journal
    lines = {name.lower(): value for name, value in seen.headers}
    assert set(lines) == {
        "host", "authorization", "user-agent", "accept", "accept-encoding", "content-type", "content-length", "via",
        "x-request-id", "traceparent", "partner-version", "partner-beta",
    }  # fmt: skip
    assert lines["authorization"] == "Bearer sk-emu-alpha-1"
    assert lines["user-agent"].startswith("sluicegate/")
    assert lines["accept-encoding"] == "identity"
    assert (lines["partner-version"], lines["partner-beta"]) == ("2023-06-01", "prompt-caching-2024-07-31")
    assert seen.target == "/v1/gateway/partner/v1/messages/"


async def test_only_allowed_header_lines_come_down(front, gateway):
    gateway.recordings["h"] = Recording(
        (orjson.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}),),
        headers=(
            ("Content-Type", "application/json"), ("Set-Cookie", "a=b"), ("Server", "nginx"), ("Alt-Svc", "h3"),
            ("X-Credits-Charged", "1.5"), ("X-Request-ID", "theirs"), ("X-RateLimit-Remaining", "3"), ("X-Odd", "1"),
            ("Access-Control-Allow-Origin", "*"),
        ),
    )  # fmt: skip
    gateway.armed.append(Armed("raw", {"name": "h"}))
    reply = await front.post("/v1/chat/completions", CHAT)
    assert reply.headers["X-Upstream-Request-ID"] == "theirs"
    assert reply.headers["X-Credits-Charged"] == "1.5"
    assert reply.headers["X-RateLimit-Remaining"] == "3"
    assert reply.headers["Server"] == "sluicegate"
    assert not {"Set-Cookie", "Alt-Svc", "X-Odd", "Access-Control-Allow-Origin"} & set(reply.headers)
    assert reply.headers["Via"] == f"1.1 {front.running.parts.instance}"


async def test_body_bytes_go_up_exactly_as_they_came(front, gateway):
    odd = b'{ "messages" : [ {"role":"user","content":"\\u00e9\\ud83d\\ude00 \xed\x95\x9c"} ],\n "model":"gpt-4o-mini", "temperature": 1.0e0 }'
    reply = await front.call("POST", "/v1/chat/completions", data=odd, headers={"Content-Type": "text/plain"})
    assert reply.status == 200
    assert gateway.journal[0].body == odd


async def test_a_callers_plain_request_id_is_kept_and_an_odd_one_is_not(front):
    for asked, kept in (("abc-1.2_3", True), ("a b", False), ("x" * 129, False)):
        reply = await front.get("/v1/models", headers={"X-Request-ID": asked})
        assert (reply.headers["X-Request-ID"] == asked) is kept


async def test_the_same_request_id_twice_is_two_holds(front):
    for _ in range(2):
        assert (await front.post("/v1/chat/completions", CHAT, headers={"X-Request-ID": "same"})).status == 200
    assert len({step.hold for step in front.entries}) == 2


async def test_a_hold_has_the_request_id_that_was_made_for_it(front):
    reply = await front.post("/v1/chat/completions", CHAT)
    assert {step.hold for step in front.entries} == {reply.headers["X-Request-ID"]}


async def test_model_lists_are_wrapped_whatever_the_gateway_sends(front, gateway):
    gateway.set_fault("bare-list")
    value = (await front.get("/v1/models?type=llm")).json
    assert value["object"] == "list"
    assert all(isinstance(entry["created"], int) and isinstance(entry["owned_by"], str) for entry in value["data"])
    assert gateway.journal[0].target == "/v1/gateway/models/?type=llm"


async def test_one_native_model_is_looked_up_in_the_list(front):
    headers = {"anthropic-version": "2023-06-01"}
    assert (await front.get("/v1/models/claude-sonnet-x", headers=headers)).json["type"] == "model"
    reply = await front.get("/v1/models/nope", headers=headers)
    assert (reply.status, reply.error["code"], reply.error["message"]) == (
        404,
        "model_not_found",
        "Model 'nope' not found",
    )


async def test_a_background_response_holds_its_credits_until_a_poll_says_how_it_ended(front):
    first = await front.post("/v1/responses", {**RESPONSE, "background": True})
    assert first.json["status"] in ("queued", "in_progress")
    books, operations = front.running.parts.books, front.running.parts.operations
    assert (books.open_holds, len(operations)) == (1, 1)
    for _ in range(10):
        poll = await front.get(f"/v1/responses/{first.json['id']}")
        if poll.json["status"] == "completed":
            break
    await books.written()
    assert (books.open_holds, len(operations)) == (0, 0)
    usage = poll.json["usage"]
    settled = front.entries[-1]
    assert settled.charge.credits == usage["input_tokens"] * 1000 + usage["output_tokens"] * 3000


async def test_a_cancelled_background_response_ends_its_hold(front):
    first = await front.post("/v1/responses", {**RESPONSE, "background": True})
    reply = await front.post(f"/v1/responses/{first.json['id']}/cancel", {})
    assert reply.json["status"] == "cancelled"
    await front.running.parts.books.written()
    assert front.running.parts.books.open_holds == 0
    assert next(e for e in front.events if e["event"] == "operation_ended")["outcome"] == "cancelled"
    # It says no usage, so what it is charged is a guess.
    assert (front.entries[-1].charge.basis, front.entries[-1].charge.uncertain) == (Basis.HOLD, True)


@pytest.mark.parametrize("count", [40])
async def test_identical_deterministic_calls_in_flight_share_one_exchange(front, gateway, count):
    gateway.set_fault("slow", gate="head")
    body = {**CHAT, "temperature": 0, "stream": True}
    calls = [asyncio.create_task(front.post("/v1/chat/completions", body)) for _ in range(count)]
    await gateway.wait_for_gate("head")
    await front.until(lambda: readers(front) == count)
    gateway.open_gate("head")
    replies = await asyncio.gather(*calls)
    assert len({reply.body for reply in replies}) == 1
    assert len(gateway.journal) == 1
    assert len(front.entries) == 2, "one hold, one ending"
    assert sum("collapsed" in reply.headers["Cache-Status"] for reply in replies) == count - 1


async def test_calls_that_are_not_deterministic_are_never_shared(front, gateway):
    gateway.set_fault("slow", gate="head")
    calls = [asyncio.create_task(front.post("/v1/chat/completions", CHAT)) for _ in range(3)]
    await gateway.wait_for_gate("head", 3)
    gateway.open_gate("head")
    await asyncio.gather(*calls)
    assert len(gateway.journal) == 3


@pytest.mark.parametrize("write_timeout", ["0.5s", "60s"])
async def test_one_reader_of_a_shared_exchange_that_never_reads_stops_nobody(gateway, write_timeout):
    """The answer is far larger than spool and socket buffers, so the writer waits for the slowest, but not for ever."""
    gateway.set_fault("big", mb=6)
    gateway.set_fault("slow", gate="head")
    async with proxied(gateway.url, spool_bytes="64KiB", write_timeout=write_timeout) as front:
        body = orjson.dumps({**CHAT, "temperature": 0, "stream": True})
        stuck = await Raw.open(front.address)
        stuck.writer.transport.pause_reading()
        await stuck.send(request("POST", "/v1/chat/completions", body=body))
        await gateway.wait_for_gate("head")
        calls = [asyncio.create_task(front.call("POST", "/v1/chat/completions", data=body)) for _ in range(3)]
        await front.until(lambda: readers(front) == 4)
        gateway.open_gate("head")
        replies = await asyncio.gather(*calls)
        assert len({reply.body for reply in replies}) == 1
        assert len(replies[0].body) > 6_000_000
        assert replies[0].body.endswith(b"data: [DONE]\n\n")
        assert len(gateway.journal) == 1
        stuck.writer.transport.resume_reading()
        with contextlib.suppress(ConnectionResetError):
            assert not (await stuck.reader.read()).endswith(b"0\r\n\r\n"), "what was cut does not look whole"
        stuck.close()


async def test_an_answer_longer_than_the_spool_is_read_on_when_its_only_caller_has_left(gateway):
    gateway.set_fault("big", mb=1)
    gateway.set_fault("slow", gate="head")
    async with proxied(gateway.url, spool_bytes="64KiB") as front:
        body = {**CHAT, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
        asked = asyncio.create_task(front.post("/v1/chat/completions", body))
        await gateway.wait_for_gate("head")
        asked.cancel()
        await front.until(lambda: len(front.running.parts.exchanges.readers) == 1)
        gateway.open_gate("head")
        await front.running.parts.exchanges.finished()
        await front.running.parts.books.written()
        (ending,) = [entry for entry in front.entries if isinstance(entry, Settle)]
        assert (ending.ending, ending.charge.basis) == (Ending.CALLER_LEFT, Basis.USAGE)


async def test_a_stream_ends_for_a_caller_of_an_old_version_that_would_stay(front):
    """It knows the end of what has no length by the end of the connection."""
    body = orjson.dumps({**CHAT, "stream": True})
    raw = await Raw.open(front.address)
    asked = request("POST", "/v1/chat/completions", "Connection: keep-alive", body=body)
    await raw.send(asked.replace(b"HTTP/1.1", b"HTTP/1.0"))
    answer = await raw.reader.read()
    assert answer.endswith(b"data: [DONE]\n\n")
    raw.close()


async def not_reading(front):
    """A caller that waits in the middle of an answer which others may join, and what it asked."""
    body = orjson.dumps({**CHAT, "temperature": 0, "stream": True})
    stuck = await Raw.open(front.address)
    stuck.writer.transport.pause_reading()
    await stuck.send(request("POST", "/v1/chat/completions", body=body))
    await front.until(lambda: any(one._paused for one in front.running._listener.connections))
    return stuck, body


async def test_who_joins_a_call_whose_first_caller_does_not_read_has_all_of_it(gateway):
    gateway.set_fault("big", mb=6)
    async with proxied(gateway.url, spool_bytes="16MiB", write_timeout="120s") as front:
        stuck, body = await not_reading(front)
        second = await front.call("POST", "/v1/chat/completions", data=body)
        assert len(second.body) > 6_000_000
        assert second.body.endswith(b"data: [DONE]\n\n")
        assert "collapsed" in second.headers["Cache-Status"]
        stuck.close()
        await front.running.parts.exchanges.finished()
        assert (len(gateway.journal), len(front.entries)) == (1, 2)


async def test_who_joins_while_the_first_caller_waits_for_a_piece_does_not_go_at_its_pace():
    gate = asyncio.Event()

    async def answers(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: begun\n\n")
        await gate.wait()
        for _ in range(600):
            writer.write(b": " + b"x" * 10_000 + b"\n\n")
            await writer.drain()
        writer.write(b"data: [DONE]\n\n")
        writer.close()

    async with await asyncio.start_server(answers, "127.0.0.1", 0) as gateway:
        url = f"http://127.0.0.1:{gateway.sockets[0].getsockname()[1]}"
        async with proxied(url, spool_bytes="16MiB", write_timeout="120s") as front:
            body = orjson.dumps({**CHAT, "temperature": 0, "stream": True})
            stuck = await Raw.open(front.address)
            await stuck.send(request("POST", "/v1/chat/completions", body=body))
            await stuck.reader.readuntil(b"begun")
            stuck.writer.transport.pause_reading()
            second = asyncio.create_task(front.call("POST", "/v1/chat/completions", data=body))
            await front.until(lambda: readers(front) == 2)
            gate.set()
            assert (await second).body.endswith(b"data: [DONE]\n\n")
            stuck.close()


async def test_whoever_called_first_leaves_an_answer_it_does_not_read_and_it_is_read_to_its_end(gateway):
    gateway.set_fault("big", mb=6)
    async with proxied(gateway.url, spool_bytes="16MiB", write_timeout="120s") as front:
        stuck, _ = await not_reading(front)
        stuck.close()
        await front.until(lambda: len(front.requests) == 1)
        await front.running.parts.exchanges.finished()
        await front.running.parts.books.written()
        (ending,) = [entry for entry in front.entries if isinstance(entry, Settle)]
        assert ending.ending is Ending.CALLER_LEFT
        assert front.running.parts.books.open_holds == 0


async def test_an_answer_that_nobody_else_asks_for_is_read_without_a_task(front, gateway):
    gateway.set_fault("slow", gate="head")
    before = asyncio.all_tasks()
    call = asyncio.create_task(front.post("/v1/chat/completions", {**CHAT, "temperature": 0}))
    await gateway.wait_for_gate("head")
    others = [task for task in asyncio.all_tasks() - before if "Shared" in repr(task.get_coro())]
    assert not others
    gateway.open_gate("head")
    assert (await call).status == 200


@pytest.mark.parametrize(
    ("recording", "status", "ending"),
    [
        (Recording((b"see there",), status=307), 502, "gateway_refused"),
        (Recording((b"{}",), status=206), 502, "upstream_broke"),
        (Recording((b"x" * 40_000,) * 4, status=500), 500, "gateway_failed"),
    ],
)
async def test_what_is_said_of_an_answer_that_others_might_have_joined_and_that_is_not_read(
    front, gateway, recording, status, ending
):
    gateway.recordings["odd"] = replace(recording, headers=(("Content-Type", "text/plain"), ("Location", "/there")))
    gateway.armed.append(Armed("raw", {"name": "odd"}, times=1))
    alone = await front.post("/v1/chat/completions", {**CHAT, "temperature": 0})
    event = await front.request()
    assert (alone.status, event["ending"]) == (status, ending)
    assert "charged" in event
    await front.running.parts.books.written()
    assert front.running.parts.books.open_holds == 0


async def test_a_shared_exchange_outlives_the_caller_that_began_it(front, gateway):
    gateway.set_fault("slow", gate="head")
    body = {**CHAT, "temperature": 0}
    first = asyncio.create_task(front.post("/v1/chat/completions", body))
    await gateway.wait_for_gate("head")
    second = asyncio.create_task(front.post("/v1/chat/completions", body))
    await front.until(lambda: readers(front) == 2)
    first.cancel()
    await front.until(lambda: readers(front) == 1)
    gateway.open_gate("head")
    assert (await second).status == 200
    assert (len(gateway.journal), len(front.entries)) == (1, 2)


def readers(front):
    """How many read the one shared exchange."""
    slots = list(front.running.parts.in_flight._slots.values())
    return slots[0].shared.readers if slots and slots[0].shared is not None else 0
