"""How one emulator runs: the options of the Python API and, word for word, of `sluicegate emulate`."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a run; every default is what the documentation says, or the plainest thing.

    seed:            answers are a function of this and of the request.
    host, port:      where to listen; port 0 lets the system choose.
    chunk_delay_s:   real seconds between the events of a stream.
    time_scale:      emulated seconds in a real one: 60 makes a window of a minute last one second.
    amount_scale:    factor on every amount of the limits table, rounded down, never below 1.
    window:          how the limits count: the last N seconds, or aligned blocks of N seconds.
    limits:          False switches the limits table off.
    credits:         what each member starts with.
    strict_slashes:  True answers a path only in its documented form; False also without (or with) the last slash.
    segment:         path segment and header prefix of the vendor-native endpoints.
    jobs_polls:      how many polls a background job answers with an unfinished state before it is completed.
    faults:          faults armed from the start, written as in a marker: `slow gate=a`, `429 times=2`.
    """

    seed: int = 1
    host: str = "127.0.0.1"
    port: int = 0
    chunk_delay_s: float = 0.0
    time_scale: float = 1.0
    amount_scale: float = 1.0
    window: Literal["sliding", "fixed"] = "sliding"
    limits: bool = True
    credits: Decimal = Decimal(1000)
    strict_slashes: bool = True
    segment: str = "partner"
    jobs_polls: int = 2
    faults: tuple[str, ...] = ()
