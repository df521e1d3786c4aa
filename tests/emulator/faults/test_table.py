import asyncio
import gzip

import aiohttp
import orjson
import pytest

from proxy.emulator.faults.asking import Recording
from proxy.emulator.faults.table import FAULTS

USAGE = {"stream": True, "stream_options": {"include_usage": True}}
FAMILIES = ("chat", "native", "respond")


async def ask(api, family, text, **fields):
    return await getattr(api, family)(text, **fields)


def test_every_row_acts_at_exactly_one_place():
    for fault in FAULTS.values():
        acts = [fault.call, fault.instead, fault.answer, fault.delivery]
        assert sum(act is not None for act in acts) == 1, fault.name


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("400", 400),
        ("401", 401),
        ("402", 402),
        ("403", 403),
        ("404", 404),
        ("422", 422),
        ("429", 429),
        ("500", 500),
        ("502", 502),
        ("503", 503),
        ("paused", 503),
        ("1010", 403),
        ("html", 502),
        ("html200", 200),
        ("empty-body", 200),
        ("redirect", 307),
        ("status code=529", 529),
    ],
)
async def test_a_refusal_answers_in_place_of_the_room_and_costs_nothing(api, name, status):
    assert (await api.chat(f"[[fault:{name}]]")).status == status
    assert (await api.chat(headers={"x-emulator-fault": name})).status == status
    assert [seen.charged for seen in api.gateway.journal] == [0, 0]
    assert api.gateway.journal[0].faults == [name.split()[0]]


async def test_refusals_name_the_model(api):
    assert (await api.chat("[[fault:404]]")).detail == "Model 'gpt-4o' not found"


@pytest.mark.parametrize(
    ("retry", "header"),
    [
        ("5", "5"),
        ("-1", "-1"),
        ("past", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("date", "Wed, 21 Oct 2099 07:28:00 GMT"),
        ("decade", "315360000"),
        ("text", "soon"),
    ],
)
async def test_retry_after_can_be_silly(api, retry, header):
    for name in ("429", "503", "paused"):
        assert (await api.chat(f"[[fault:{name} retry={retry}]]")).headers["Retry-After"] == header


async def test_retry_after_can_be_absent(api):
    assert "Retry-After" not in (await api.chat("[[fault:429]]")).headers
    assert "Retry-After" not in (await api.add(headers={"x-emulator-fault": "429 retry=none"})).headers
    assert "Retry-After" in (await api.add(headers={"x-emulator-fault": "429"})).headers


async def test_html_and_plain_text_are_what_they_say(api):
    assert (await api.chat("[[fault:html]]")).headers["Content-Type"].startswith("text/html")
    assert (await api.chat("[[fault:1010]]")).body == b"error code: 1010"
    assert (await api.chat("[[fault:empty-body]]")).body == b""
    assert (await api.chat("[[fault:redirect status=302 to=/x]]")).headers["Location"] == "/x"


@pytest.mark.parametrize("family", FAMILIES)
async def test_no_usage_leaves_no_usage_in_json_and_streams(api, family):
    assert b'"usage"' not in (await ask(api, family, "[[fault:no-usage]]")).body
    fields = USAGE if family == "chat" else {"stream": True}
    reply = await ask(api, family, "[[fault:no-usage]]", **fields)
    assert b"_tokens" not in reply.body.replace(b"max_output_tokens", b"")
    assert reply.status == 200


async def test_usage_can_come_twice(api):
    chunks = (await api.chat("[[fault:usage-twice]]", **USAGE)).events
    assert [chunk["choices"] for chunk in chunks[-2:]] == [[], []]
    assert chunks[-1]["usage"] == chunks[-2]["usage"]
    events = (await api.native("[[fault:usage-twice]]", stream=True)).events
    assert [event["type"] for event in events].count("message_delta") == 2


@pytest.mark.parametrize("family", FAMILIES)
async def test_an_empty_answer_says_nothing_and_is_charged(api, family):
    reply = await ask(api, family, "[[fault:empty]]")
    value = reply.json
    said = {
        "chat": lambda: value["choices"][0]["message"]["content"],
        "native": lambda: "".join(map(str, value["content"])),
        "respond": lambda: "".join(map(str, value["output"])),
    }
    assert said[family]() == ""
    assert api.gateway.journal[-1].charged > 0
    streamed = await ask(api, family, "[[fault:empty]]", stream=True)
    assert not any("delta" in event.get("type", "") and "text" in str(event) for event in streamed.events)
    assert streamed.events[-1]


async def test_no_done_leaves_out_the_last_event(api):
    assert b"[DONE]" not in (await api.chat("[[fault:no-done]]", stream=True)).body
    assert (await api.native("[[fault:no-done]]", stream=True)).events[-1]["type"] == "message_delta"
    assert (await api.respond("[[fault:no-done]]", stream=True)).events[-1]["type"] == "response.output_item.done"


@pytest.mark.parametrize(
    ("family", "last"),
    [
        ("chat", {"error": {"message": "upstream provider error", "type": "server_error", "code": "server_error"}}),
        ("native", {"type": "error", "error": {"type": "api_error", "message": "upstream provider error"}}),
    ],
)
async def test_an_error_midway_has_the_form_of_its_family(api, family, last):
    reply = await ask(api, family, "[[fault:error-midway after=3]]", stream=True)
    assert reply.events[-1] == last
    assert len(reply.events) == 4


async def test_an_error_midway_can_take_every_form(api):
    for form in ("error", "detail", "event", "flat", "failed"):
        reply = await api.chat(f"[[fault:error-midway form={form} message=odd]]", stream=True)
        assert "odd" in str(reply.events[-1]), form
    assert reply.events[-1]["type"] == "response.failed"


async def test_extra_lines_stand_between_events(api):
    for name, line in (("comments", b": still here"), ("ping", b"event: ping"), ("empty-data", b"data:\n")):
        body = (await api.chat(f"[[fault:{name}]]", stream=True)).body
        assert body.count(line) == body.count(b'"object"') + 1, name


async def test_line_ends_can_be_crlf(api):
    body = (await api.chat("[[fault:crlf]]", stream=True)).body
    assert body.count(b"\r\n") == body.count(b"\n")


async def pieces(api, text):
    """The chunks as the caller's parser sees them, and the whole."""
    url = f"{api.gateway.url}/v1/gateway/chat/completions/"
    body = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": text}]}
    async with api.session.post(url, json=body, headers={"Authorization": f"Bearer {api.alpha}"}) as response:
        found, begun = [], b""
        async for piece, ends in response.content.iter_chunks():
            begun += piece
            if ends:
                found.append(begun)
                begun = b""
        return found


async def test_a_stream_can_be_split_and_joined_without_changing_a_byte(api):
    split = await pieces(api, "[[fault:split size=7]]")
    assert {len(piece) for piece in split[:-1]} == {7}
    joined = (await api.chat("[[fault:join]]", stream=True)).body
    assert joined.endswith(b"data: [DONE]\n\n")


async def test_an_answer_can_be_big(api):
    assert len((await api.chat("[[fault:big mb=2]]")).json["padding"]) == 2_000_000
    assert max(map(len, (await api.chat("[[fault:big]]", stream=True)).body.split(b"\n"))) > 1_000_000


async def test_lists_can_be_bare(api):
    api.gateway.set_fault("bare-list", prefix="/v1/gateway/models/")
    assert isinstance((await api.get("models/")).json, list)


async def test_an_answer_can_come_in_gzip_nobody_asked_for(api):
    reply = await api.chat("[[fault:gzip]]")
    assert reply.headers["Content-Encoding"] == "gzip"
    assert orjson.loads(gzip.decompress(reply.body))["object"] == "chat.completion"
    reply = await api.chat("[[fault:bomb mb=3]]")
    assert len(reply.body) < 20_000
    assert len(gzip.decompress(reply.body)) > 3_000_000


async def test_a_stream_can_be_answered_in_json(api):
    reply = await api.chat("[[fault:json-for-stream]]", stream=True)
    assert (reply.headers["Content-Type"], reply.json["object"]) == ("application/json", "chat.completion")


async def test_a_gate_holds_the_answer_until_it_is_opened(api):
    task = asyncio.create_task(api.chat("[[fault:slow gate=a]]"))
    await api.gateway.wait_for_gate("a")
    assert api.gateway.journal[0].status is None
    api.gateway.open_gate("a")
    assert (await task).status == 200


async def test_a_gate_can_stand_inside_a_stream(api):
    task = asyncio.create_task(api.chat("[[fault:slow gate=a at=2]]", stream=True))
    await api.gateway.wait_for_gate("a")
    assert api.gateway.journal[0].status == 200
    sent = api.gateway.journal[0].answered_bytes
    assert sent > 0
    api.gateway.open_gate("a")
    assert len((await task).body) > sent


async def test_seconds_of_silence_can_be_asked_for(api):
    assert (await api.chat("[[fault:slow head=0.001 every=0.0001]]", stream=True)).status == 200


@pytest.mark.parametrize("name", ["reset-before-head", "close-before-head", "reset-in-head", "bad-chunks"])
async def test_a_broken_answer_is_an_error_of_the_connection_and_is_charged(api, name):
    with pytest.raises(aiohttp.ClientError):
        await api.chat(f"[[fault:{name}]]")
    await api.gateway.wait_for(lambda journal: journal[0].over)
    assert api.gateway.journal[0].charged > 0


@pytest.mark.parametrize("name", ["cut", "close", "lying-length"])
async def test_an_answer_that_ends_early_is_a_broken_payload(api, name):
    with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientConnectionError)):
        await api.chat(f"[[fault:{name} after=1]]", stream=True)
    assert api.gateway.journal[0].charged > 0


@pytest.mark.parametrize("form", ["nul", "nocolon", "space", "fold", "twice"])
async def test_bad_header_lines_reach_the_wire(api, form):
    body = b'{"model":"gpt-4o","messages":[{"role":"user","content":"[[fault:bad-headers form=%s]]"}]}' % form.encode()
    head = b"POST /v1/gateway/chat/completions/ HTTP/1.1\r\nHost: a\r\nUser-Agent: t\r\nContent-Length: %d\r\n"
    answer = await api.raw(head % len(body) + b"Authorization: Bearer sk-emu-alpha-1\r\n\r\n" + body)
    assert {"nul": b"a\x00b", "nocolon": b"without a colon\r\n", "space": b"X-Odd : a", "fold": b"a\r\n b"}.get(
        form, b"Content-Length: 1\r\n"
    ) in answer


async def test_a_head_can_have_very_many_lines(api):
    body = b'{"model":"gpt-4o","messages":[{"role":"user","content":"[[fault:many-headers n=3000]]"}]}'
    head = b"POST /v1/gateway/chat/completions/ HTTP/1.1\r\nHost: a\r\nUser-Agent: t\r\nContent-Length: %d\r\n"
    answer = await api.raw(head % len(body) + b"Authorization: Bearer sk-emu-alpha-1\r\n\r\n" + body)
    assert answer.count(b"X-Many-") == 3000


async def test_a_clean_cut_ends_as_if_nothing_were_wrong(api):
    reply = await api.chat("[[fault:clean-cut after=3]]", stream=True)
    assert (reply.status, len(reply.events)) == (200, 3)
    whole = (await api.chat("[[fault:join]]", stream=True)).body
    for count in (0, 1, 100, 5000):
        assert len((await api.chat(f"[[fault:clean-cut bytes={count}]]", stream=True)).body) <= count
    assert len(whole) > 300


async def test_a_hanging_answer_ends_when_the_caller_leaves(api):
    task = asyncio.create_task(api.chat("[[fault:hang after=2]]", stream=True))
    await api.gateway.wait_for(lambda journal: bool(journal) and journal[0].answered_bytes > 0)
    task.cancel()
    await api.gateway.wait_for(lambda journal: journal[0].caller_gone)


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_recording_is_replayed_byte_for_byte(api, size):
    body = "data: {}\r\n\r\ndata: 왜가리\n\n".encode()
    parts = tuple(body[start : start + size] for start in range(0, len(body), size))
    api.gateway.recordings["one"] = Recording(parts, 200, (("Content-Type", "text/event-stream"), ("X-A", "b")))
    reply = await api.chat("[[fault:raw name=one]]", stream=True)
    assert (reply.body, reply.headers["X-A"]) == (body, "b")


async def test_a_recording_can_be_everything_on_the_wire(api):
    api.gateway.recordings["wire"] = Recording(
        (b"HTTP/1.1 299 Odd\r\nContent-", b"Length: 2\r\n\r\nhi"), past_http=True
    )
    reply = await api.chat("[[fault:raw name=wire]]")
    assert (reply.status, reply.body) == (299, b"hi")


async def test_faults_can_be_combined(api):
    chunks = (await api.chat("[[fault:no-done]] [[fault:comments]]", stream=True)).body
    assert b"[DONE]" not in chunks
    assert b": still here" in chunks
    reply = await api.chat(headers={"x-emulator-fault": "crlf; comments"}, stream=True)
    assert reply.body.count(b"\n: still here") > 3


async def test_what_is_broken_can_be_free(api):
    with pytest.raises(aiohttp.ClientError):
        await api.chat("[[fault:reset-before-head charge=no]]")
    assert api.gateway.journal[0].charged == 0
    assert api.gateway.credits("alpha") == 1000 * 10**8
