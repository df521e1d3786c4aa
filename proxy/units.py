"""Credits, durations, sizes and instants: exact at the edges, plain integers inside.

A *credit* amount is an `int` of 1e-8 credit everywhere inside: one speech token costs 1e-7 credit, which is 10 units.
Text becomes an amount through `Decimal` and is rounded up, once. No float touches money.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from typing import Final, NewType

Credits = NewType("Credits", int)
"""An amount of money in units of 1e-8 credit."""

CREDIT: Final = 100_000_000
"""Units in one credit."""

CREDITS_MAX: Final = Credits(2**53)
"""Largest amount accepted from outside: 90,071,992.54740992 credits, exact even where a peer computes in doubles."""

_EXACT: Final = Context(prec=60, rounding=ROUND_CEILING, traps=[InvalidOperation])


def credits_of(text: str | int | Decimal) -> Credits:
    """Read an amount of credits, rounded up to the next 1e-8.

    Raises ValueError for anything that is not a finite decimal number between 0 and `CREDITS_MAX`. A float is refused
    by its type: it has already been rounded by somebody else.
    """
    if isinstance(text, bool | float):
        raise TypeError("credits are read from text, an integer or a Decimal, never from a float")
    with localcontext(_EXACT):
        try:
            amount = Decimal(text)
        except InvalidOperation as error:
            raise ValueError(f"{text!r} is not an amount of credits") from error
        # The size is judged before any arithmetic: 1e999999 must not build a million digits.
        if not amount.is_finite() or amount < 0 or amount.adjusted() > 9:
            raise ValueError(f"{text!r} is not an amount between 0 and {credit_text(CREDITS_MAX)} credits")
        units = int((amount * CREDIT).to_integral_value(rounding=ROUND_CEILING))
    if units > CREDITS_MAX:
        raise ValueError(f"{text!r} is more than {credit_text(CREDITS_MAX)} credits")
    return Credits(units)


@lru_cache(maxsize=4096)
def credit_text(amount: int) -> str:
    """Write an amount in credits, exactly and without needless zeros: 150000000 is `1.5`."""
    whole, rest = divmod(abs(amount), CREDIT)
    sign = "-" if amount < 0 else ""
    return f"{sign}{whole}.{rest:08d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"


def share_up(amount: int, part: int, whole: int) -> Credits:
    """`amount * part / whole`, rounded up: how a price is divided."""
    return Credits(-(-amount * part // whole))


_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_SECONDS: Final = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600),
                   "d": Decimal(86400), "w": Decimal(604800)}  # fmt: skip


def seconds_of(text: str | float) -> float:
    """Read a duration: a bare number of seconds, or parts such as `1h30m`, `500ms`, `7d`. Raises ValueError."""
    if isinstance(text, bool):
        raise ValueError("a duration is a number of seconds or text such as 30s")
    if isinstance(text, int | float):
        if not 0 <= text < 1e10:
            raise ValueError(f"{text!r} is not a duration")
        return float(text)
    compact = text.strip().lower()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", compact):
        return float(compact)
    parts = _DURATION.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise ValueError(f"{text!r} is not a duration: write a number and one of {', '.join(_SECONDS)}, such as 30s")
    return float(sum(Decimal(number) * _SECONDS[unit] for number, unit in parts))


_SIZE: Final = re.compile(r"([0-9]+)\s*(b|kb|mb|gb|kib|mib|gib)?")
_BYTES: Final = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}


def bytes_of(text: str | int) -> int:
    """Read a size in bytes: a whole number, or one with `kB`, `MB`, `KiB`, `MiB`, … Raises ValueError."""
    match = _SIZE.fullmatch(str(text).strip().lower())
    if isinstance(text, bool) or not match:
        raise ValueError(f"{text!r} is not a size: write a whole number of bytes, or one such as 25MiB")
    return int(match[1]) * _BYTES[match[2] or ""]


def instant_text(at_s: float) -> str:
    """A wall-clock instant as ISO 8601 in UTC, whole seconds, rounded up so that nobody asks too early."""
    return datetime.fromtimestamp(-(-at_s // 1), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def listed(words: Iterable[str]) -> str:
    """Join words for a sentence: `a, b and c`."""
    *head, last = list(words) or [""]
    return f"{', '.join(head)} and {last}" if head else last


__all__ = ["CREDIT", "CREDITS_MAX", "Credits", "bytes_of", "credit_text", "credits_of", "instant_text",
           "listed", "seconds_of", "share_up"]  # fmt: skip
