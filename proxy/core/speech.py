"""Speech as callers know it: a format of their choice, and a header in front of the gateway's raw samples."""

import struct
from typing import Final

from proxy.errors import ProxyError

CHARACTERS_MAX: Final = 4000
"""Of `input`, in code points; the gateway's document, "Limits"."""

SAMPLE_RATE, CHANNELS, SAMPLE_BYTES = 24_000, 1, 2
"""The gateway answers raw samples: 24,000 a second, mono, 16-bit signed little-endian."""

_UNKNOWN_SIZE: Final = 0xFFFFFFFF
"""The length is not known when the header goes out; players read on to the end."""

WAV_HEADER: Final = (
    struct.pack("<4sI4s", b"RIFF", _UNKNOWN_SIZE, b"WAVE")
    + struct.pack(
        "<4sIHHIIHH",
        b"fmt ",
        16,
        1,
        CHANNELS,
        SAMPLE_RATE,
        SAMPLE_RATE * CHANNELS * SAMPLE_BYTES,
        CHANNELS * SAMPLE_BYTES,
        8 * SAMPLE_BYTES,
    )
    + struct.pack("<4sI", b"data", _UNKNOWN_SIZE)
)

FORMATS: Final = ("pcm", "wav")


def checked(characters: int, response_format: str | None) -> bool:
    """Whether the caller wants a WAV header. Raises ProxyError for what the gateway cannot give."""
    if characters > CHARACTERS_MAX:
        # The gateway's own words; it would take a turn to hear them from there.
        raise ProxyError(
            "bad_request", f"Input text too long ({characters} chars). Maximum is {CHARACTERS_MAX} characters."
        )
    if response_format not in (None, *FORMATS):
        raise ProxyError("bad_request", "response_format must be pcm or wav: the gateway answers raw samples.")
    return response_format == "wav"
