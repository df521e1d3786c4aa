import struct

import pytest


async def speak(api, text="hello there", **fields):
    return await api.post("audio/speech/", {"model": "speech-standard", "input": text, **fields})


async def compose(api, **fields):
    return await api.post("audio/music/", {"model": "music-effects", "prompt": "rain", **fields})


@pytest.mark.fact("speech-pcm")
async def test_speech_is_raw_mono_pcm_at_24_khz(api):
    """Eleven characters are three tokens of 0.2 seconds each."""
    reply = await speak(api)
    assert reply.headers["Content-Type"] == "audio/pcm"
    assert len(reply.body) == 0.6 * 24_000 * 2
    assert reply.body[:4] != b"RIFF"
    samples = struct.unpack(f"<{len(reply.body) // 2}h", reply.body)
    assert max(samples) > 1000 > -1000 > min(samples)
    assert (await speak(api)).body == reply.body


@pytest.mark.fact("speech-headers")
async def test_headers_tell_the_tokens(api):
    headers = (await speak(api)).headers
    assert (headers["X-Input-Tokens"], headers["X-Output-Tokens"]) == ("3", "15")


@pytest.mark.fact("speech-voice")
async def test_the_default_voice_is_aoede(api):
    assert (await speak(api)).body == (await speak(api, voice="Aoede")).body
    assert (await speak(api)).body != (await speak(api, voice="Zubenelgenubi")).body
    assert (await speak(api, voice="Nobody")).status == 400


@pytest.mark.fact("speech-speakers")
async def test_several_speakers_have_a_voice_each(api):
    text = "Ann: hello\nBob: hello"
    assert (await speak(api, text, speakers={"Ann": "Kore", "Bob": "Puck"})).status == 200
    assert (await speak(api, text, speakers={"Ann": "Kore", "Bob": "Nobody"})).status == 400


@pytest.mark.fact("speech-4000")
async def test_more_than_4000_characters_are_refused(api):
    assert (await speak(api, "왜" * 4000)).status == 200
    reply = await speak(api, "왜" * 4001)
    assert reply.refusal == (400, "Input text too long (4001 chars). Maximum is 4000 characters.")


@pytest.mark.fact("speech-price")
async def test_ten_thousand_tokens_cost_a_thousandth_of_a_credit_or_two(api):
    for model, units in (("speech-standard", 10), ("speech-premium", 20)):
        await speak(api, "a" * 4000, model=model)
        assert api.gateway.journal[-1].charged == 1000 * units, model


@pytest.mark.fact("speech-403")
async def test_a_speech_model_that_is_not_enabled_is_403(api):
    assert (await speak(api, model="speech-retired")).refusal == (
        403,
        "Model 'speech-retired' is not enabled for your tenant.",
    )
    assert (await speak(api, model="speech-free")).refusal == (
        403,
        "Model 'speech-free' is not available through the Gateway API.",
    )
    for name in ("gpt-4o", "music-effects", "nothing"):
        assert (await speak(api, model=name)).refusal == (404, f"Model '{name}' not found")


@pytest.mark.fact("speech-required")
async def test_model_and_input_are_required(api):
    assert len((await api.post("audio/speech/", {})).detail) == 2


@pytest.mark.fact("music-mp3")
async def test_music_is_mp3_with_its_model_and_price(api):
    reply = await compose(api, duration_seconds=2)
    assert reply.headers["Content-Type"] == "audio/mpeg"
    assert reply.body[:2] == b"\xff\xfb"
    assert (reply.headers["X-Model"], reply.headers["X-Credits-Charged"]) == ("music-effects", "10")
    assert api.gateway.journal[-1].charged == 10 * 10**8
    assert len((await compose(api, duration_seconds=20)).body) > 9 * len(reply.body)


@pytest.mark.fact("music-structure")
async def test_only_one_family_tells_the_structure(api):
    assert "X-Music-Structure" not in (await compose(api)).headers
    assert (await compose(api, model="music-songs", lyrics="la la")).headers["X-Music-Structure"]


@pytest.mark.fact("music-required")
async def test_model_and_prompt_are_required_for_music(api):
    assert len((await api.post("audio/music/", {})).detail) == 2
    assert (await compose(api, duration_seconds=0)).status == 400
    assert (await compose(api, model="speech-standard")).status == 404


@pytest.mark.fact("audio-402")
async def test_without_credits_there_is_no_sound(api):
    api.gateway.set_credits("alpha", 0)
    assert ((await speak(api)).status, (await compose(api)).status) == (402, 402)
