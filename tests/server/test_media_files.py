"""Every sound and film that comes through the proxy is decoded by a program that did not make it."""

import asyncio
import json
import shutil

import pytest

from tests.proxies import proxied

RATE, SAMPLE_BYTES = 24_000, 2


async def probed(path):
    """What ffprobe says of a file: format name, codec, seconds and samples."""
    assert shutil.which("ffprobe"), "ffprobe is needed: install ffmpeg, or run `make test`, which does"
    command = ("ffprobe", "-v", "error", "-count_packets", "-show_format", "-show_streams", "-of", "json", str(path))
    process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert errors == b"", errors.decode()
    return json.loads(out)


async def samples_of(path):
    """The decoded samples, as 16-bit mono at the gateway's rate."""
    command = ("ffmpeg", "-v", "error", "-i", str(path), "-f", "s16le", "-ar", str(RATE), "-ac", "1", "-")
    process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
    out, errors = await process.communicate()
    assert errors == b"", errors.decode()
    return out


@pytest.mark.parametrize("text", ["Hi.", "왜가리가 물가에서 기다린다. " * 20])
async def test_a_wav_holds_exactly_the_gateways_samples(front, tmp_path, text):
    body = {"model": "speech-standard", "input": text}
    raw = await front.post("/v1/audio/speech", body)
    wav = await front.post("/v1/audio/speech", {**body, "response_format": "wav"})
    path = tmp_path / "speech.wav"
    path.write_bytes(wav.body)
    stream = (await probed(path))["streams"][0]
    assert (stream["codec_name"], stream["sample_rate"], stream["channels"]) == ("pcm_s16le", str(RATE), 1)
    decoded = await samples_of(path)
    assert decoded == wav.body[44:]
    assert len(decoded) == len(raw.body)


@pytest.mark.parametrize("seconds", [1, 5])
async def test_music_is_an_mp3_of_the_length_asked_for(front, tmp_path, seconds):
    reply = await front.post(
        "/v1/audio/music", {"model": "music-songs", "prompt": "reeds", "duration_seconds": seconds}
    )
    path = tmp_path / "music.mp3"
    path.write_bytes(reply.body)
    told = await probed(path)
    assert told["streams"][0]["codec_name"] == "mp3"
    assert abs(float(told["format"]["duration"]) - seconds) < 0.1


@pytest.mark.parametrize("seconds", [4, 8])
async def test_a_video_is_an_mp4_of_the_length_its_poll_says(front, tmp_path, seconds):
    asked = {"model": "video-200", "prompt": "a heron", "parameters": {"duration_seconds": seconds}}
    begun = await front.post("/v1/video/generation", asked)
    for _ in range(10):
        poll = await front.get(f"/v1/video/generation/{begun.json['operation_id']}")
        if poll.json["status"] == "completed":
            break
    film = await front.get(poll.json["video_uri"])
    path = tmp_path / "film.mp4"
    path.write_bytes(film.body)
    told = await probed(path)
    assert told["streams"][0]["codec_type"] == "video"
    assert int(told["streams"][0]["nb_read_packets"]) > 1
    assert float(told["format"]["duration"]) == poll.json["duration_seconds"] == seconds


async def test_each_team_reads_its_own_video_only_while_others_run(gateway, tmp_path):
    """Twenty videos at once, each downloaded by whoever began it, and each its own."""
    gateway.set_credits("alpha", 10_000 * 10**8)
    async with proxied(gateway.url) as front:

        async def one(number):
            begun = await front.post("/v1/video/generation", {"model": "video-200", "prompt": f"heron {number}"})
            identifier = begun.json["operation_id"]
            for _ in range(10):
                poll = await front.get(f"/v1/video/generation/{identifier}")
                if poll.json["status"] == "completed":
                    break
            return (await front.get(f"/v1/video/generation/{identifier}/download")).body

        films = await asyncio.gather(*(one(number) for number in range(20)))
        assert len(set(films)) == 20
        assert front.running.parts.books.open_holds == 0
