"""Request ids: the caller's own where it is plain, else a UUID of version 7, which sorts by time."""

import random
import re
import time
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


def new_id() -> str:
    """RFC 9562 version 7: 48 bits of milliseconds, then random bits.

    Ids tell requests apart and guard nothing, so a system call for each would be wasted.
    """
    at_ms = time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF
    hexadecimal = "%032x" % (at_ms << 80 | random.getrandbits(80) & _RANDOM | _VERSION)
    return "-".join((hexadecimal[:8], hexadecimal[8:12], hexadecimal[12:16], hexadecimal[16:20], hexadecimal[20:]))


_RANDOM: Final = 0x0FFF_3FFF_FFFF_FFFF_FFFF
_VERSION: Final = 0x7000_8000_0000_0000_0000
"""Which of the lower 80 bits are random, and what the others say."""


def request_id(asked: str | None) -> str:
    """The id of a request; a caller's that is not plain is not taken."""
    return asked if asked is not None and _PLAIN.fullmatch(asked) else new_id()
