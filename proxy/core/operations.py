"""Work that goes on at the gateway after its first answer: what its state words mean for the hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proxy.core.holds import OpenHold


@dataclass(frozen=True, slots=True)
class Operation:
    """Work that goes on at the gateway: whose it is, and the hold it carries.

    id: the gateway's, percent-decoded once.    kind: image, video or response.    begun_s: wall clock.
    """

    id: str
    team: str
    kind: str
    model: str | None
    hold: OpenHold
    begun_s: float


class Work(Enum):
    """Where an operation stands."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_WORDS: Final[Mapping[str, Work]] = {
    "queued": Work.OPEN,
    "in_progress": Work.OPEN,
    "processing": Work.OPEN,
    "completed": Work.DONE,
    "incomplete": Work.DONE,
    "failed": Work.FAILED,
    "cancelled": Work.CANCELLED,
}


def work(status: str | None) -> Work:
    """What a state word of the gateway means; one it never used before means the work is still open."""
    return _WORDS.get(status or "", Work.OPEN)
