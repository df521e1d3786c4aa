"""The two ways a caller reads an exchange: alone, in its own task, or with others, from a spool.

A shared exchange has a task of its own as soon as it has two readers, so there is no first one whose leaving would hurt
the others.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, Protocol

from proxy.core.charges import Ending
from proxy.server.exchange import Exchange
from proxy.server.spool import FellBehind, Reader, Spool
from proxy.server.upstream import Answer, Broke, TooSlow, UpstreamFault

_ANSWERED, _CALLER_LEFT = Ending.ANSWERED, Ending.CALLER_LEFT
"""Bound once: looking a member up in its enum takes as long as a call."""

_SENT_AGAIN: Final = 429
"""The status of an answer that may have its call go back to the queue and be sent again."""

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
        """Reads the next piece of the body, `b""` at its end.

        Raises UpstreamFault where the gateway broke off, ConnectionResetError where its caller left and it went on.
        """
        ...

    def end(self, ending: Ending | None) -> None:
        """No more of it is read: the exchange ends where nobody else reads it. None: as its status says."""
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

    def end(self, ending: Ending | None) -> None:
        """Nobody else reads this exchange."""
        _end(self.exchange, ending)

    def leave(self) -> None:
        """Nobody else reads this exchange."""
        if self._cancels:
            self.exchange.abandon()
        else:
            self.exchange.caller_left()


def _end(exchange: Exchange, ending: Ending | None) -> None:
    if ending is None:
        exchange.finish()
    else:
        exchange.end(ending)


Keep = Callable[[Exchange, bytes], bool]
"""Told of a whole answer: True when it is kept for those who ask the same later."""


def not_kept(_exchange: Exchange, _body: bytes) -> bool:
    """Keeps no answer."""
    return False


def _nothing() -> None:
    pass


class Shared:
    """An exchange that several callers may read, with its bytes in a spool for whoever follows.

    As long as its first reader is the only one, it may be read in that reader's own task, which has each piece at once
    and needs no place in the spool. With the second, or when the first has left, it has a task of its own, so that
    there is no reader whose leaving or resting would hurt the others.
    """

    def __init__(
        self,
        exchange: Exchange,
        spool_bytes: int,
        keep: Keep = not_kept,
        alone: bool = False,
        ended: Callable[[], None] = _nothing,
    ) -> None:
        """keep: told once, before the readers know that the answer has ended.

        ended: told behind that; of a 429 when the first reader has left, which may be about to have it sent again.
        alone: the first reader's task lives until it has left, and nobody cancels its reading; so it may read alone.
        """
        self.exchange: Final = exchange
        self._keep = keep
        self._ended = ended
        self.kept = False
        self.spool: Final = Spool(spool_bytes)
        self._head: asyncio.Future[Answer] | None = None
        self.fault: UpstreamFault | None = None
        """What broke the answer, once all pieces are read."""
        self.is_over = False
        """Whether nothing more of it will come."""
        self._alone: Final = alone
        self.first: SharedSource | None = None
        """Whose own task is to send the request and to read the answer."""
        self._began: SharedSource | None = None
        self._waits = False
        self._task: asyncio.Task[None] | None = None

    @property
    def joinable(self) -> bool:
        """True while a newcomer would get every byte."""
        return self.spool.whole and not self.is_over

    @property
    def readers(self) -> int:
        """How many are reading."""
        first = self.first
        return self.spool.readers + (first is not None and first.place is None and not first.left)

    def age_s(self, now_s: float) -> float:
        """How long ago the gateway was asked; `now_s` is the monotonic clock's."""
        return now_s - self.exchange.opened_s if self.exchange.opened_s else 0.0

    # --- read by the first reader ---

    async def open(self) -> Answer:
        """Send the request in the first reader's task. Raises UpstreamFault."""
        self._waits = True
        try:
            answer = await self.exchange.open()
        except BaseException as error:
            self._end(error if isinstance(error, UpstreamFault) else None)
            raise
        finally:
            self._waits = False
        self._tell(answer)
        self._hand_over()
        return answer

    async def advance(self, first: "SharedSource") -> bytes:
        """The next piece, or the end, read in the first reader's task. Raises UpstreamFault."""
        self._waits = True
        try:
            piece = await self.exchange.read()
        except BaseException as error:
            self._end(error if isinstance(error, UpstreamFault) else None)
            raise
        finally:
            self._waits = False
        if not piece:
            self._end()
            return piece
        self.spool.put(piece)
        if first.place is not None:
            self._hand_over()
            return await first.follow()
        if first.left:
            self._go_on()
        return piece

    def end(self, ending: Ending | None) -> None:
        """The first reader reads no more."""
        _end(self.exchange, ending)
        if self.exchange.ending is not None:
            self._end()

    def _hand_over(self) -> None:
        """Read on in a task of its own where the first reader is not the only one, or not there any more."""
        first = self.first
        if first is not None and not self._waits and (first.left or self.spool.readers > 1):
            self._go_on()

    def _go_on(self) -> None:
        self._give_place()
        self.first = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    def _give_place(self) -> None:
        """The first reader follows as all others do from now on."""
        if self.first is not None and self.first.place is None:
            self.first.place = self.spool.place(stays=not self.first.left)

    # --- read in a task of its own ---

    async def _run(self) -> None:
        fault = None
        try:
            if self.exchange.answer is None:
                self._tell(await self.exchange.open())
            while piece := await self.exchange.read():
                await self.spool.write(piece)
        except UpstreamFault as broke:
            fault = broke
        finally:
            self._end(fault)

    # --- for all ---

    def _tell(self, answer: Answer) -> None:
        if self._head is not None:
            self._head.set_result(answer)

    def _end(self, fault: UpstreamFault | None = None) -> None:
        if self.is_over:
            return
        exchange = self.exchange
        self.is_over, self.fault, self.first = True, fault, None
        # It knows the call that knows this exchange: held on to, it would keep all of it until memory is searched.
        keep, self._keep = self._keep, not_kept
        try:
            # What nobody waited for to its end was not seen to be whole by anybody; who asks next has its own call.
            if fault is None and exchange.ending is _ANSWERED and self.spool.whole:
                self.kept = keep(exchange, self.spool.all)
        finally:
            exchange.end(_CALLER_LEFT)
            if self._head is not None and not self._head.done():
                self._head.set_exception(fault or Broke("the proxy stopped"))
            self.spool.finish()
            began, answer = self._began, exchange.answer
            if began is None or began.left or answer is None or answer.status != _SENT_AGAIN:
                self._is_left()

    def _is_left(self) -> None:
        ended, self._ended, self._began = self._ended, _nothing, None
        ended()

    def join(self) -> "SharedSource":
        """A reader's own view from the first byte; only while `joinable`."""
        source = SharedSource(self)
        if self._began is None and self._task is None:
            self._began = self.first = source
            if not self._alone:
                self._go_on()
            return source
        self.exchange.caller_came()
        self._give_place()
        source.place = self.spool.join()
        self._hand_over()
        return source

    async def head(self) -> Answer:
        """The head, the same for all. Raises UpstreamFault."""
        if self.exchange.answer is not None:
            return self.exchange.answer
        if self.is_over:
            raise self.fault or Broke("the proxy stopped")
        if self._head is None:
            self._head = asyncio.get_running_loop().create_future()
            # A fault nobody is left to hear of must not be reported as forgotten.
            self._head.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._head)

    def reader_left(self) -> None:
        """A reader gave its place up."""
        if not self.is_over:
            if self.readers == 0:
                self.exchange.caller_left()
            self._hand_over()
        elif self._began is not None and self._began.left:
            self._is_left()


class SharedSource:
    """One reader of a shared exchange. place: in its spool; None for who has read all of it so far alone."""

    __slots__ = ("_shared", "exchange", "left", "place")

    def __init__(self, shared: Shared) -> None:
        self._shared: Final = shared
        self.exchange: Final = shared.exchange
        self.place: Reader | None = None
        self.left = False

    @property
    def kept(self) -> bool:
        """Whether the answer is stored; known once all pieces are read."""
        return self._shared.kept

    def head(self) -> Coroutine[None, None, Answer]:
        """The head, the same for all. Raises UpstreamFault."""
        shared = self._shared
        return shared.open() if shared.first is self and self.exchange.answer is None else shared.head()

    def read(self) -> Coroutine[None, None, bytes]:
        """The next piece, at this reader's pace."""
        shared = self._shared
        return shared.advance(self) if shared.first is self else self.follow()

    async def follow(self) -> bytes:
        """The next piece out of the spool."""
        piece = b""
        # Who has no place has read it to its end.
        if self.place is not None:
            try:
                piece = await self._shared.spool.read(self.place)
            except FellBehind as behind:
                if self.left:
                    raise ConnectionResetError("the caller left") from behind
                raise TooSlow("others waited for this reader as long as they may") from behind
        if not piece and (fault := self._shared.fault):
            raise fault
        return piece

    def end(self, ending: Ending | None) -> None:
        """Others may read on."""
        if self._shared.first is self:
            self._shared.end(ending)

    def leave(self) -> None:
        """Give the place up; the others go on."""
        if not self.left:
            self.left = True
            if self.place is not None:
                self._shared.spool.leave(self.place)
            self._shared.reader_left()
