"""The numbers that a file's rows have instead of texts: of what they are about, and of where a price stands.

A new number is written with the first row that has it. Nothing of it is ever removed, so entries can be read for ever.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from proxy.core.facts import Facts
from proxy.stores.ledger.rows import Row, texts

FACTS_MAX: Final = 4096
"""Facts whose numbers are remembered. Callers name models, so there is no end to them: those that come again after so
many others get another number."""


class Places:
    """Places by their numbers."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self._numbers: Final = dict(known)

    def number(self, text: str, rows: list[Row]) -> int | None:
        """The number of a place, None for none; the row of a new one goes to `rows`."""
        number = self._numbers.get(text)
        if number is None and text:
            # Places are never removed, so the next number is free.
            number = self._numbers[text] = len(self._numbers) + 1
            rows.append(("place", number, text))
        return number


class FactNumbers:
    """Facts by their numbers."""

    def __init__(self, newest: Sequence[tuple[int, Facts]] = ()) -> None:
        """newest: those with the highest numbers of a file, from the highest on."""
        # Of facts with several numbers it is the newest that is given again.
        self._numbers: Final = {facts: number for number, facts in reversed(newest)}
        self._last = newest[0][0] if newest else 0

    def number(self, facts: Facts, rows: list[Row]) -> int:
        """The number of facts; the row of a new one goes to `rows`."""
        number = self._numbers.get(facts)
        if number is None:
            if len(self._numbers) >= FACTS_MAX:
                self._numbers.clear()
            number = self._last = self._last + 1
            self._numbers[facts] = number
            rows.append(("facts", number, *texts(facts)))
        return number
