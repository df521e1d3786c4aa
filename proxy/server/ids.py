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
    value = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | random.getrandbits(80)
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def request_id(asked: str | None) -> str:
    """The id of a request; a caller's that is not plain is not taken."""
    return asked if asked is not None and _PLAIN.fullmatch(asked) else new_id()
