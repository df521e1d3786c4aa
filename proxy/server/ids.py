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
    at_ms, bits = time.time_ns() // 1_000_000, random.getrandbits(74)
    return (
        f"{at_ms >> 16 & 0xFFFFFFFF:08x}-{at_ms & 0xFFFF:04x}-7{bits & 0xFFF:03x}"
        f"-{0x8000 | bits >> 12 & 0x3FFF:04x}-{bits >> 26:012x}"
    )


def request_id(asked: str | None) -> str:
    """The id of a request; a caller's that is not plain is not taken."""
    return asked if asked is not None and _PLAIN.fullmatch(asked) else new_id()
