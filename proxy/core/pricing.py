"""What a call may cost at most, and what it did cost. Integers of 1e-8 credit; division happens here alone, upwards.

Until policies carry prices there is one price for every model and one flat ceiling for every call that can spend.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from proxy.core.answers import Family
from proxy.core.ledger import Figures
from proxy.core.usage import Usage
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
"""The hold of every call that can spend, until ceilings are computed from prices: 333,333 output tokens."""

CALL_PRICE: Final = Credits(0)
"""One tool call: the gateway's current unit price is 0 credits."""


def token_credits(input_tokens: int, output_tokens: int, price: Price) -> Credits:
    """Credits for tokens, each kind rounded up."""
    return Credits(
        share_up(price.input_per_million, input_tokens, MILLION)
        + share_up(price.output_per_million, output_tokens, MILLION)
    )


def paid_input(usage: Usage, family: Family) -> int | None:
    """Input tokens that are paid: native messages count what went through the cache beside `input`."""
    if usage.input is None or family is not Family.MESSAGES:
        return usage.input
    return usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)


def metered(usage: Usage, family: Family, output_bytes: int, input_bytes: int, price: Price = FLAT_PRICE) -> Figures:
    """All that is known of a call's cost, from what its meter saw.

    output_bytes: UTF-8 bytes of generated text seen.      input_bytes: of text sent.
    A running count is no last word: what was seen of the output may be more, so it does not count as reported.
    """
    gateway = None if usage.credits is None else _gateway_credits(usage.credits)
    counted = paid_input(usage, family)
    reported = seen = None
    if usage.settled and counted is not None and usage.output is not None:
        reported = token_credits(counted, usage.output, price)
    if output_bytes or usage.output:
        input_tokens = counted if counted is not None else -(-input_bytes // BYTES_PER_TOKEN)
        output_tokens = max(usage.output or 0, -(-output_bytes // BYTES_PER_TOKEN))
        seen = token_credits(input_tokens, output_tokens, price)
    return Figures(gateway, reported, seen)


def told_in_headers(headers: Iterable[tuple[str, str]], price: Price = FLAT_PRICE) -> Figures:
    """What an answer's header says of its cost: credits charged, or tokens where the body is no JSON (speech)."""
    told = {name.lower(): value for name, value in headers}
    charged = told.get("x-credits-charged")
    tokens_in, tokens_out = (_count(told.get(name)) for name in ("x-input-tokens", "x-output-tokens"))
    reported = None if tokens_in is None else token_credits(tokens_in, tokens_out or 0, price)
    return Figures(None if charged is None else _gateway_credits(charged), reported)


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 12 else None


def _gateway_credits(amount: Decimal | str) -> Credits | None:
    try:
        return credits_of(amount)
    except ValueError:
        # A figure beyond belief is no figure.
        return None
