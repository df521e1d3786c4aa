"""Credits as the emulator books them: whole numbers of 1e-8 credit, exact in JSON."""

from decimal import Decimal
from typing import Final

import orjson

CREDIT: Final = 100_000_000
"""Units in one credit; one speech token (1e-7 credit) is 10 of them."""


def units_of(amount: Decimal | int | str) -> int:
    """Credits as units. Raises ValueError when the amount is finer than a unit."""
    units = Decimal(amount) * CREDIT
    if units != units.to_integral_value():
        raise ValueError(f"{amount} credits is finer than 1e-8")
    return int(units)


def credit_text(units: int) -> str:
    """Units as credits, without exponent and needless zeros: 150000000 is `1.5`."""
    sign, (whole, rest) = "-" if units < 0 else "", divmod(abs(units), CREDIT)
    return f"{sign}{whole}.{rest:08d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"


def credit_number(units: int) -> orjson.Fragment:
    """Units as a JSON number with every digit; a float would round."""
    return orjson.Fragment(credit_text(units).encode())
