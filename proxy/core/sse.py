"""Server-sent events, read from pieces: the event-stream grammar of the WHATWG HTML standard, 9.2.6.

Lines end in CR, LF or CRLF, cut anywhere. An event up to `EVENT_MAX` bytes is given whole; what is longer goes piece by
piece into a sink, so memory stays bounded whatever arrives. The reader knows nothing of what events mean.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

EVENT_MAX: Final = 256 * 1024
"""Bytes of one event's data that are kept. The longest terminal events seen are some 1.3 MB: they go into a sink."""

_PIECE: Final = 64 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class Sink(Protocol):
    """Takes the data of an event that is too long to keep."""

    def feed(self, piece: bytes) -> None: ...


class Event(NamedTuple):
    """One dispatched event: its name (empty when the stream gave none) and its data.

    Of an event longer than `EVENT_MAX` the data went into `sink` and `data` is empty.
    """

    name: bytes
    data: bytes
    sink: Sink | None = None


def written(data: bytes) -> bytes:
    """JSON as an event of its own, in which the ends of its lines are blanks."""
    return b"event: message\ndata: " + data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n\n"


class Kept:
    """A sink for whoever needs an event whole, however long it is."""

    def __init__(self) -> None:
        self.data = bytearray()

    def feed(self, piece: bytes) -> None:
        self.data += piece


def whole(event: Event) -> Event:
    """An event of a reader whose sinks keep it all."""
    return event._replace(data=bytes(event.sink.data)) if isinstance(event.sink, Kept) else event


class Reader:
    """Feed it what arrives; it gives the events that became complete.

    sink_of: makes the sink of one long event.
    """

    __slots__ = ("_after_cr", "_data", "_dropping", "_ended", "_first", "_line", "_long", "_more", "_name", "_open",
                 "_sink", "_sink_of")  # fmt: skip

    def __init__(self, sink_of: Callable[[], Sink]) -> None:
        self._sink_of = sink_of
        self._line = bytearray()  # a line whose end has not come
        self._long = False  # that line is data and goes into the sink
        self._dropping = False  # that line is too long and no data: nobody needs it
        self._first = True  # no line has ended yet: a byte-order mark may stand in front
        self._after_cr = False  # the last byte was CR: a LF next belongs to it
        self._ended: bytes | None = None  # what was missing when the stream was closed
        self._clear()

    def _clear(self) -> None:
        self._open = False  # a line of this event has come
        self._name = b""
        self._data: bytes | None = None
        self._more = bytearray()  # second and further data lines
        self._sink: Sink | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        events: list[Event] = []
        if len(chunk) <= _PIECE:
            self._feed(chunk, events)
        else:
            for start in range(0, len(chunk), _PIECE):
                self._feed(chunk[start : start + _PIECE], events)
        return events

    def close(self) -> list[Event]:
        """The stream has ended. An event that lacks only its blank line is given all the same: its words were said."""
        events: list[Event] = []
        self._ended = self.terminator
        if line := self._finish(b""):
            self._field(line)
        self._dispatch(events)
        return events

    @property
    def at_boundary(self) -> bool:
        """True between two events, where a comment or an event of our own may be put in."""
        return not (self._open or self._in_line)

    @property
    def terminator(self) -> bytes:
        """What must be written so that an event of our own can follow; stays as it was when the stream was closed."""
        if self._ended is not None:
            return self._ended
        if self.at_boundary:
            return b""
        # After a CR our LF would be taken as the second half of that line's end.
        return b"\n\n" if self._in_line or self._after_cr else b"\n"

    @property
    def sink(self) -> Sink | None:
        """Where the event that has begun goes, when it is a long one."""
        return self._sink

    def beginning(self, size: int) -> bytes:
        """The first bytes of the line that has begun and not ended, for whoever must know before it is whole."""
        return bytes(self._line[:size])

    @property
    def _in_line(self) -> bool:
        return bool(self._line) or self._long or self._dropping

    def _feed(self, chunk: bytes, events: list[Event]) -> None:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return
        if chunk.endswith(b"\n\n") and not self._first and self.at_boundary and chunk.find(b"\r") < 0:
            self._whole_events(chunk, events)
            return
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk.splitlines()  # of bytes: at CR, LF and CRLF only
        rest = b"" if self._after_cr or chunk.endswith(b"\n") else lines.pop()
        unfinished = self._first or self._in_line
        for line in lines:
            if unfinished:
                unfinished = False
                whole = self._finish(line)
                if whole is None:
                    continue
            else:
                whole = line
            if whole:
                self._field(whole)
            else:
                self._dispatch(events)
        if rest:
            self._hold(rest)

    def _whole_events(self, chunk: bytes, events: list[Event]) -> None:
        """Nearly every piece of nearly every stream: whole events, one line of data each."""
        self._after_cr = False
        for block in chunk[:-2].split(b"\n\n"):
            if block.startswith(b"data: ") and block.find(b"\n") < 0 and len(block) > 6:
                events.append(Event(b"", block[6:]))
                continue
            for line in block.split(b"\n"):
                if line:
                    self._field(line)
                else:
                    self._dispatch(events)
            self._dispatch(events)

    def _finish(self, piece: bytes) -> bytes | None:
        """The line at hand ends with this piece: give it whole, or None when it was too long to keep."""
        if self._long:
            self._spill(piece)
            self._long = False
            return None
        if self._dropping:
            self._dropping = False
            return None
        line = bytes(self._line) + piece if self._line else piece
        self._line = bytearray()
        return self._bare(line)

    def _bare(self, line: bytes) -> bytes:
        if self._first:
            self._first = False
            return line.removeprefix(_BOM)
        return line

    def _hold(self, piece: bytes) -> None:
        """Keep part of a line until its end comes, or hand it on when the line is long."""
        if self._long:
            self._spill(piece)
        elif not self._dropping:
            self._line += piece
            if len(self._line) > EVENT_MAX:
                self._overflow()

    def _overflow(self) -> None:
        line = self._bare(bytes(self._line))
        self._line = bytearray()
        self._open = True
        if line.startswith(b"data:"):
            self._long = True
            self._spill(b"")
            self._add(_value(line))
        else:
            self._dropping = True

    def _field(self, line: bytes) -> None:
        self._open = True
        if line.startswith(b"data:"):
            self._add(_value(line))
        elif line.startswith(b"event:"):
            self._name = _value(line)
        elif line == b"data":
            self._add(b"")
        # Comments, ids, retry times and unknown fields say nothing here.

    def _add(self, value: bytes) -> None:
        """One more data line; the standard puts LF between two."""
        if self._data is None:
            self._data = b""
            if self._sink is None:
                self._data = value
            else:
                self._sink.feed(value)
            return
        if self._sink is None and len(self._data) + len(self._more) + len(value) >= EVENT_MAX:
            self._spill(b"")
        if self._sink is None:
            self._more += b"\n" + value
        else:
            self._sink.feed(b"\n" + value)

    def _spill(self, piece: bytes) -> None:
        """Into the sink, what was kept first."""
        if self._sink is None:
            self._sink = self._sink_of()
            self._sink.feed((self._data or b"") + bytes(self._more))
            self._more.clear()
            if self._data:
                self._data = b""
        self._sink.feed(piece)

    def _dispatch(self, events: list[Event]) -> None:
        if self._data is not None:
            data = self._data + bytes(self._more) if self._more else self._data
            events.append(Event(self._name, data, self._sink))
        if self._open:
            self._clear()


def _value(line: bytes) -> bytes:
    """What follows the colon, less one space."""
    value = line[line.index(b":") + 1 :]
    return value[1:] if value.startswith(b" ") else value
