import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core.sse import EVENT_MAX, Event, Reader


class Kept:
    """A sink that keeps what it is fed."""

    def __init__(self):
        self.data = bytearray()

    def feed(self, piece):
        self.data += piece


def read(*chunks):
    """All events of a stream as (name, data), with what came through a sink put back in place."""
    reader = Reader(Kept)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    events += reader.close()
    return [(event.name, bytes(event.sink.data) if event.sink else event.data) for event in events]


# fmt: off
GRAMMAR = (
    # what the standard says about            stream                                    events
    ("a plain event",                         b"data: a\n\n",                           [(b"", b"a")]),
    ("CRLF",                                  b"data: a\r\n\r\n",                       [(b"", b"a")]),
    ("CR alone",                              b"data: a\r\r",                           [(b"", b"a")]),
    ("line ends mixed",                       b"data: a\r\n\ndata: b\r\r\n",            [(b"", b"a"), (b"", b"b")]),
    ("no space after the colon",              b"data:a\n\n",                            [(b"", b"a")]),
    ("one space taken, the second kept",      b"data:  a\n\n",                          [(b"", b" a")]),
    ("several data lines",                    b"data: a\ndata: b\n\n",                  [(b"", b"a\nb")]),
    ("a comment between data lines",          b"data: a\n: x\ndata: b\n\n",             [(b"", b"a\nb")]),
    ("empty data",                            b"data:\n\n",                             [(b"", b"")]),
    ("empty data by name alone",              b"data\n\n",                              [(b"", b"")]),
    ("two empty data lines",                  b"data\ndata:\n\n",                       [(b"", b"\n")]),
    ("a name",                                b"event: x\ndata: a\n\n",                 [(b"x", b"a")]),
    ("a name after the data",                 b"data: a\nevent: x\n\n",                 [(b"x", b"a")]),
    ("the last name",                         b"event: x\nevent: y\ndata: a\n\n",       [(b"y", b"a")]),
    ("a name without data, forgotten",        b"event: x\n\ndata: a\n\n",               [(b"", b"a")]),
    ("id and retry",                          b"id: 7\nretry: 1\ndata: a\n\n",          [(b"", b"a")]),
    ("an unknown field",                      b"dota: a\ndata: b\n\n",                  [(b"", b"b")]),
    ("a field that only begins like data",    b"database: a\n\n",                       []),
    ("a comment alone",                       b": x\n\n",                               []),
    ("a byte-order mark",                     b"\xef\xbb\xbfdata: a\n\n",               [(b"", b"a")]),
    ("a second mark, which is no field",      b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n",   []),
    ("a mark later on, which is no field",    b"\n\xef\xbb\xbfdata: a\n\n",             []),
    ("line separators of other alphabets",    "data: a\x85\u2028\x0b\x0cb\n\n".encode(), [(b"", "a\x85\u2028\x0b\x0cb".encode())]),
    ("a last event without its blank line",   b"data: a\n",                             [(b"", b"a")]),
    ("a last line without its end",           b"data: a",                               [(b"", b"a")]),
    ("nothing",                               b"",                                      []),
)
# fmt: on


@pytest.mark.parametrize(("stream", "events"), [row[1:] for row in GRAMMAR], ids=[row[0] for row in GRAMMAR])
def test_the_grammar_is_read_wherever_the_stream_is_cut(stream, events):
    for cut in range(len(stream) + 1):
        assert read(stream[:cut], stream[cut:]) == events, cut
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == events


LINES = st.sampled_from([b"data: a", b"data: b", b"data", b": ping", b"event: x", b"id: 1", b""])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.lists(st.tuples(LINES, ENDS).map(b"".join), max_size=8).map(b"".join)


@given(STREAMS)
@example(b"data: a\r\ndata: b\r\n\r\n")  # a cut inside CRLF must not end the event early
def test_events_do_not_depend_on_where_the_stream_is_cut(stream):
    whole = read(stream)
    for cut in range(len(stream) + 1):
        assert read(stream[:cut], stream[cut:]) == whole, cut


@given(STREAMS, st.sampled_from([b"", b"da", b"data: half", b": rem", b"event: y"]))
@example(b"data: a\r", b"")  # a LF here would only end the line, not the event
def test_an_event_of_ours_is_read_alone_after_the_terminator(stream, rest):
    reader = Reader(Kept)
    reader.feed(stream + rest)
    assert reader.at_boundary is (reader.terminator == b"")
    ours = reader.terminator + b"event: ours\ndata: z\n\n"
    assert reader.feed(ours)[-1:] == [Event(b"ours", b"z")]


@given(STREAMS)
def test_a_comment_at_a_boundary_changes_no_event(stream):
    for cut in range(len(stream) + 1):
        reader = Reader(Kept)
        before = reader.feed(stream[:cut])
        if reader.at_boundary:
            after = reader.feed(b": still here\n\n") + reader.feed(stream[cut:]) + reader.close()
            assert [(event.name, event.data) for event in before + after] == read(stream), cut


def test_the_terminator_is_known_after_the_close_too():
    reader = Reader(Kept)
    reader.feed(b"data: half")
    reader.close()
    assert reader.terminator == b"\n\n"


@pytest.mark.parametrize("step", [1000, 65536, 10**7])
def test_an_event_longer_than_the_bound_goes_through_a_sink_unchanged(step):
    long = b"x" * (EVENT_MAX + 5)
    stream = b"data: a\n\nevent: big\ndata: q\ndata: " + long + b"\ndata: r\n\ndata: b\n\n"
    chunks = [stream[at : at + step] for at in range(0, len(stream), step)]
    assert read(*chunks) == [(b"", b"a"), (b"big", b"q\n" + long + b"\nr"), (b"", b"b")]


def test_many_short_lines_of_one_event_are_bounded_as_one_long_line_is():
    stream = b"data: 1234567\n" * (EVENT_MAX // 4) + b"\n"
    reader = Reader(Kept)
    (event,) = reader.feed(stream)
    assert event.data == b""
    assert bytes(event.sink.data) == b"\n".join([b"1234567"] * (EVENT_MAX // 4))


def test_a_long_line_that_is_no_data_is_dropped_and_the_event_goes_on():
    assert read(b"data: a\n: " + b"x" * 2 * EVENT_MAX, b"yz\ndata: b\n\n") == [(b"", b"a\nb")]


def test_the_rest_of_a_dropped_line_is_no_line_of_its_own():
    assert read(b": " + b"x" * EVENT_MAX, b"data: spoof\ndata: b\n\n") == [(b"", b"b")]


class Nothing:
    def feed(self, piece):
        pass


@pytest.mark.parametrize("head", [b"data: ", b"data: a\ndata: ", b": ", b"event: ", b"\xef\xbb\xbfdata: "])
def test_memory_does_not_grow_with_a_line(head):
    reader, piece = Reader(Nothing), b"x" * 10_000
    tracemalloc.start()
    reader.feed(head)
    for _ in range(2000):
        reader.feed(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20
