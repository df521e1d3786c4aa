"""Chatbots, speech, music, images and video: the rules of their routes, and what their work costs when it ends."""

import asyncio
import base64
import hashlib
import zlib

import orjson
import pytest

from proxy.core.charges import Basis, Charge, Ending
from proxy.core.ledger import Settle, Void
from proxy.core.policy import KeyRef, Policy, Team
from proxy.core.prices import FLAT
from proxy.core.speech import WAV_HEADER
from tests.proxies import proxied

USER = [{"role": "user", "content": "hi"}]
IMAGE_ASYNC, IMAGE_SYNC, VIDEO = "image-a-sdxl", "image-search-flash", "video-200"


async def done(front, path, query=""):
    """Poll until the work has ended; the last answer."""
    for _ in range(10):
        reply = await front.get(path + query)
        if reply.status != 200 or reply.json["status"] in ("completed", "failed"):
            return reply
    raise AssertionError("the work never ended")


async def last_entry(front):
    await front.running.parts.books.written()
    return front.entries[-1]


# --- chatbots ---


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chatbots_own_figure_is_the_charge(front, gateway, stream):
    reply = await front.post("/v1/chatbots/7/chat/completions", {"messages": USER, "stream": stream})
    assert reply.status == 200
    entry = await last_entry(front)
    assert (entry.charge.basis, entry.charge.credits) == (Basis.GATEWAY, 325_000_000)
    assert gateway.journal[0].target == "/v1/gateway/chatbots/7/chat/completions/"


async def test_a_chatbot_answers_as_a_model_of_its_own(front, gateway):
    said = [
        {"role": "developer", "content": "be brief", "name": "x"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]
    body = {
        "model": "chatbot:7",
        "messages": said,
        "temperature": 0.5,
        "stream_options": {"include_usage": True},
        "stream": True,
    }
    reply = await front.post("/v1/chat/completions", body)
    assert reply.status == 200
    assert gateway.journal[0].target == "/v1/gateway/chatbots/7/chat/completions/"
    assert orjson.loads(gateway.journal[0].body) == {
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "a\nb"}],
        "stream": True,
    }
    assert (await front.request())["route"] == "chatbot"


@pytest.mark.parametrize(
    "extra",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a/b.png"}}]}]},
        {"messages": [*USER, {"role": "tool", "content": "x", "tool_call_id": "1"}]},
        {"messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]},
    ],
)
async def test_what_a_chatbot_cannot_take_is_refused_here(front, gateway, extra):
    reply = await front.post("/v1/chat/completions", {"model": "chatbot:7", "messages": USER, **extra})
    assert (reply.status, reply.error["reason"]) == (400, "unsupported_for_chatbot")
    assert len(gateway.journal) == 0


@pytest.mark.parametrize("name", ["chatbot:..", "chatbot:", "chatbot:1/2", "chatbot:1\r\nX", "chatbot:7a", "chatbot:٧"])
async def test_what_is_no_number_never_becomes_part_of_a_path(front, gateway, name):
    reply = await front.post("/v1/chat/completions", {"model": name, "messages": USER})
    assert (reply.status, reply.error["reason"]) == (400, "bad_request")
    assert len(gateway.journal) == 0


# --- speech and music ---


@pytest.mark.parametrize(
    ("response_format", "wav", "content_type"),
    [(None, False, "audio/pcm"), ("pcm", False, "audio/pcm"), ("wav", True, "audio/wav")],
)
async def test_speech_is_raw_samples_or_a_wav_file(front, gateway, response_format, wav, content_type):
    extra = {} if response_format is None else {"response_format": response_format}
    reply = await front.post(
        "/v1/audio/speech", {"model": "speech-standard", "input": "왜가리 waits", "voice": "Kore", **extra}
    )
    assert (reply.status, reply.headers["Content-Type"]) == (200, content_type)
    assert reply.body.startswith(WAV_HEADER) is wav
    assert int(reply.headers["Content-Length"]) == len(reply.body)
    samples = reply.body.removeprefix(WAV_HEADER)
    assert len(samples) == gateway.journal[0].answered_bytes
    assert b"response_format" not in gateway.journal[0].body
    entry = await last_entry(front)
    tokens = int(reply.headers["X-Input-Tokens"]), int(reply.headers["X-Output-Tokens"])
    assert (entry.charge.basis, entry.charge.credits) == (Basis.USAGE, tokens[0] * 1000 + tokens[1] * 3000)


@pytest.mark.parametrize("response_format", ["mp3", "opus", ""])
async def test_a_format_the_gateway_cannot_give_is_refused_here(front, gateway, response_format):
    body = {"model": "speech-standard", "input": "a", "response_format": response_format}
    reply = await front.post("/v1/audio/speech", body)
    assert (reply.status, reply.error["reason"]) == (400, "bad_request")
    assert "pcm or wav" in reply.error["message"]
    assert len(gateway.journal) == 0


@pytest.mark.parametrize(("text", "status"), [("가" * 4000, 200), ("가" * 4001, 400), ("🪶" * 4001, 400)])
async def test_speech_above_4000_characters_is_refused_here_in_the_gateways_words(front, gateway, text, status):
    reply = await front.post("/v1/audio/speech", {"model": "speech-standard", "input": text})
    assert reply.status == status
    if status == 400:
        assert reply.error["message"] == "Input text too long (4001 chars). Maximum is 4000 characters."
        assert len(gateway.journal) == 0


async def test_music_is_passed_with_its_headers_and_charged_what_they_say(front):
    reply = await front.post("/v1/audio/music", {"model": "music-songs", "prompt": "reeds", "duration_seconds": 2})
    assert (reply.status, reply.headers["Content-Type"]) == (200, "audio/mpeg")
    assert all(name in reply.headers for name in ("X-Model", "X-Credits-Charged", "X-Music-Structure"))
    entry = await last_entry(front)
    assert (entry.charge.basis, entry.charge.credits) == (
        Basis.GATEWAY,
        int(reply.headers["X-Credits-Charged"]) * 10**8,
    )


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/audio/music"])
@pytest.mark.parametrize("fault", ["html200", "empty-body"])
async def test_a_page_or_nothing_is_never_passed_as_sound(front, gateway, path, fault):
    gateway.set_fault(fault)
    model = "speech-standard" if "speech" in path else "music-songs"
    body = {"model": model, "input": "a", "prompt": "a", "response_format": "wav"}
    reply = await front.post(path, body)
    assert (reply.status, reply.error["reason"]) == (502, "upstream_broken")
    assert (await front.request())["ending"] == "upstream_broke"


# --- what is priced by the piece ---


@pytest.mark.parametrize("fault", ["html200", "empty-body", "reset-before-head charge=no"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/audio/music", {"model": "music-songs", "prompt": "reeds"}),
        ("/v1/images/generate", {"model": IMAGE_SYNC, "prompt": "a heron", "number_of_images": 3}),
        ("/v1/chatbots/7/chat/completions", {"messages": USER}),
    ],
)
async def test_a_fixed_price_of_what_never_came_is_a_guess(front, gateway, path, body, fault):
    """Nobody has said that there was anything to pay for, so it is charged as all else that was broken off."""
    name, _, more = fault.partition(" ")
    gateway.set_fault(name, **({"charge": "no"} if more else {}))
    assert (await front.post(path, body)).status == 502
    entry = await last_entry(front)
    assert (entry.charge.basis, entry.charge.uncertain) == (Basis.HOLD, True)
    assert entry.charge.credits > 0


async def test_a_fixed_price_of_what_came_whole_is_known_also_where_its_caller_has_left(front, gateway):
    gateway.set_fault("slow", gate="head")
    asking = asyncio.create_task(front.post("/v1/images/generate", {"model": IMAGE_SYNC, "prompt": "a heron"}))
    await gateway.wait_for_gate("head")
    asking.cancel()
    await front.until(lambda: any(exchange.left for exchange in front.running.parts.exchanges.open))
    gateway.open_gate("head")
    await front.until(lambda: not front.running.parts.exchanges.open)
    entry = await last_entry(front)
    assert entry.ending is Ending.CALLER_LEFT
    assert (entry.charge.basis, entry.charge.credits) == (Basis.USAGE, FLAT.per_image)


@pytest.mark.parametrize(("fault", "more"), [("lying-length", {}), ("cut", {"after": 1})])
async def test_a_fixed_price_of_what_came_whole_is_known_also_where_the_connection_broke_behind_it(
    front, gateway, fault, more
):
    gateway.set_fault(fault, **more)
    reply = await front.post("/v1/images/generate", {"model": IMAGE_SYNC, "prompt": "a heron"})
    assert reply.status == 200
    entry = await last_entry(front)
    assert entry.charge == Charge(FLAT.per_image, Basis.USAGE)
    assert not await front.running.parts.books.store.doubtful()


# --- images ---


async def test_the_sdks_names_of_image_parameters_become_the_gateways(front, gateway):
    body = b'{"model":"image-search-flash","n":2, "prompt":"a \\"n\\" heron","size":"1K"}'
    reply = await front.call("POST", "/v1/images/generations", data=body)
    assert reply.status == 200, reply.body
    assert gateway.journal[0].target == "/v1/gateway/images/generate/"
    assert (
        gateway.journal[0].body
        == b'{"model":"image-search-flash","number_of_images":2, "prompt":"a \\"n\\" heron","image_size":"1K"}'
    )
    direct = await front.post("/v1/images/generate", {"model": IMAGE_SYNC, "prompt": "x", "n": 1})
    assert b'"n"' in gateway.journal[1].body, direct.status


async def test_a_synchronous_image_is_charged_at_once_and_opens(front):
    reply = await front.post("/v1/images/generate", {"model": IMAGE_SYNC, "prompt": "x"})
    text = orjson.dumps(reply.json)
    start = text.index(b"iVBOR")
    png = base64.b64decode(text[start : text.index(b'"', start)])
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at = png.index(b"IDAT")
    size = int.from_bytes(png[at - 4 : at])
    assert zlib.decompress(png[at + 4 : at + 4 + size])
    entry = await last_entry(front)
    assert (type(entry), entry.charge.basis, entry.charge.credits) == (Settle, Basis.USAGE, FLAT.per_image)


# --- operations ---

# fmt: off
WORK = [
    # path                     body                                                    poll
    ("/v1/images/generate",    {"model": IMAGE_ASYNC, "prompt": "a heron"},            "/v1/images/generate/{}"),
    ("/v1/video/generation",   {"model": VIDEO, "prompt": "a heron"},                  "/v1/video/generation/{}"),
    ("/v1/video/generation",   {"model": "video-97", "prompt": "a heron"},             "/v1/video/generation/{}"),
]
# fmt: on


@pytest.mark.parametrize(("path", "body", "poll"), WORK)
async def test_work_that_goes_on_holds_its_credits_until_it_is_completed(front, gateway, path, body, poll):
    begun = await front.post(path, body)
    assert (begun.status, begun.json["status"]) == (200, "processing")
    books, operations = front.running.parts.books, front.running.parts.operations
    assert (books.open_holds, len(operations)) == (1, 1)
    reply = await done(front, poll.format(begun.json["operation_id"]))
    assert reply.json["status"] == "completed"
    entry = await last_entry(front)
    price = FLAT.per_video if "video" in path else FLAT.per_image
    assert (entry.charge.basis, entry.charge.credits) == (Basis.HOLD, price)
    assert (books.open_holds, len(operations)) == (0, 0)
    # The caller left the model out; the proxy knows what the id was given for.
    assert gateway.journal[1].target.endswith(f"?model={body['model']}")


@pytest.mark.parametrize(("path", "body", "poll"), WORK)
async def test_work_that_fails_costs_nothing(front, path, body, poll):
    from proxy.emulator.rooms.images import FAILS

    begun = await front.post(path, {**body, "prompt": f"{FAILS} x"})
    reply = await done(front, poll.format(begun.json["operation_id"]))
    assert reply.json["status"] == "failed"
    assert isinstance(await last_entry(front), Void)


async def test_an_answer_that_is_whole_is_delivered_although_its_connection_broke(front, gateway):
    """The id in it is all that its caller will ever have of the work it pays for."""
    gateway.set_fault("lying-length", prefix="/v1/gateway/video/")
    begun = await front.post("/v1/video/generation", {"model": VIDEO, "prompt": "a heron"})
    assert (begun.status, begun.json["status"]) == (200, "processing")
    gateway.clear_faults()
    assert (await done(front, f"/v1/video/generation/{begun.json['operation_id']}")).json["status"] == "completed"


async def test_an_id_of_nobody_needs_its_model(front, gateway):
    reply = await front.get("/v1/video/generation/models/x/operations/1")
    assert (reply.status, reply.error["reason"]) == (400, "bad_request")
    assert len(gateway.journal) == 0
    assert (await front.get("/v1/video/generation/models/x/operations/1?model=video-200")).status == 404
    assert len(gateway.journal) == 1


async def test_a_video_is_downloaded_whole_or_in_part(front):
    begun = await front.post("/v1/video/generation", {"model": VIDEO, "prompt": "a heron"})
    poll = await done(front, f"/v1/video/generation/{begun.json['operation_id']}")
    # The place in the answer is relative: it leads here as well as there.
    whole = await front.get(poll.json["video_uri"])
    assert (whole.status, whole.headers["Content-Type"]) == (200, "video/mp4")
    assert whole.body[4:8] == b"ftyp"
    assert int(whole.headers["Content-Length"]) == len(whole.body)
    part = await front.get(poll.json["video_uri"], headers={"Range": "bytes=4-7"})
    assert (part.status, part.body) == (206, b"ftyp")
    assert part.headers["Content-Range"] == f"bytes 4-7/{len(whole.body)}"


TEAMS = Policy(
    teams={name: Team(name, (KeyRef(name, hashlib.sha256(name.encode()).digest()),)) for name in ("red", "blue")}
)


async def test_another_teams_work_cannot_be_polled_or_downloaded(gateway):
    red, blue = ({"x-api-key": name} for name in ("red", "blue"))
    async with proxied(gateway.url, TEAMS, auth="keys") as front:
        for path, body, poll in WORK:
            begun = await front.post(path, body, headers=red)
            identifier = begun.json["operation_id"]
            before = len(gateway.journal)
            encoded = identifier.replace("/", "%2F").replace(":", "%3A")
            for spelled in (identifier, encoded, f"{identifier}?model={body['model']}"):
                place, _, query = spelled.partition("?")
                for tail in ("", "/", "/download"):
                    if tail == "/download" and "video" not in path:
                        continue
                    target = poll.format(place) + tail + (f"?{query}" if query else "")
                    reply = await front.get(target, headers=blue)
                    assert (reply.status, reply.error["reason"]) == (404, "not_yours"), target
            assert len(gateway.journal) == before
            assert (await front.get(poll.format(identifier), headers=red)).status == 200
