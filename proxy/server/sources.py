"""The two ways a caller reads an exchange: alone, in its own task, or with others, from a spool.

A shared exchange has a task of its own, so there is no first reader whose leaving would hurt the others.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, Protocol

from proxy.core.charges import Ending
from proxy.server.exchange import Exchange
from proxy.server.spool import FellBehind, Spool
from proxy.server.upstream import Answer, Broke, TooSlow, UpstreamFault

Read = Callable[[], Coroutine[None, None, bytes]]


class Source(Protocol):
    """Where a caller reads an answer from."""

    @property
    def exchange(self) -> Exchange: ...

    @property
    def kept(self) -> bool: ...

    async def head(self) -> Answer:
        """The answer's head; raises UpstreamFault."""
        ...

    @property
    def read(self) -> Read:
        """Reads the next piece of the body, `b""` at its end; raises UpstreamFault where the gateway broke off."""
        ...

    def leave(self) -> None:
        """The caller is gone."""
        ...


class DirectSource:
    """An exchange read in the caller's own task, which reads on when the caller has left."""

    kept: Final = False

    def __init__(self, exchange: Exchange, *, cancels: bool = False) -> None:
        """cancels: for this caller, to leave means to take the call back, so the gateway is left, too."""
        self.exchange: Final = exchange
        self.read: Final[Read] = exchange.read
        self._cancels: Final = cancels

    async def head(self) -> Answer:
        """Send the request, once, and wait for the head."""
        return self.exchange.answer or await self.exchange.open()

    def leave(self) -> None:
        """Nobody else reads this exchange."""
        if self._cancels:
            self.exchange.abandon()
        else:
            self.exchange.caller_left()


Keep = Callable[[Exchange, bytes], bool]
"""Told of a whole answer: True when it is kept for those who ask the same later."""


class Shared:
    """An exchange in a task of its own, with the bytes in a spool for whoever follows."""

    def __init__(self, exchange: Exchange, spool_bytes: int, keep: Keep = lambda _exchange, _body: False) -> None:
        """keep: told once, before the readers know that the answer has ended."""
        self.exchange: Final = exchange
        self._keep: Final = keep
        self.kept = False
        self._spool: Final = Spool(spool_bytes)
        self._head: Final[asyncio.Future[Answer]] = asyncio.get_running_loop().create_future()
        # A fault nobody is left to hear of must not be reported as forgotten.
        self._head.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._fault: UpstreamFault | None = None
        self.task: Final = asyncio.get_running_loop().create_task(self._run())

    @property
    def joinable(self) -> bool:
        """True while a newcomer would get every byte."""
        return self._spool.whole and self._fault is None and not self.task.done()

    def age_s(self, now_s: float) -> float:
        """How long ago the gateway was asked; `now_s` is the monotonic clock's."""
        return now_s - self.exchange.opened_s if self.exchange.opened_s else 0.0

    async def _run(self) -> None:
        try:
            self._head.set_result(await self.exchange.open())
            while piece := await self.exchange.read():
                await self._spool.write(piece)
            # What nobody waited for to its end was not seen to be whole by anybody; who asks next has its own call.
            if self.exchange.ending is Ending.ANSWERED and self._spool.whole:
                self.kept = self._keep(self.exchange, self._spool.all)
        except UpstreamFault as fault:
            self._fault = fault
            if not self._head.done():
                self._head.set_exception(fault)
        finally:
            self.exchange.end(Ending.CALLER_LEFT)
            if not self._head.done():
                self._head.set_exception(Broke("the proxy stopped"))
            self._spool.finish()

    def join(self) -> "SharedSource":
        """A reader's own view from the first byte; only while `joinable`."""
        self.exchange.caller_came()
        return SharedSource(self, self._spool)

    async def head(self) -> Answer:
        """The head, the same for all."""
        return await asyncio.shield(self._head)

    def fault(self) -> UpstreamFault | None:
        """What broke the answer, once all pieces are read."""
        return self._fault

    def reader_left(self) -> None:
        """A reader gave its place up."""
        if self._spool.readers == 0:
            self.exchange.caller_left()


class SharedSource:
    """One reader of a shared exchange."""

    def __init__(self, shared: Shared, spool: Spool) -> None:
        self._shared: Final = shared
        self._spool: Final = spool
        self._reader: Final = spool.join()
        self._left = False

    @property
    def exchange(self) -> Exchange:
        return self._shared.exchange

    @property
    def kept(self) -> bool:
        """Whether the answer is stored; known once all pieces are read."""
        return self._shared.kept

    async def head(self) -> Answer:
        """The head, the same for all."""
        return await self._shared.head()

    async def read(self) -> bytes:
        """The next piece, at this reader's pace."""
        try:
            piece = await self._spool.read(self._reader)
        except FellBehind as behind:
            raise TooSlow("others waited for this reader as long as they may") from behind
        if not piece and (fault := self._shared.fault()):
            raise fault
        return piece

    def leave(self) -> None:
        """Give the place up; the others go on."""
        if not self._left:
            self._left = True
            self._spool.leave(self._reader)
            self._shared.reader_left()
