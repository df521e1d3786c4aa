"""The one clock of the emulator: what limits, caches and jobs mean by "now"."""

import time
from typing import Protocol


class Clock(Protocol):
    """Emulated seconds since some fixed instant; they may pass faster than real ones."""

    scale: float
    """Emulated seconds in one real second."""

    def now_s(self) -> float: ...


class RealClock:
    """The machine's monotonic clock, running `scale` times as fast."""

    def __init__(self, scale: float = 1.0) -> None:
        if scale <= 0:
            raise ValueError("time can only be scaled by a number above 0")
        self.scale = scale

    def now_s(self) -> float:
        return time.monotonic() * self.scale


class HandClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.scale = 1.0
        self._now_s = now_s

    def now_s(self) -> float:
        return self._now_s

    def forward(self, seconds: float) -> None:
        self._now_s += seconds
