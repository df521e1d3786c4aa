"""Time that survives a restart of the process: which start of the machine this is, and how long ago it was.

A wall clock can be set; the time since the machine's start cannot. Where a platform does not tell one start from
another, every earlier row counts as one of an earlier start, which only lengthens waits.
"""

import time
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from proxy.core.slots import GUARD_MAX_S

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

LONG_S: Final = 3600.0
"""Of windows above an hour the wall clock is believed across a start of the machine: otherwise a day begins anew."""


SET_S: Final = 1.0
"""By how much the clock on the wall has to gain at once: less is what keeps it exact."""


@dataclass(frozen=True, slots=True)
class Boot:
    """id: of this start of the machine, "" where nobody knows."""

    id: str

    @staticmethod
    def since_s() -> float:
        """Seconds since the machine's start, sleep included where the platform tells."""
        return time.clock_gettime(_CLOCK)

    def is_this(self, boot_id: str) -> bool:
        """Whether a row was written since the machine's start; False where nobody knows."""
        return bool(self.id) and boot_id == self.id

    def age_s(
        self, boot_id: str, boot_s: float, wall_s: float, window_s: float, *, since_s: float, now_s: float
    ) -> float:
        """How long ago it was what a row tells, at least; below zero where it is still to come.

        since_s: what `since_s()` says now.      now_s: the wall clock's.
        """
        if self.is_this(boot_id):
            return max(-GUARD_MAX_S, since_s - boot_s)
        # It was before this start of the machine; how long before, only the wall clock can say.
        return max(since_s, now_s - wall_s) if window_s > LONG_S else since_s


class SetForward:
    """Notices that the clock on the wall was set forward: what was dated before looks older than it is from then on."""

    def __init__(self) -> None:
        self._ahead_s = inf
        self._at_s = -inf

    def ago_s(self, wall_s: float, since_s: float) -> float:
        """How long ago that was, inf where it never was. since_s: what `Boot.since_s()` says at the same instant."""
        ahead_s = wall_s - since_s
        if ahead_s > self._ahead_s + SET_S:
            self._at_s = since_s
        self._ahead_s = ahead_s
        return since_s - self._at_s


def this_boot() -> Boot:
    """The start of the machine that this process runs in."""
    try:
        return Boot(_BOOT_ID.read_text("ascii").strip())
    except (OSError, ValueError):
        return Boot("")
