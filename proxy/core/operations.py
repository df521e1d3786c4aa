"""Work that goes on at the gateway after its first answer: what its state words mean for the hold."""

from collections.abc import Mapping
from enum import Enum
from typing import Final


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
