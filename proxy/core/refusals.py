"""Refusals: what the gateway said no to a moment ago, so that nobody asks it the same again at once.

Clients repeat a refused call 6 to 30 times. The first refusal is remembered for seconds; the rest hear it from here.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

LATCH_S: Final = 15.0
"""How long a credential that has no credits left is believed to have none."""

MEMORY_S: Final = 10.0
"""How long an identical body hears the same refusal."""

MEMORY_MAX: Final = 256
"""Refusals kept; each is at most the 64 KiB of an error body that are read."""

REMEMBERED: Final = frozenset({401, 403, 404, 422})
"""Statuses that an identical request gets again; others may change from one second to the next."""


@dataclass(frozen=True, slots=True)
class Said:
    """An error answer of the gateway, in the form that answers have."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Latch:
    """until_s: on the clock of turns.      ceiling: of the cheapest call refused, in units of 1e-8 credit."""

    until_s: float
    ceiling: int


class Refusals:
    """What is remembered, of one gateway."""

    def __init__(self) -> None:
        self._latches: Final[dict[str, Latch]] = {}
        self._said: Final[OrderedDict[Hashable, tuple[float, Said]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._said)

    def no_credits(self, credential: str, ceiling: int, now_s: float) -> bool:
        """The gateway refused a call for want of credits; whether that is news.

        One that may cost nothing says nothing about others.
        """
        if ceiling <= 0:
            return False
        was = self._latches.get(credential)
        holds = was is not None and was.until_s > now_s
        lowest = min(ceiling, was.ceiling) if was is not None and holds else ceiling
        self._latches[credential] = Latch(now_s + LATCH_S, lowest)
        return not holds

    def has_credits(self, credential: str) -> bool:
        """The gateway took a call that costs; whether that is news."""
        return self._latches.pop(credential, None) is not None

    def latched_s(self, credential: str, ceiling: int, now_s: float) -> float | None:
        """For how long a call would be refused as one was that may cost no more; None where it may be asked."""
        latch = self._latches.get(credential)
        if latch is None or latch.until_s <= now_s or ceiling <= 0 or ceiling < latch.ceiling:
            return None
        return latch.until_s - now_s

    def remember(self, key: Hashable, said: Said, now_s: float) -> None:
        """Keep a refusal."""
        self._said[key] = (now_s + MEMORY_S, said)
        self._said.move_to_end(key)
        while len(self._said) > MEMORY_MAX or next(iter(self._said.values()))[0] <= now_s:
            self._said.popitem(last=False)

    def recall(self, key: Hashable, now_s: float) -> Said | None:
        """What an identical request was told a moment ago."""
        until_s, said = self._said.get(key, (now_s, None))
        if said is not None and until_s <= now_s:
            del self._said[key]
            return None
        return said
