"""The last requests, in memory and in bounds, for people who look: what the log says of them, never a body."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

KEPT: Final = 500
"""Requests kept: some 500 KB, and minutes of a busy proxy."""


class Seen(NamedTuple):
    """One request that ended. number: counts up from 1.      at_s: wall clock.      story: as the log has it."""

    number: int
    at_s: float
    story: Mapping[str, Any]


class Recent:
    """The last requests, newest first."""

    def __init__(self, kept: int = KEPT) -> None:
        # Bare, as each request adds one and few are ever looked at.
        self._seen: Final[deque[tuple[int, float, Mapping[str, Any]]]] = deque(maxlen=kept)
        self._number = 0

    def add(self, at_s: float, story: Mapping[str, Any]) -> None:
        """Keep one, and let go of the oldest where there are too many."""
        self._number += 1
        self._seen.append((self._number, at_s, story))

    def since(self, number: int = 0, **wanted: str) -> list[Seen]:
        """Those after a number whose fields are as wanted; an empty word wants anything."""
        words = {name: word for name, word in wanted.items() if word}
        return [
            seen
            for seen in map(Seen._make, reversed(self._seen))
            if seen.number > number and all(str(seen.story.get(name, "")) == word for name, word in words.items())
        ]
