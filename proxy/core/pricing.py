"""What a call may cost at most, and what it did cost. Integers of 1e-8 credit; division happens here alone, upwards."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Final, NamedTuple

from proxy.core.answers import Family
from proxy.core.body import Facts as Body
from proxy.core.charges import Figures, figures_of
from proxy.core.learned import BYTES, FROM_BYTES
from proxy.core.prices import FLAT, Price
from proxy.core.tuples import maker
from proxy.core.usage import Usage
from proxy.units import Credits, credits_of, share_up

MILLION: Final = 1_000_000

BYTES_PER_TOKEN: Final = 2
"""A token has at least two bytes of UTF-8 in real text of any language tried: English 5.9, Python 3.7, Korean 2.8, JSON
2.1 (cl100k, measured)."""

RESPONSES_OUTPUT_MAX: Final = 4096
"""Default of `max_output_tokens` on Responses, by the gateway's document."""


class Estimate(Enum):
    """How input tokens are bounded before the call.

    BYTES:   a token has two bytes, or more.
    LEARNED: as the gateway counted before on the same route and model; a denser text than any before may cost more.
    STRICT:  a token may have one byte, which no text exceeds.
    """

    BYTES = "bytes"
    LEARNED = "learned"
    STRICT = "strict"


class Unit(Enum):
    """What a route's price counts."""

    __hash__ = object.__hash__  # by identity, which takes no call

    TOKENS = "tokens"
    SPEECH = "speech"
    IMAGES = "images"
    VIDEO = "video"
    CALL = "call"


_STRICT, _BYTES, _SPEECH, _MESSAGES = Estimate.STRICT, Estimate.BYTES, Unit.SPEECH, Family.MESSAGES
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""


class Asked(NamedTuple):
    """What of a request its ceiling depends on.

    parent_tokens: input and output of the answer a Responses call is chained to.
    thinking_max:  output tokens beyond `output_max`.
    density:       learned tokens in 1,000 bytes of text, None where none is known; asked for by `LEARNED` alone.
    """

    unit: Unit
    text_bytes: int = 0
    parts: int = 0
    output_max: int | None = None
    n: int = 1
    parent_tokens: int = 0
    thinking_max: int = 0
    density: int | None = None

    def input_tokens(self, price: Price, estimate: Estimate) -> int:
        """The most tokens that go in."""
        if estimate is _STRICT:
            text = self.text_bytes
        elif estimate is _BYTES or self.density is None:
            text = -(-self.text_bytes // BYTES_PER_TOKEN)
        else:
            # What frames a short text is not in the density, which is that of long ones.
            short = -(-min(self.text_bytes, FROM_BYTES) // BYTES_PER_TOKEN)
            text = max(short, -(-self.text_bytes * self.density // BYTES))
        return text + self.parts * price.part_tokens + self.parent_tokens

    def output_tokens(self, price: Price) -> int:
        """The most tokens that all answers together can have."""
        return ((self.output_max or price.output_tokens_max) + self.thinking_max) * self.n


asked_of: Final[Callable[[tuple[Unit, int, int, int | None, int, int, int, int | None]], Asked]] = maker(Asked)
"""What a ceiling depends on, of all its values, in order."""


def covers(price: Price, unit: Unit) -> bool:
    """Whether a price is one of this unit; one that prices other units alone is none, and one of zeros is free."""
    return bool(_SAID[unit](price)) or not any(said(price) for said in _SAID.values())


_SAID: Final[Mapping[Unit, Callable[[Price], int]]] = {
    Unit.TOKENS: lambda price: price.input_per_million or price.output_per_million,
    Unit.SPEECH: lambda price: price.input_per_million or price.output_per_million,
    Unit.IMAGES: lambda price: price.per_image,
    Unit.VIDEO: lambda price: price.per_video,
    Unit.CALL: lambda price: price.per_call,
}
"""What a price says for each unit; 0 for nothing."""


def asked(unit: Unit, body: Body | None, *, default_output: int | None = None, parent_tokens: int = 0) -> Asked:
    """What a judged body asks for. default_output: bound that the route itself gives."""
    if body is None:
        return Asked(unit)
    parts = body.images + body.files + body.audio
    output_max = body.output_max or default_output
    return asked_of((unit, body.text_bytes, parts, output_max, body.n, parent_tokens, body.thinking_max, None))


class Term(NamedTuple):
    """One summand of a ceiling: so many, at a price for each `per`. credits, price: units of 1e-8 credit."""

    what: str
    units: int
    price: Credits
    per: int
    credits: Credits


def ceiling(what: Asked, price: Price, estimate: Estimate = Estimate.BYTES) -> Credits:
    """The most that a call can cost."""
    return Credits(sum(term.credits for term in terms(what, price, estimate)))


def terms(what: Asked, price: Price, estimate: Estimate = Estimate.BYTES) -> tuple[Term, ...]:
    """What a ceiling is made of."""
    if (counted := _COUNTED.get(what.unit)) is not None:
        return (counted(what, price),)
    input_tokens, dearest, output_tokens, dear = _tokens(what, price, estimate)
    read = Term("input tokens", input_tokens, dearest, MILLION, share_up(dearest, input_tokens, MILLION))
    if what.unit is _SPEECH and not output_tokens:
        return (read,)
    return (read, Term("output tokens", output_tokens, dear, MILLION, share_up(dear, output_tokens, MILLION)))


def _tokens(what: Asked, price: Price, estimate: Estimate) -> tuple[int, Credits, int, Credits]:
    """The most tokens that go in and their dearest price, and the most that come out and their price."""
    written = price.cache_write_per_million
    dearest = price.input_per_million if written is None else max(price.input_per_million, written)
    # Of speech the gateway tells output tokens, too, and they cost what the price says, which is mostly nothing.
    silent = what.unit is _SPEECH and not price.output_per_million
    output_tokens = 0 if silent else what.output_tokens(price)
    return what.input_tokens(price, estimate), dearest, output_tokens, price.output_per_million


_COUNTED: Final[Mapping[Unit, Callable[[Asked, Price], Term]]] = {
    Unit.CALL: lambda _what, price: Term("calls", 1, price.per_call, 1, price.per_call),
    Unit.VIDEO: lambda _what, price: Term("videos", 1, price.per_video, 1, price.per_video),
    Unit.IMAGES: lambda what, price: Term("images", what.n, price.per_image, 1, Credits(price.per_image * what.n)),
}
"""Ceilings of what is not counted in tokens."""


def at_most(what: Asked, price: Price, estimate: Estimate = Estimate.BYTES) -> tuple[Credits, int]:
    """The most that a call can cost, and the most tokens it can use; no tokens for what is not counted in them."""
    if (counted := _COUNTED.get(what.unit)) is not None:
        return counted(what, price).credits, 0
    input_tokens, dearest, output_tokens, dear = _tokens(what, price, estimate)
    cost = share_up(dearest, input_tokens, MILLION) + share_up(dear, output_tokens, MILLION)
    return Credits(cost), input_tokens + output_tokens


def token_credits(input_tokens: int, output_tokens: int, price: Price) -> Credits:
    """Credits for tokens, each kind rounded up."""
    # As `share_up` does it, without a call for each.
    read = -(-price.input_per_million * input_tokens // MILLION)
    written = -(-price.output_per_million * output_tokens // MILLION)
    return Credits(read + written)


def paid_input(usage: Usage, family: Family) -> int | None:
    """Input tokens that are paid: native messages count what went through the cache beside `input`."""
    if usage.input is None or family is not _MESSAGES:
        return usage.input
    return usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)


def usage_credits(usage: Usage, family: Family, price: Price) -> Credits | None:
    """Credits for reported usage, cached tokens at their own prices; None where it is not whole."""
    counted = paid_input(usage, family)
    if counted is None or usage.output is None:
        return None
    read, written = usage.cache_read or 0, usage.cache_write or 0
    read_price = price.input_per_million if price.cached_input_per_million is None else price.cached_input_per_million
    write_price = price.input_per_million if price.cache_write_per_million is None else price.cache_write_per_million
    if not read and not written:
        return token_credits(counted, usage.output, price)
    plain = max(0, counted - read - written)
    return Credits(
        token_credits(plain, usage.output, price)
        + share_up(read_price, read, MILLION)
        + share_up(write_price, written, MILLION)
    )


def metered(usage: Usage, family: Family, output_bytes: int, input_bytes: int, price: Price = FLAT) -> Figures:
    """All that is known of a call's cost, from what its meter saw.

    output_bytes: UTF-8 bytes of generated text seen.      input_bytes: of text sent.
    A running count is no last word: what was seen of the output may be more, so it does not count as reported. What was
    seen is of interest only where nothing is reported.
    """
    gateway = None if usage.credits is None else gateway_credits(usage.credits)
    reported = usage_credits(usage, family, price) if usage.settled else None
    seen = None
    if reported is None and (output_bytes or usage.output):
        counted = paid_input(usage, family)
        input_tokens = counted if counted is not None else -(-input_bytes // BYTES_PER_TOKEN)
        output_tokens = max(usage.output or 0, -(-output_bytes // BYTES_PER_TOKEN))
        seen = token_credits(input_tokens, output_tokens, price)
    return figures_of((gateway, reported, seen))


_TELLING: Final = frozenset({"x-credits-charged", "x-input-tokens", "x-output-tokens"})


def told_in_headers(headers: Iterable[tuple[str, str]], price: Price = FLAT) -> Figures | None:
    """What an answer's header says of its cost: credits charged, or tokens where the body is no JSON (speech)."""
    told: dict[str, str] = {}
    for name, value in headers:
        if (low := name.lower()) in _TELLING:
            told[low] = value
    if not told:
        return None
    charged = told.get("x-credits-charged")
    tokens_in, tokens_out = (_count(told.get(name)) for name in ("x-input-tokens", "x-output-tokens"))
    reported = None if tokens_in is None else token_credits(tokens_in, tokens_out or 0, price)
    return Figures(None if charged is None else gateway_credits(charged), reported)


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 12 else None


def gateway_credits(amount: Decimal | str) -> Credits | None:
    """The gateway's own figure as an amount; None for one beyond belief."""
    try:
        return credits_of(amount)
    except ValueError:
        return None
