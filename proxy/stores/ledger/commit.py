"""A batch of steps on its way into the books: somebody waits for it, or has a function called when it is over."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from proxy.core.ledger import Outcome, Step


class LedgerUnavailable(Exception):
    """The home cannot take entries now; nothing of the batch was written."""


class Commit:
    """Await it for its outcomes, one a step; raises LedgerUnavailable. Who waits may be cancelled: the batch goes on.

    soon: somebody waits for it.
    """

    __slots__ = ("_outcomes", "_then", "_waiting", "_why", "soon", "steps")

    def __init__(self, steps: Sequence[Step], soon: bool = True) -> None:
        self.steps: Final = steps
        self.soon: Final = soon
        self._outcomes: list[Outcome] | None = None
        self._why: str | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._then: list[Callable[[Commit], None]] = []

    @property
    def over(self) -> bool:
        """Whether it was written or refused."""
        return self._outcomes is not None or self._why is not None

    @property
    def fault(self) -> LedgerUnavailable | None:
        """Why nothing of it was written, where that is so."""
        return None if self._why is None else LedgerUnavailable(self._why)

    @property
    def outcomes(self) -> list[Outcome]:
        """One a step, once it is over; raises LedgerUnavailable."""
        if self._outcomes is None:
            assert self._why is not None, "it is on its way"
            raise LedgerUnavailable(self._why)
        return self._outcomes

    def __await__(self) -> Generator[Any, None, list[Outcome]]:
        if self._outcomes is None and self._why is None:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            yield from waiting
        return self.outcomes

    def then(self, told: "Callable[[Commit], None]") -> None:
        """Have a function called once it is over."""
        if self.over:
            told(self)
        else:
            self._then.append(told)

    def written(self, outcomes: list[Outcome]) -> None:
        """It is in the books as far as its outcomes say so."""
        self._outcomes = outcomes
        self._tell()

    def refused(self, why: str) -> None:
        """Nothing of it was written."""
        if not self.over:
            self._why = why
            self._tell()

    def _tell(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        for told in self._then:
            # In a turn of its own, so that a fault in it is not one of the ledger.
            asyncio.get_running_loop().call_soon(told, self)
