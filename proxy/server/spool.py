"""The bytes of one answer, kept for many readers who each follow at their own pace.

As long as everything still fits the bound, newcomers can begin at the first byte. Beyond it the oldest bytes that all
present readers have taken are let go, nobody new may join, and the writer waits for the slowest reader: without end
where nobody else waits, as its own write deadline ends it, but only for `patience_s` in all while others have taken
everything. Then whoever is that far behind loses its place, so that nobody is held up by somebody else's connection.
"""

import asyncio
from collections import deque
from typing import Final

PATIENCE_S: Final = 5.0
"""How long those who read an answer wait in all for others who do not."""


MOMENT_S: Final = 0.05
"""What each wait is given after that, so that nobody loses its place who reads and only has not had its turn."""


class FellBehind(Exception):
    """The reader lost its place: others waited for it as long as they may, or it had given it up."""


class Reader:
    """One reader's place: `at` counts pieces from the first. holds: it has the piece there, and still writes it."""

    __slots__ = ("at", "dropped", "holds")

    def __init__(self) -> None:
        self.at = 0
        self.holds = False
        self.dropped = False


class Spool:
    """One writer, many readers."""

    def __init__(self, bytes_max: int, patience_s: float = PATIENCE_S) -> None:
        """bytes_max: how far the writer may run ahead of the slowest reader, and how long newcomers may join."""
        self._patience_s = patience_s
        self._bytes_max: Final = bytes_max
        self._pieces: Final[deque[bytes]] = deque()
        self._first = 0
        self._size = 0
        self._readers: Final[set[Reader]] = set()
        self._waiting: Final[list[asyncio.Future[None]]] = []
        self._finished = False

    @property
    def whole(self) -> bool:
        """True while the first byte is still here, so that a newcomer misses nothing."""
        return self._first == 0 and self._size <= self._bytes_max

    @property
    def all(self) -> bytes:
        """Every byte so far; only while `whole`."""
        return b"".join(self._pieces)

    @property
    def readers(self) -> int:
        """How many are reading."""
        return len(self._readers)

    def _wake(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting[:] = list(self._waiting), []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _change(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _let_go(self) -> None:
        if self._size <= self._bytes_max:
            return
        needed = min((reader.at for reader in self._readers), default=self._first + len(self._pieces))
        while self._first < needed and self._size > self._bytes_max:
            self._size -= len(self._pieces.popleft())
            self._first += 1

    def put(self, piece: bytes) -> None:
        """Add a piece, also where the spool is over its bound."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self._bytes_max:
            self._let_go()
        if self._waiting:
            self._wake()

    async def write(self, piece: bytes) -> None:
        """Add a piece, then wait while the spool is over its bound."""
        self.put(piece)
        while self._size > self._bytes_max:
            await self._wait_for_the_slowest()
            self._let_go()

    async def _wait_for_the_slowest(self) -> None:
        end = self._first + len(self._pieces)
        if all(reader.at < end for reader in self._readers):
            await self._change()
            return
        loop = asyncio.get_running_loop()
        began_s, given_s = loop.time(), max(self._patience_s, MOMENT_S)
        try:
            async with asyncio.timeout(given_s):
                await self._change()
        except TimeoutError:
            # Where the process itself was held up, its readers had no turn either.
            if loop.time() - began_s < given_s + MOMENT_S:
                self._drop_the_slowest()
        self._patience_s = max(0.0, self._patience_s - (loop.time() - began_s))

    def _drop_the_slowest(self) -> None:
        slowest = min(reader.at for reader in self._readers)
        for reader in [reader for reader in self._readers if reader.at == slowest]:
            reader.dropped = True
            self._readers.discard(reader)

    def finish(self) -> None:
        """No more pieces will come."""
        self._finished = True
        self._wake()

    def join(self) -> Reader:
        """A place at the first byte; only while `whole`."""
        assert self.whole
        reader = Reader()
        self._readers.add(reader)
        return reader

    def place(self, *, stays: bool) -> Reader:
        """A place of one that was given every piece as it came, and still has the last. stays: it is waited for."""
        reader = Reader()
        if end := self._first + len(self._pieces):
            reader.at, reader.holds = end - 1, True
        if stays:
            self._readers.add(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        """Give a place up; the writer no longer waits for it."""
        self._readers.discard(reader)
        self._let_go()
        self._wake()

    async def read(self, reader: Reader) -> bytes:
        """The next piece of a reader, `b""` at the end. Raises FellBehind."""
        if reader.holds:
            # The place moves when the next piece is asked for, so a slow reader holds on to what it is still writing.
            reader.at += 1
            reader.holds = False
            if self._size > self._bytes_max:
                self._let_go()
                self._wake()
        while True:
            at = reader.at - self._first
            if reader.dropped or at < 0:
                raise FellBehind
            if at < len(self._pieces):
                reader.holds = True
                return self._pieces[at]
            if self._finished:
                return b""
            await self._change()
