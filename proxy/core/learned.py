"""How many tokens text has, learned from what the gateway reported for a route and model. Pure."""

from collections.abc import Iterable
from typing import Final

from proxy.core.riders import Learned

BYTES: Final = 1_000
"""A density is tokens in so many bytes of UTF-8; this many tokens is one a byte, which no text exceeds."""

FROM_BYTES: Final = 256
"""Shorter texts teach nothing: what frames a message weighs more in them than what it says."""

SURE: Final = 8
"""Answers after which a density is gone by."""

CALMS: Final = 16
"""A text that is less dense than what is known lowers that by one part in so many of the difference."""

KEPT_MAX: Final = 4096
"""Pairs of route and model that are kept; of others nothing is learned."""


class Densities:
    """What was learned so far, by route and model.

    A denser text counts at once and a thinner one little by little: an estimate that is too high keeps some money
    waiting, one that is too low lets a call cost more than it held.
    """

    def __init__(self, kept: Iterable[Learned] = ()) -> None:
        self._known: Final = {(one.route, one.model): one for one in kept}

    def of(self, route: str, model: str | None) -> int | None:
        """Tokens in `BYTES` of text, a quarter added for safety; None until enough is known."""
        known = self._known.get((route, model or ""))
        if known is None or known.answers < SURE:
            return None
        return min(BYTES, -(-known.density * 5 // 4))

    def answers(self, route: str, model: str | None) -> int:
        """From how many answers something was learned; counted up to `SURE`."""
        known = self._known.get((route, model or ""))
        return 0 if known is None else known.answers

    def see(self, route: str, model: str, text_bytes: int, tokens: int, at_s: float) -> Learned | None:
        """Learn from one answer; what is to be kept then, None when nothing has changed."""
        if text_bytes < FROM_BYTES:
            return None
        seen = min(BYTES, -(-tokens * BYTES // text_bytes))
        before = self._known.get((route, model))
        if before is None:
            if len(self._known) >= KEPT_MAX:
                return None
            density, answers = seen, 1
        else:
            density = max(seen, before.density - -(-max(0, before.density - seen) // CALMS))
            answers = min(SURE, before.answers + 1)
        if before is not None and (density, answers) == (before.density, before.answers):
            return None
        after = self._known[route, model] = Learned(route, model, density, answers, at_s)
        return after
