"""Where the price of a call stands, as its entries say it."""

from typing import Any, Final

from proxy.core.charges import Basis

GATEWAY: Final = "gateway"
"""What a charge says whose figure the gateway gave: no price of ours has a part in it."""

_BY_GATEWAY: Final = Basis.GATEWAY.value

NOT_KEPT: Final = "not kept"
"""What an entry says that was written before places were kept."""


_PRICED: Final = frozenset({"", Basis.USAGE.value, Basis.METERED.value, Basis.HOLD.value})
"""What a charge rests on that a price made, "" for that of a hold."""


def told(kind: str, basis: Any, place: str | None) -> str:
    """Where the price of an entry stands, "" where no price has a part in it. place: that of its hold."""
    if kind not in ("hold", "settle"):
        return ""
    if basis == _BY_GATEWAY:
        return GATEWAY
    return (place or NOT_KEPT) if basis in _PRICED else ""
