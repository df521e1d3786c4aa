"""Holds of operations that outlive their first answer: bound to the operation's id until a poll tells how it ended.

The binding is in memory: after a restart their holds stay spent at what they held.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from proxy.core.answers import Family
from proxy.core.holds import OpenHold
from proxy.core.ledger import Basis, Charge, Ending, Figures, Settle, Void, charge
from proxy.core.operations import Work, work
from proxy.core.pricing import metered
from proxy.core.usage import Meter
from proxy.observe.metrics import Metrics
from proxy.server.books import Books
from proxy.server.exchange import Exchange

EXPIRES_S: Final = 7200.0
"""Work that nobody asks after for two hours has long ended, and was charged for all we know."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Whose work it is, and the hold it carries."""

    team: str
    kind: str
    hold: OpenHold
    begun_s: float


class Operations:
    """Open operations by the gateway's id."""

    def __init__(self, books: Books, metrics: Metrics, wall: Callable[[], float]) -> None:
        self._books: Final = books
        self._metrics: Final = metrics
        self._wall: Final = wall
        self._open: Final[dict[str, Operation]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def take_over(self, team: str, kind: str, exchange: Exchange) -> bool:
        """Take the hold of an exchange whose work goes on; False when its answer says that it does not.

        kind: image, video or response.
        """
        meter = exchange.meter
        hold = exchange.hold
        if hold is None or meter is None or meter.response_id is None or work(meter.status) is not Work.OPEN:
            return False
        if meter.status is None and meter.family is not Family.MEDIA:
            return False
        self._open[unquote(meter.response_id)] = Operation(team, kind, hold, self._wall())
        self._books.lasts(hold.id)
        self._count(kind)
        return True

    def expire(self) -> int:
        """End the holds of operations begun more than `EXPIRES_S` ago, at what they held; how many there were."""
        now_s = self._wall()
        old = [name for name, operation in self._open.items() if now_s - operation.begun_s > EXPIRES_S]
        for name in old:
            operation = self._open.pop(name)
            self._count(operation.kind)
            cost = Charge(operation.hold.credits, Basis.HOLD, uncertain=True)
            self._books.end(Settle(operation.hold.id, cost, Ending.CALLER_LEFT, now_s))
        return len(old)

    def _count(self, kind: str) -> None:
        self._metrics.set("operations_open", kind, to=sum(one.kind == kind for one in self._open.values()))

    def polled(self, operation_id: str, meter: Meter) -> Charge | None:
        """A poll or cancel told how an operation stands: end its hold when the work has ended."""
        operation = self._open.get(unquote(operation_id))
        state = work(meter.status)
        if operation is None or state is Work.OPEN:
            return None
        del self._open[unquote(operation_id)]
        self._count(operation.kind)
        hold, now_s = operation.hold, self._wall()
        if state is Work.FAILED:
            self._books.end(Void(hold.id, Ending.GATEWAY_FAILED, now_s))
            return None
        cost = _cost(meter, hold)
        self._books.end(Settle(hold.id, cost, Ending.ANSWERED, now_s))
        return cost


def _cost(meter: Meter, hold: OpenHold) -> Charge:
    """Reported usage, else the hold: what ran in the background was not metered on its way."""
    known = Figures()
    if not hold.per_unit and hold.price is not None:
        known = metered(meter.usage, meter.family, 0, 0, hold.price)
    if known.gateway is None and known.reported is None:
        return Charge(hold.credits, Basis.HOLD)
    return charge(Ending.ANSWERED, known, hold.credits)
