"""Request ids: the caller's own where it is plain, else a UUID of version 7, which sorts by time."""

import random
import re
import time
from math import inf
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


class Ids:
    """Makes ids by RFC 9562: version 7, monotonic by random increments.

    The instant is that of the first id of a second, so that most of the text is made once for all of them. What is
    added from one to the next is random, so that nobody reads off how many there were in between.
    """

    def __init__(self) -> None:
        self._begun_s = inf
        self._begun = ""
        self._last = 0

    def new(self, now_s: float | None = None) -> str:
        """One that is greater than all before it, as long as the clock goes on.

        Ids tell requests apart and guard nothing, so a system call for each would be wasted.
        """
        now_s = time.time() if now_s is None else now_s
        if not 0 <= now_s - self._begun_s < 1:
            self._begin(now_s)
        # Half of the 48 bits are free at the start of a second: enough for sixteen million ids.
        self._last += random.getrandbits(24) + 1
        return f"{self._begun}{self._last:012x}"

    def _begin(self, now_s: float) -> None:
        self._begun_s = now_s
        at = f"{int(now_s * 1000):012x}"
        self._begun = f"{at[:8]}-{at[8:]}-7{random.getrandbits(12):03x}-{0x8000 | random.getrandbits(14):04x}-"
        self._last = random.getrandbits(47)


new_id: Final = Ids().new


def request_id(asked: str | None) -> str:
    """The id of a request; a caller's that is not plain is not taken."""
    return asked if asked is not None and _PLAIN.fullmatch(asked) else new_id()
