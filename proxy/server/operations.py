"""Holds of operations that outlive their first answer: bound to the operation's id until a poll tells how it ended.

Open operations are in the ledger, so a restart knows them. Who asks after them is in `polling.py`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from proxy.core.answers import Family
from proxy.core.charges import WORD, Basis, Charge, Ending, Figures, charge
from proxy.core.holds import OpenHold
from proxy.core.ledger import Settle, Void
from proxy.core.operations import Operation, Work, work
from proxy.core.pricing import metered
from proxy.core.riders import Begin, Finish
from proxy.core.usage import Meter
from proxy.observe.log import RequestLog
from proxy.observe.metrics import Metrics
from proxy.observe.money import count_ending
from proxy.server.books import Books
from proxy.server.exchange import Exchange
from proxy.server.known import Known
from proxy.stores.ledger.places import told
from proxy.units import credit_text

FIRST_GAP_S: Final = 10.0
"""How long nobody has to ask after an operation before the proxy does."""

GAP_MAX_S: Final = 60.0
"""The pause doubles after each question, up to this."""


@dataclass(slots=True)
class Open:
    """An open operation, and when somebody asked after it last. All seconds, wall clock."""

    operation: Operation
    asked_s: float
    gap_s: float = FIRST_GAP_S


class Ended(NamedTuple):
    """What an operation came to, and the hold it had."""

    charge: Charge
    hold: OpenHold


class Operations:
    """Open operations by the gateway's id."""

    def __init__(
        self,
        books: Books,
        metrics: Metrics,
        models: Known,
        log: RequestLog,
        wall: Callable[[], float],
        *,
        kept: Iterable[Operation] = (),
    ) -> None:
        """models: which may stand in labels.      kept: operations that an earlier process left open."""
        self._books: Final = books
        self._metrics: Final = metrics
        self._models: Final = models
        self._log: Final = log
        self._wall: Final = wall
        self._open: Final[dict[str, Open]] = {one.id: Open(one, wall()) for one in kept}
        for kind in {one.operation.kind for one in self._open.values()}:
            self._count(kind)

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, name: object) -> bool:
        return name in self._open

    def begin(self, name: str, team: str, kind: str, model: str | None, hold: OpenHold) -> bool:
        """Bind a hold to work that goes on; False where the id has one already.

        name: the gateway's id.      kind: image, video or response.
        """
        name = unquote(name)
        if name in self._open:
            return self._open[name].operation.hold.id == hold.id
        now_s = self._wall()
        operation = Operation(name, team, kind, model, hold, now_s)
        self._open[name] = Open(operation, now_s)
        # Written at the latest with the owner of the id, before the caller sees it.
        self._books.note([Begin(operation)])
        self._books.lasts(hold.id)
        self._count(kind)
        return True

    def take_over(self, team: str, kind: str, model: str | None, exchange: Exchange) -> bool:
        """Take the hold of an exchange whose work goes on; False when its answer says that it does not."""
        meter, hold = exchange.meter, exchange.hold
        if hold is None or meter is None or meter.response_id is None:
            return False
        begun = self._open.get(unquote(meter.response_id))
        mine = begun is not None and begun.operation.hold.id == hold.id
        if work(meter.status) is not Work.OPEN or (meter.status is None and meter.family is not Family.MEDIA):
            if begun is not None and mine and meter.terminal:
                # A stream told of the end of the work that its first event began: the exchange ends the hold.
                self._forget(begun.operation)
                self._books.note([Finish(begun.operation.id, self._wall())])
            return mine and not meter.terminal
        return self.begin(meter.response_id, team, kind, model, hold)

    def due(self, now_s: float) -> list[Operation]:
        """Those nobody has asked after for a while, longest first."""
        waiting = [one for one in self._open.values() if now_s - one.asked_s >= one.gap_s]
        return [one.operation for one in sorted(waiting, key=lambda one: one.asked_s)]

    def ask(self, operation: Operation) -> None:
        """The proxy asks now, and next time after a longer pause."""
        one = self._open[operation.id]
        one.asked_s, one.gap_s = self._wall(), min(2 * one.gap_s, GAP_MAX_S)

    def expire(self, operation: Operation) -> None:
        """End the hold of work that does not end, at what it held."""
        if operation.id in self._open:
            cost = Charge(operation.hold.credits, Basis.HOLD, uncertain=True)
            self._end(operation, "expired", Settle(operation.hold.id, cost, Ending.CALLER_LEFT, self._wall()))

    def polled(self, operation_id: str, meter: Meter) -> Ended | None:
        """A poll or cancel told how an operation stands: end its hold when the work has ended, and say at what cost."""
        one = self._open.get(unquote(operation_id))
        state = work(meter.status)
        if one is None:
            return None
        if state is Work.OPEN:
            one.asked_s = self._wall()
            return None
        operation = one.operation
        hold, now_s = operation.hold, self._wall()
        if state is Work.FAILED:
            self._end(operation, "failed", Void(hold.id, Ending.GATEWAY_FAILED, now_s))
            return None
        cost = _cost(meter, hold)
        outcome = "cancelled" if state is Work.CANCELLED else "completed"
        self._end(operation, outcome, Settle(hold.id, cost, Ending.ANSWERED, now_s))
        return Ended(cost, hold)

    def _end(self, operation: Operation, outcome: str, step: Settle | Void) -> None:
        """Write the end, count it and say it: whoever began the work has had its line long ago."""
        self._forget(operation)
        self._books.end(step, [Finish(operation.id, step.at_s)])
        self._metrics.count("operations_total", operation.kind, outcome)
        hold, cost = operation.hold, step.charge if isinstance(step, Settle) else None
        # Work that has ended was begun, so the gateway took its name, maybe before this process began.
        self._models.learn(operation.model)
        model = self._models.label(operation.model)
        count_ending(self._metrics, operation.team, model, hold.credits, cost, expired=outcome == "expired")
        basis = "" if cost is None else WORD[cost.basis]
        said = {"basis": basis, "place": told("settle", basis, hold.place)} if basis else {}
        self._log.note(
            "info",
            "operation_ended",
            id=hold.id,
            team=operation.team,
            kind=operation.kind,
            model=operation.model,
            outcome=outcome,
            held=credit_text(hold.credits),
            charged=credit_text(0 if cost is None else cost.credits),
            **said,
        )

    def _forget(self, operation: Operation) -> None:
        del self._open[operation.id]
        self._count(operation.kind)

    def _count(self, kind: str) -> None:
        self._metrics.set("operations_open", kind, to=sum(one.operation.kind == kind for one in self._open.values()))


def _cost(meter: Meter, hold: OpenHold) -> Charge:
    """Reported usage, else the hold: what ran in the background was not metered on its way.

    A price of the work itself is what it holds; any other hold is a guess.
    """
    known = Figures()
    if not hold.per_unit and hold.price is not None:
        known = metered(meter.usage, meter.family, 0, 0, hold.price)
    if known.gateway is None and known.reported is None:
        priced = hold.per_unit and hold.price is not None
        return Charge(hold.credits, Basis.HOLD, uncertain=hold.credits > 0 and not priced)
    return charge(Ending.ANSWERED, known, hold.credits)
