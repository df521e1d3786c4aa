"""Which price a call has: a table of rules by name, the most specific wins. All amounts are units of 1e-8 credit."""

from dataclasses import dataclass, field
from typing import Final

from proxy.core.names import read_as
from proxy.units import Credits, credits_of

OUTPUT_TOKENS_MAX: Final = 32_768
"""Bound of an answer whose request and price name none: the largest that common models give by default."""

PART_TOKENS: Final = 4_000
"""Input tokens that one image, file or sound counts as unless its price says otherwise."""


BUILT_IN: Final = "built in"
"""The place of a price that no policy says."""

NO_PRICE: Final = "no price"
"""The place of the price of a call that has none: only the gateway knows what it costs."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one call costs. Tokens are priced per million; images, videos and calls each.

    cached_input, cache_write: None is the price of input.
    output_tokens_max: bound of an answer whose request names none.
    part_tokens:       input tokens of each part that is no text, as an upper bound.
    source:            file:line:col, "" for a built-in one.
    """

    input_per_million: Credits = Credits(0)
    output_per_million: Credits = Credits(0)
    cached_input_per_million: Credits | None = None
    cache_write_per_million: Credits | None = None
    per_image: Credits = Credits(0)
    per_video: Credits = Credits(0)
    per_call: Credits = Credits(0)
    output_tokens_max: int = OUTPUT_TOKENS_MAX
    part_tokens: int = PART_TOKENS
    source: str = ""

    @property
    def place(self) -> str:
        """Where it stands, in words for people."""
        return self.source or BUILT_IN


FREE: Final = Price()
"""A tool call costs nothing unless a rule says otherwise: the gateway's current unit price is 0 credits."""

FLAT: Final = Price(credits_of(10), credits_of(30), per_image=credits_of(50), per_video=credits_of(1000),
                    per_call=credits_of(10))  # fmt: skip
"""Stands for every model as long as the policy has no prices and no budget that needs one."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A price for what a glob names. kind: models, chatbots or suites."""

    kind: str
    pattern: str
    price: Price

    @property
    def specificity(self) -> tuple[bool, int]:
        """Exact names first, then the longer literal beginning."""
        literal = len(self.pattern)
        for at, letter in enumerate(self.pattern):
            if letter in "*?[":
                literal = at
                break
        return literal == len(self.pattern), literal


FOUND_MAX: Final = 4096
"""Names whose price is remembered, so that a call does not go through every rule."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Rules, ready to be asked."""

    rules: tuple[Rule, ...] = ()
    _found: dict[tuple[str, str | None], Price | None] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rules)

    def find(self, kind: str, name: str | None) -> Price | None:
        """The price of the most specific rule that a name may be read as one of, None when there is none."""
        asked = kind, name
        if asked in self._found:
            return self._found[asked]
        fitting = [rule for rule in self.rules if rule.kind == kind and read_as(rule.pattern, name)]
        price = max(fitting, key=lambda rule: rule.specificity).price if fitting else None
        # Callers may ask for any name, so what is remembered is bounded.
        if len(self._found) >= FOUND_MAX:
            self._found.clear()
        self._found[asked] = price
        return price

    def ties(self) -> list[tuple[Rule, Rule]]:
        """Pairs of rules that no specificity tells apart: the same pattern twice, whatever its case."""
        seen: dict[tuple[str, str], Rule] = {}
        pairs = []
        for rule in self.rules:
            first = seen.setdefault((rule.kind, rule.pattern.lower()), rule)
            if first is not rule:
                pairs.append((first, rule))
        return pairs
