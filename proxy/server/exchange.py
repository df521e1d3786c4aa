"""One upstream call: owner of its hold, its meter and its ending.

Callers read from an exchange, they never own it. It ends exactly once, whatever happens: when the answer was read to
its end, when the gateway failed, when the reading task was cancelled, or when everybody who wanted the answer has left
and the bounds of reading on were met. `sources.py` has the two ways callers read one.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.core.answers import End, Family
from proxy.core.charges import NO_CHARGE, Charge, Ending, Figures, charge, is_void
from proxy.core.holds import OpenHold
from proxy.core.ledger import Void, settle_of
from proxy.core.prices import FREE
from proxy.core.pricing import gateway_credits, metered, paid_input, told_in_headers
from proxy.core.readers import Readers
from proxy.core.riders import Rider
from proxy.core.usage import Meter, Usage
from proxy.server.admitted import Admitted
from proxy.server.books import Books
from proxy.server.upstream import Abandoned, Answer, Outgoing, Upstream, UpstreamFault
from proxy.units import Credits

_CALLER_LEFT, _NEVER_SENT, _ANSWERED, _ERROR = Ending.CALLER_LEFT, Ending.NEVER_SENT, Ending.ANSWERED, End.ERROR
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

_WHOLE: Final = (_ANSWERED, _CALLER_LEFT)
"""Endings of an answer that may have come whole."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far an answer is read on after its caller left: seconds, bytes, and how many answers at once."""

    seconds: float
    bytes: int
    at_once: int


class Exchanges:
    """What all exchanges of the process have in common, and those that are open: for drain, and for reading on."""

    def __init__(self, bounds: Bounds, upstream: Upstream, books: Books, wall: Callable[[], float]) -> None:
        self.bounds: Final = bounds
        self.upstream: Final = upstream
        self.books: Final = books
        self.wall: Final = wall
        self.open: Final[set[Exchange]] = set()
        self._stopping = False
        self.readers: Final[Readers[Exchange]] = Readers()
        self._empty: Final = asyncio.Event()
        self._empty.set()

    def add(self, exchange: "Exchange") -> None:
        """Count an exchange in; one that comes when all are to end is not sent."""
        self.open.add(exchange)
        self._empty.clear()
        if self._stopping:
            exchange.stop()

    def remove(self, exchange: "Exchange") -> None:
        """Count an exchange out."""
        self.open.discard(exchange)
        if not self.open:
            self._empty.set()

    def stop(self) -> None:
        """The process ends: give up those that are open, and those that are still to come."""
        self._stopping = True
        for exchange in list(self.open):
            exchange.stop()

    async def finished(self) -> None:
        """Wait until none is open."""
        await self._empty.wait()


Follow = Callable[["Exchange"], bool]
"""Told at an exchange's end, before its hold is: True when the hold was taken over, because the work goes on."""


class Exchange:
    """One upstream call. Open it, read it to `b""`, or let go of it; the hold ends by itself.

    meter: None until the head of a 2xx answer is here, and on routes whose answers carry no usage.
    """

    def __init__(
        self, among: Exchanges, out: Outgoing, family: Family | None, hold: OpenHold | None, turn: Admitted
    ) -> None:
        """family: wire format of the answer, None where it carries no usage."""
        self._out: Final = out
        self._family: Final = family
        self.follow: Follow | None = None
        self._turn: Final = turn
        self.meter: Meter | None = None
        self._of_stream: Meter | None = None
        self.hold: Final = hold
        self._among: Final = among
        self._sending: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._abandoned = False
        self._given_up = _CALLER_LEFT
        self._left_bytes = 0
        self._came_whole = False
        self.left = False
        self.answer: Answer | None = None
        self.ending: Ending | None = None
        self.charge: Charge = NO_CHARGE
        self.opened_s = 0.0
        self.head_s: float | None = None
        self.ended_s: float | None = None
        self.taken_over = False
        """The hold is that of work that goes on."""
        self.then: Callable[[], None] | None = None
        """Called once, when it has ended; for who is told of it and does not wait."""
        self.used: tuple[int, int] | None = None
        """What the call took in and gave out, where its answer says so; known once its turn is over."""
        among.add(self)

    def __repr__(self) -> str:
        state = "new" if not self.opened_s else "open" if self.ending is None else self.ending.value
        return f"<exchange {self._out.method} {self._out.target.partition('?')[0]}: {state}>"

    async def open(self) -> Answer:
        """Send the request; the answer's head. Raises UpstreamFault, with the hold at its end."""
        assert not self.opened_s, "one exchange is one upstream call"
        self.opened_s = time.monotonic()
        if self._abandoned:
            # The caller left while the call was being admitted: nothing goes out.
            self.end(_NEVER_SENT)
            raise Abandoned("the caller left before the call was sent")
        self._sending = asyncio.current_task()
        if self._out.headers.streams and self._family is not None:
            # Made while the gateway thinks, so that nobody waits for it.
            asyncio.get_running_loop().call_soon(self._expect_stream, self._family)
        try:
            answer = await self._among.upstream.send(self._out, self._turn.written)
        except UpstreamFault as fault:
            self.end(fault.ending)
            raise
        except BaseException as error:
            # Cancelled with the request on its way: it may have been charged.
            self.end(self._given_up)
            if isinstance(error, asyncio.CancelledError) and self._gave_up():
                raise Abandoned("the caller left before the gateway answered") from error
            raise
        finally:
            self._sending = None
        self.head_s = time.monotonic()
        self.answer = answer
        self._turn.counted()
        if self._family is not None and 200 <= answer.status < 300:
            ready = self._of_stream if answer.is_stream else None
            self.meter = ready or Meter(self._family, answer.is_stream)
        return answer

    def _expect_stream(self, family: Family) -> None:
        self._of_stream = Meter(family, True)

    def _gave_up(self) -> bool:
        """Whether it was `abandon` that cancelled the sending task, and nobody else besides."""
        return self._abandoned and self._sending is not None and self._sending.uncancel() == 0

    async def read(self) -> bytes:
        """The next piece of the answer, metered; `b""` at its end. Raises UpstreamFault."""
        assert self.answer is not None
        if self.ending is not None:
            if self._abandoned:
                # What was given up between two pieces must not look as if it were all of it.
                raise Abandoned("the answer was given up")
            return b""
        try:
            piece = await self.answer.read()
        except UpstreamFault as fault:
            if self.meter is not None:
                self.meter.close(clean=False)
            self.finish()
            if self._abandoned:
                # It was given up here, which is no failure of the gateway.
                self.end(self._given_up)
                raise Abandoned("the answer was given up") from fault
            self.end(fault.ending)
            raise
        except BaseException:
            self.end(_CALLER_LEFT)
            raise
        if piece:
            if self.meter is not None:
                self.meter.feed(piece)
            if self.left:
                self._left_bytes += len(piece)
                if self._left_bytes > self._among.bounds.bytes:
                    self.abandon()
            return piece
        self._came_whole = True
        if self.meter is not None:
            self.meter.close()
        self.end(self._natural_ending(self.answer))
        return b""

    def _natural_ending(self, answer: Answer) -> Ending:
        if answer.status >= 500:
            return Ending.GATEWAY_FAILED
        if answer.status >= 300:
            return Ending.GATEWAY_REFUSED
        if self.left:
            return _CALLER_LEFT
        meter = self.meter
        # An error in the midst of an answer ends it for its caller, and tells what it cost only with closing figures.
        whole = meter is None or (meter.terminal and (meter.end is not _ERROR or meter.usage.settled))
        return _ANSWERED if whole else Ending.UPSTREAM_BROKE

    def finish(self) -> None:
        """End as the status says, without reading the rest of an error answer."""
        if self.answer is not None and self.answer.status >= 400:
            self.end(self._natural_ending(self.answer))

    def caller_left(self) -> None:
        """Nobody waits for this answer any more: one that may cost is read on for its usage, within the bounds.

        What was not sent yet is not sent for nobody.
        """
        if self.left or self.ending is not None:
            return
        self.left = True
        if self.hold is None or not self.opened_s:
            # It costs nothing, so there is nothing to learn from the rest of it.
            self.abandon()
            return
        loser = self._among.readers.take(self._team, self, self._among.bounds.at_once)
        if loser is not None:
            loser.abandon()
        if loser is self:
            return
        self._timer = asyncio.get_running_loop().call_later(self._among.bounds.seconds, self.abandon)

    def caller_came(self) -> None:
        """Somebody waits again."""
        if self.left and self.ending is None:
            self.left = False
            self._stop_reading_on()

    def _stop_reading_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._among.readers.leave(self._team, self)

    @property
    def _team(self) -> str:
        """Whose part of reading on it takes; the proxy's own calls are read by nobody else."""
        return self._turn.turn.draw.facts.team

    def stop(self) -> None:
        """The process ends: give the answer up, although somebody may still wait for it."""
        self._given_up = Ending.PROXY_STOPPED
        self.abandon()

    def abandon(self) -> None:
        """Stop waiting for the gateway; what was metered so far is what is known. Too late once it has ended."""
        if self.ending is not None:
            return
        self._abandoned = True
        if self._sending is not None:
            self._sending.cancel()
        elif self.answer is not None:
            self.answer.close()
            self.end(self._given_up)

    def end(self, ending: Ending) -> Charge:
        """Bring the exchange to its end, once; later calls change nothing. Cannot fail and does not wait."""
        if self.ending is not None:
            return self.charge
        self.ending = ending
        self.ended_s = time.monotonic()
        self._stop_reading_on()
        self._among.remove(self)
        if self.answer is not None:
            self.answer.close()
        self.taken_over = self.follow is not None and self.follow(self)
        settles = self.hold is not None and not self.taken_over
        usage = self.meter.usage if self.meter is not None else None
        riders = self._end_turn(ending, usage, with_ending=settles)
        if self.hold is not None and settles:
            self.charge = self._cost(ending, self.hold, usage)
            now_s = self._among.wall()
            if is_void(ending, self.charge):
                self._among.books.end(Void(self.hold.id, ending, now_s, self.charge.uncertain), riders)
            else:
                self._among.books.end(settle_of((self.hold.id, self.charge, ending, now_s)), riders)
        if self.then is not None:
            then, self.then = self.then, None
            then()
        return self.charge

    def _end_turn(self, ending: Ending, usage: Usage | None, *, with_ending: bool) -> list[Rider]:
        """The turn is over, or was not used; the row of that which rides with the hold's ending."""
        if ending is _NEVER_SENT or not self.opened_s:
            self._turn.never_sent()
            return []
        in_all = None
        if usage is not None and self._family is not None:
            counted, output = paid_input(usage, self._family), usage.output
            if counted is not None and output is not None:
                self.used, in_all = (counted, output), counted + output
        return self._turn.closed(in_all, with_ending=with_ending)

    def _cost(self, ending: Ending, hold: OpenHold, usage: Usage | None) -> Charge:
        if hold.is_call:
            # A tool call costs its unit price, which the hold is; usage says nothing about it.
            return charge(ending, Figures(reported=hold.credits), hold.credits, is_call=True)
        price = hold.price or FREE
        if self.meter is not None and usage is not None and not hold.per_unit:
            known = metered(usage, self.meter.family, self.meter.output_bytes, hold.input_bytes, price)
            # Thinking is paid and need not be seen. And who left an answer that was not read to its end chose what was
            # seen of it: it costs what it could have cost, or leaving early would be a way around every budget.
            chosen = ending is _CALLER_LEFT and not self.meter.terminal
            if known.reported is None and (hold.reasons or chosen):
                known = known._replace(metered=None)
        else:
            said = usage.credits if usage is not None else None
            gateway = None if said is None else gateway_credits(said)
            # A fixed price is known to be due for what came whole, also where the connection broke behind it.
            whole = self.meter.terminal if self.meter is not None else self._came_whole and ending in _WHOLE
            known = Figures(gateway, hold.credits if hold.per_unit and whole else None)
        told = told_in_headers(self.answer.headers, price) if self.answer is not None else None
        if told is not None:
            gateway, reported = _first(told.gateway, known.gateway), _first(known.reported, told.reported)
            known = Figures(gateway, reported, known.metered)
        if hold.price is None:
            known = Figures(gateway=known.gateway)
        return charge(ending, known, hold.credits)


def _first(*amounts: Credits | None) -> Credits | None:
    return next((amount for amount in amounts if amount is not None), None)
