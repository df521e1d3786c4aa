"""The hold of one call, with all that settling it needs."""

from collections.abc import Callable
from typing import Final, NamedTuple

from proxy.core.prices import FREE, NO_PRICE, Price
from proxy.core.tuples import maker
from proxy.units import Credits


class OpenHold(NamedTuple):
    """A hold that an exchange owns, or an operation after it.

    credits:     units of 1e-8 credit.          is_call: a tool call, counted as one.
    input_bytes: text bytes of the request, the base of an estimate when the gateway never says.
    price:       None where there is none: then only the gateway's own figure is a charge, else the hold.
    reasons:     thinking was asked for, which what is seen of an answer does not measure.
    per_unit:    the price counts images, videos or calls, so the hold is what an answer costs.
    """

    id: str
    credits: Credits
    is_call: bool
    input_bytes: int
    price: Price | None = FREE
    per_unit: bool = False
    reasons: bool = False

    @property
    def place(self) -> str:
        """Where its price stands."""
        return NO_PRICE if self.price is None else self.price.place


open_hold: Final[Callable[[tuple[str, Credits, bool, int, Price | None, bool, bool]], OpenHold]] = maker(OpenHold)
"""A hold of all its values, in order."""
