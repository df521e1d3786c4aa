import struct

import pytest

from proxy.emulator.content import mp3, mp4, pcm, png, size_of_image

JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 300, 500) + bytes(12)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (png("a"), (8, 8)),
        (b"GIF89a" + struct.pack("<HH", 7, 9), (7, 9)),
        (JPEG, (500, 300)),
        (JPEG[:10], None),
        (b"", None),
        (b"RIFF", None),
    ],
)
def test_the_size_of_an_image_is_read_from_its_head(data, size):
    assert size_of_image(data) == size


def test_media_are_a_function_of_their_key():
    assert png("a") == png("a") != png("b")
    assert mp4("a") == mp4("a") != mp4("b")
    assert pcm("a", 1) == pcm("a", 1) != pcm("c", 1)
    assert len(pcm("a", 0.5)) == 24_000
    assert len(mp3(1)) == 38 * 417
