import base64
import struct

import pytest

from proxy.emulator.content import VIDEO_BYTES, png
from proxy.emulator.media import VIDEOS


async def film(api, model="video-600", **fields):
    return await api.post("video/generation/", {"model": model, "prompt": "herons", **fields})


async def finished(api, model="video-600", **fields):
    """The last poll of an operation and its id."""
    ident = (await film(api, model, **fields)).json["operation_id"]
    for _ in range(2):
        reply = await api.get(f"video/generation/{ident}/?model={model}")
    return ident, reply.json


def sized(width, height):
    head = png("a")
    return (
        "data:image/png;base64," + base64.b64encode(head[:16] + struct.pack(">II", width, height) + head[24:]).decode()
    )


@pytest.mark.fact("video-start")
async def test_a_video_starts_as_processing_with_its_internal_model_id(api):
    value = (await film(api)).json
    assert value.keys() == {"operation_id", "status", "video_model_id"}
    assert (value["status"], value["video_model_id"]) == ("processing", 8)


@pytest.mark.fact("video-id-slashes")
async def test_an_id_may_hold_slashes_and_is_passed_whole_or_encoded(api):
    ident = (await film(api)).json["operation_id"]
    assert ident.count("/") == 3
    for form in (ident, ident.replace("/", "%2F")):
        assert (await api.get(f"video/generation/{form}/?model=video-600")).json["operation_id"] == ident


@pytest.mark.fact("video-poll")
async def test_a_poll_shows_state_place_and_length(api):
    ident = (await film(api)).json["operation_id"]
    path = f"video/generation/{ident}/?model=video-600"
    first, second, third = [(await api.get(path)).json for _ in range(3)]
    assert first == {"operation_id": ident, "status": "processing", "video_uri": None, "duration_seconds": None}
    assert second["status"] == "completed"
    assert second == third
    assert second["duration_seconds"] == 8


@pytest.mark.fact("video-failed")
async def test_a_video_can_fail_and_then_costs_nothing(api):
    ident, last = await finished(api, prompt="[[job:failed]]")
    assert last["status"] == "failed"
    assert api.gateway.credits("alpha") == 1000 * 10**8
    assert (await api.get(f"video/generation/{ident}/download/?model=video-600")).status == 404


@pytest.mark.fact("video-uri")
async def test_the_first_family_is_fetched_here_the_others_at_a_cdn(api):
    _, first = await finished(api)
    assert first["video_uri"].startswith("/v1/gateway/video/generation/models/video-600/")
    assert (await api.get(f"{first['video_uri']}?model=video-600")).headers["Content-Type"] == "video/mp4"
    _, other = await finished(api, "video-400")
    reply = await api.get(other["video_uri"].removeprefix(api.gateway.url), key=None)
    assert (reply.headers["Content-Type"], len(reply.body)) == ("video/mp4", VIDEO_BYTES)


@pytest.mark.fact("video-model-query")
async def test_poll_and_download_need_the_model(api):
    ident, _ = await finished(api)
    for path in (f"video/generation/{ident}/", f"video/generation/{ident}/download/"):
        assert (await api.get(path)).status == 400, path
        assert (await api.get(f"{path}?model=video-400")).status == 404, path
        assert (await api.get(f"{path}?model=video-600", key=api.beta)).status == 404, path
        assert (await api.get(f"{path}?model=video-600")).status == 200, path


@pytest.mark.fact("video-download")
async def test_a_download_is_the_mp4_or_the_part_asked_for(api):
    ident, _ = await finished(api)
    path = f"video/generation/{ident}/download/?model=video-600"
    whole = await api.get(path)
    assert whole.body[4:8] == b"ftyp"
    for given, part in (("bytes=0-9", whole.body[:10]), ("bytes=65530-", whole.body[65530:])):
        reply = await api.get(path, headers={"Range": given})
        assert (reply.status, reply.body) == (206, part)
    assert reply.headers["Content-Range"] == f"bytes 65530-65535/{VIDEO_BYTES}"
    assert (await api.get(path, headers={"Range": "bytes=65536-"})).status == 416


@pytest.mark.fact("video-prices")
async def test_every_video_costs_its_price(api):
    prices = []
    api.gateway.set_credits("alpha", 10**13)
    for model in VIDEOS:
        await film(api, model)
        prices.append(api.gateway.journal[-1].charged // 10**8)
    assert prices == [
        1600, 1200, 1165, 770, 756, 720, 605, 600, 540, 500, 420, 420, 400, 350, 300, 300, 270, 256, 200, 130, 97
    ]  # fmt: skip


@pytest.mark.fact("video-input")
async def test_one_input_image_is_taken(api):
    assert (await film(api, input_urls=["https://a/b.png"])).status == 200
    assert (await film(api, input_urls=["https://a/b.png"] * 2)).status == 400
    assert (await film(api, input_urls=["AAAA"])).status == 400


@pytest.mark.fact("video-pixels")
async def test_a_reference_image_above_36_million_pixels_is_refused_and_costs_nothing(api):
    sentence = "input_urls[0] is 6001x6000 = 36006000 pixels, over this model's limit of 36000000 total pixels."
    for image in (sized(6001, 6000), "https://a/6001x6000.png"):
        reply = await film(api, "video-256", input_urls=[image])
        assert reply.refusal == (400, sentence)
        assert api.gateway.journal[-1].charged == 0
    assert (await film(api, "video-256", input_urls=[sized(6000, 6000)])).status == 200
    assert (await film(api, "video-200", input_urls=[sized(6001, 6000)])).status == 200


@pytest.mark.fact("video-403")
async def test_a_video_model_that_is_not_enabled_is_403(api):
    assert (await film(api, "video-retired")).refusal == (
        403,
        "Model 'video-retired' is not enabled for your tenant.",
    )
    assert (await film(api, "video-free")).status == 403
    assert (await film(api, "nothing")).refusal == (404, "Model 'nothing' not found")


@pytest.mark.fact("video-required")
async def test_model_and_prompt_are_required(api):
    assert len((await api.post("video/generation/", {})).detail) == 2


async def test_the_length_asked_for_is_the_length_made(api):
    for name in ("duration_seconds", "duration", "seconds"):
        _, last = await finished(api, "video-400", parameters={name: 4})
        assert last["duration_seconds"] == 4, name


@pytest.mark.fact("video-402")
async def test_without_credits_there_is_no_video(api):
    api.gateway.set_credits("alpha", 0)
    assert (await film(api)).status == 402
