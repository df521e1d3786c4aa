"""A turn that an exchange owns: told when the request is written, when it is answered, and when it is over."""

from typing import Final

from proxy.core.riders import Rider
from proxy.core.turns import Turn
from proxy.server.turns import Queue


class Admitted:
    """A turn that an exchange owns, until the call is over."""

    __slots__ = ("_queue", "turn")

    def __init__(self, queue: Queue, turn: Turn) -> None:
        self._queue: Final = queue
        self.turn: Final = turn

    def written(self) -> None:
        """The last byte of the request is with the gateway, as far as the system tells."""
        self._queue.written(self.turn)

    def counted(self) -> None:
        """The head of an answer is here."""
        self._queue.counted(self.turn)

    def never_sent(self) -> None:
        """No byte went out."""
        self._queue.give_back(self.turn)

    def closed(self, tokens: int | None, *, with_ending: bool) -> list[Rider]:
        """The call is over. The row that says so rides with the hold's ending, or goes out by itself."""
        rows = self._queue.closed(self.turn, tokens)
        if with_ending or not rows:
            return rows
        self._queue.note(rows)
        return []
