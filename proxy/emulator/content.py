"""Bytes of media: small, valid of their kind, and a function of what they are made for.

Links in answers (files of chatbots, images, videos on a CDN) lead to `/_emulator/content/...`, which needs no key, as a
signed URL needs none.
"""

import base64
import struct
import zlib
from typing import Final

from proxy.emulator.words import Dice, hex_id

PREFIX: Final = "/_emulator/content/"

SAMPLE_RATE_HZ: Final = 24_000
"""Speech is 16-bit signed little-endian mono at this rate, without a container."""

TYPES: Final = {"png": "image/png", "mp4": "video/mp4", "txt": "text/plain"}

VIDEO_BYTES: Final = 65_536

MP3_FRAME: Final = b"\xff\xfb\x90\xc4" + bytes(413)
"""One silent frame of MPEG 1 layer 3, 128 kbit/s, 44,100 Hz: 1152 samples, about 26 ms."""


def link(origin: str, ending: str, *key: object) -> str:
    """A URL of this emulator that answers with content of that kind."""
    return f"{origin}{PREFIX}{hex_id('', *key)}.{ending}?signature={hex_id('', 'signed', *key)}"


def content(target: str) -> bytes:
    """What a link of `link` leads to."""
    name = target.partition("?")[0]
    match name.rpartition(".")[2]:
        case "png":
            return png(name)
        case "mp4":
            return mp4(name)
        case _:
            return f"content of {name}\n".encode()


def content_type(target: str) -> str:
    return TYPES.get(target.partition("?")[0].rpartition(".")[2], "text/plain")


_FILM: Final = zlib.decompress(
    base64.b64decode(
        "eNp9UktLw0AQnrXRig9UrCJSNEKv4oPqRXyAIBUET3pRkNjdami2CdltQA8SPCniT/DgPxDE/oJevHlUPOjRX6BHnU1SutbHkMnM"
        "znNnvgWAbEkeebZwOUAbKIk8y738DEBqirtuAAAODw4pfKPUG0D6AQior0nke1TreQX+pTb8TqRvlVHfleWoZ+pnNewL//f5ta+Z"
        "MECOUSlQZpkjZDMjqRvlkndObUtlcNo6u6oWwlY9OkweUsdveAKbMj1yG89uwapQh6kYcs3tSgmVTMCjovo1czT2ZanPStoYPVXf"
        "MWOdWELuO6g/CSmoFnOPgAV/rEINbUIBZaER0bVhBUWTe+wg/zsQI5+f+N9kgooI7DAMl7CwgXLaHIhMvbgFYrSjZQyVG3W7u/PB"
        "uD0xoX55BkPEMDKrHRhCEFno9yzhJRdUnNmXfrz9pJhqLGSETGMQI4EsgwPrdsVZtBVbbEYic+g71gYyEuy7NcaaRbeZn9pBuVil"
        "UqE+x1kkFU3oCOOr8C3Pc/RtddrxM+os+UzBv86phWdyC/1pFLXh5dHJ29PHZ/cF4GXtwnmtzT9/KMfe+AJaXKWW+64aamL9Akzq"
        "e8s="
    )
)
"""Four frames of 32 by 32 in teal, MPEG-4 part 2, made for this purpose."""

_FILM_LENGTHS: Final = ((60, 1000), (180, 1000), (268, 1000), (312, 16_384), (674, 16_384 / 4))
"""Where the film's length stands (mvhd, tkhd, elst, mdhd, and per frame in stts), and in which parts of a second."""


def png(key: str, size: int = 8) -> bytes:
    """A square of one colour."""
    dice = Dice("png", key)
    row = b"\0" + bytes([dice.byte(), dice.byte(), dice.byte()]) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(row * size, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def mp4(key: str, seconds: float = 8) -> bytes:
    """A film of one colour and of that length; what is left of its bytes is padding that depends on the key."""
    film = bytearray(_FILM)
    for place, scale in _FILM_LENGTHS:
        struct.pack_into(">I", film, place, round(seconds * scale))
    room = VIDEO_BYTES - len(film) - 8
    pattern = hex_id("", "mp4", key).encode()
    return bytes(film) + struct.pack(">I4s", room + 8, b"free") + (pattern * (room // len(pattern) + 1))[:room]


def pcm(key: str, seconds: float) -> bytes:
    """A quiet triangle wave whose pitch depends on the key."""
    half = 40 + Dice("pcm", key).below(60)
    rise = [height * 4000 // half for height in range(-half, half)]
    wave = struct.pack(f"<{4 * half}h", *rise, *reversed(rise))
    length = int(seconds * SAMPLE_RATE_HZ) * 2
    return (wave * (length // len(wave) + 1))[:length]


def mp3(seconds: float) -> bytes:
    return MP3_FRAME * max(1, round(seconds * 44_100 / 1152))


def size_of_image(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF or JPEG, None when it is none of them."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return struct.unpack(">II", data[16:24])
    if data[:3] == b"GIF" and len(data) >= 10:
        return struct.unpack("<HH", data[6:10])
    at = 2
    while data[:2] == b"\xff\xd8" and at + 9 <= len(data) and data[at] == 0xFF:
        kind, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        # Start-of-frame segments, without the three numbers among them that mean something else.
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + length
    return None
