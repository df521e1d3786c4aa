"""Speech as raw PCM and music as MP3, each with its headers."""

from typing import Any, Final

from proxy.emulator.answers import Answer, bad_parameter, refused
from proxy.emulator.catalog import Kind
from proxy.emulator.content import mp3, pcm
from proxy.emulator.lookup import media_row
from proxy.emulator.media import MUSIC, SPEECH, SPEECH_CHARS_MAX, VOICE_DEFAULT, VOICES
from proxy.emulator.messages import SPEECH_TOO_LONG
from proxy.emulator.money import credit_text, units_of
from proxy.emulator.shapes import Field, Shape, read_shaped
from proxy.emulator.words import token_count
from proxy.emulator.world import Call, World

SECONDS_PER_TOKEN: Final = 0.2
"""How long a token of text takes to say."""

AUDIO_TOKENS_PER_S: Final = 25

MUSIC_SECONDS_DEFAULT: Final = 10
MUSIC_SECONDS_MAX: Final = 600

# fmt: off
SPEECH_FIELDS: Final = (
    Field("model",            Shape.STRING, required=True),
    Field("input",            Shape.STRING, required=True),
    Field("voice",            Shape.STRING),
    Field("speakers",         Shape.OBJECT, each=Shape.STRING),
)
MUSIC_FIELDS: Final = (
    Field("model",            Shape.STRING, required=True),
    Field("prompt",           Shape.STRING, required=True),
    Field("lyrics",           Shape.STRING),
    Field("duration_seconds", Shape.NUMBER),
)
# fmt: on


def speech(world: World, call: Call) -> Answer:
    body = read_shaped(call.body, SPEECH_FIELDS)
    model = media_row(body["model"], SPEECH, Kind.AUDIO)
    text = body["input"]
    if len(text) > SPEECH_CHARS_MAX:
        raise refused(SPEECH_TOO_LONG, n=len(text), limit=SPEECH_CHARS_MAX)
    voices = _voices(body)
    world.reserve(call)
    tokens = token_count(text)
    seconds = tokens * SECONDS_PER_TOKEN
    sound = pcm(f"{model.name} {voices} {text}", seconds)
    counts = (("X-Input-Tokens", str(tokens)), ("X-Output-Tokens", str(int(seconds * AUDIO_TOKENS_PER_S))))
    return Answer(200, (sound,), "audio/pcm", counts, charge=tokens * model.token_price)


def music(world: World, call: Call) -> Answer:
    body = read_shaped(call.body, MUSIC_FIELDS)
    model = media_row(body["model"], MUSIC, Kind.AUDIO)
    seconds = MUSIC_SECONDS_DEFAULT if body.get("duration_seconds") is None else body["duration_seconds"]
    if not 0 < seconds <= MUSIC_SECONDS_MAX:
        raise bad_parameter(f"duration_seconds must be above 0 and at most {MUSIC_SECONDS_MAX}")
    world.reserve(call)
    charge = units_of(model.credits)
    headers = [("X-Model", model.name), ("X-Credits-Charged", credit_text(charge))]
    if model.structured:
        headers.append(("X-Music-Structure", "intro,verse,chorus,outro"))
    return Answer(200, (mp3(seconds),), "audio/mpeg", tuple(headers), charge=charge)


def _voices(body: dict[str, Any]) -> list[str]:
    """The voices of a request; every one must be on the list."""
    speakers = body.get("speakers")
    wanted = list(speakers.values()) if speakers else [body.get("voice") or VOICE_DEFAULT]
    for voice in wanted:
        if voice not in VOICES:
            raise bad_parameter(f"Voice {voice!r} is not available")
    return wanted
