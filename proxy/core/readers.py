"""Readers: whose answers are read to their end after their callers left, and who gives way where there is no room."""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Readers(Generic[T]):
    """What is read on, by team. Each team has an even part of the room as soon as another one wants it."""

    def __init__(self) -> None:
        self._of: Final[dict[str, dict[T, None]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def take(self, team: str, one: T, room: int) -> T | None:
        """Give a place; whoever has none now: nobody, this one, or the newest one of the team that has most places.

        room: places in all.
        """
        loser = None
        if self._count >= room:
            most = max(self._of, key=lambda name: len(self._of[name]), default=team)
            if len(self._of.get(team, ())) + 1 >= len(self._of.get(most, ())):
                return one
            loser = next(reversed(self._of[most]))
            self.leave(most, loser)
        self._of.setdefault(team, {})[one] = None
        self._count += 1
        return loser

    def leave(self, team: str, one: T) -> None:
        """Give a place back; does nothing for one that has none."""
        mine = self._of.get(team, {})
        if one in mine:
            del mine[one]
            self._count -= 1
            if not mine:
                del self._of[team]
