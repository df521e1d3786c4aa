"""Where the price of each call stands: the places a home has seen, and what its entries say of them."""

from collections.abc import Mapping
from typing import Any, Final

from proxy.core.charges import Basis
from proxy.stores.ledger.rows import Row

GATEWAY: Final = "gateway"
"""What a charge says whose figure the gateway gave: no price of ours has a part in it."""

_BY_GATEWAY: Final = Basis.GATEWAY.value

NOT_KEPT: Final = "not kept"
"""What an entry says that was written before places were kept."""


class Places:
    """Places by their numbers. A new one gets the next number; it is written with the first hold that names it."""

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


_PRICED: Final = frozenset({"", Basis.USAGE.value, Basis.METERED.value, Basis.HOLD.value})
"""What a charge rests on that a price made, "" for that of a hold."""


def told(kind: str, basis: Any, place: str | None) -> str:
    """Where the price of an entry stands, "" where no price has a part in it. place: that of its hold."""
    if kind not in ("hold", "settle"):
        return ""
    if basis == _BY_GATEWAY:
        return GATEWAY
    return (place or NOT_KEPT) if basis in _PRICED else ""
