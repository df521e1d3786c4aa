"""What a call may cost at most, and what it did cost. Integers of 1e-8 credit; division happens here alone, upwards.

Until policies carry prices there is one price for every model and one flat ceiling for every call that can spend.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from proxy.core.ledger import Figures
from proxy.units import Credits, credits_of, share_up

MILLION: Final = 1_000_000

BYTES_PER_TOKEN: Final = 2
"""Output is metered at one token per two bytes of UTF-8: real text of any language tried has more bytes to a token."""


@dataclass(frozen=True, slots=True)
class Price:
    """Credits (units of 1e-8) per million tokens, and per tool call."""

    input_per_million: Credits
    output_per_million: Credits
    per_call: Credits = Credits(0)


FLAT_PRICE: Final = Price(credits_of(10), credits_of(30))
"""Stands for every model until prices come from the policy."""

FLAT_CEILING: Final = credits_of(10)
"""The hold of every call that can spend, until ceilings are computed from prices: 333,333 output tokens at that price."""

CALL_PRICE: Final = Credits(0)
"""One tool call: the gateway's current unit price is 0 credits."""


@dataclass(frozen=True, slots=True)
class Metered:
    """Tokens as the meter saw them; None where the gateway said nothing.

    input:       input tokens that are paid, cached ones included.
    output:      output tokens, reasoning included.
    output_bytes: bytes of generated text seen.
    input_bytes: bytes of text sent.
    credits:     the gateway's own figure, in credits.
    """

    input: int | None
    output: int | None
    output_bytes: int = 0
    input_bytes: int = 0
    credits: Decimal | None = None


def token_credits(input_tokens: int, output_tokens: int, price: Price) -> Credits:
    """Credits for tokens, each kind rounded up."""
    return Credits(
        share_up(price.input_per_million, input_tokens, MILLION)
        + share_up(price.output_per_million, output_tokens, MILLION)
    )


def figures(seen: Metered, price: Price = FLAT_PRICE, *, complete: bool) -> Figures:
    """All that is known of a call's cost.

    complete: the answer came to its end, so reported usage is the last word. In a cut answer reported output is only a
              floor, and what was seen may be more.
    """
    gateway = None if seen.credits is None else _gateway_credits(seen.credits)
    reported = None
    if seen.input is not None and seen.output is not None and (complete or seen.output_bytes == 0):
        reported = token_credits(seen.input, seen.output, price)
    metered = None
    if seen.output_bytes or seen.output:
        input_tokens = seen.input if seen.input is not None else -(-seen.input_bytes // BYTES_PER_TOKEN)
        output_tokens = max(seen.output or 0, -(-seen.output_bytes // BYTES_PER_TOKEN))
        metered = token_credits(input_tokens, output_tokens, price)
    return Figures(gateway, reported, metered)


def _gateway_credits(amount: Decimal) -> Credits | None:
    try:
        return credits_of(amount)
    except ValueError:
        # A figure beyond belief is no figure.
        return None
