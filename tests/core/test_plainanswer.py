"""What is read as a whole answer without the parser, and what is left to it."""

import pytest

from proxy.core.plainanswer import HEAD_MAX, LINE_MAX, NAMES_MAX, VALUES_MAX, Reader

BODY = b'{"a":1}'


def plain(data):
    """Read by one that has read nothing before, and by one that has read the same."""
    reader = Reader()
    first = reader.plain(data)
    assert reader.plain(data) == first
    return first


def answer(*lines, status=b"200 OK", body=BODY, version=b"HTTP/1.1"):
    return b"\r\n".join([version + b" " + status, *lines, b"", b""]) + body


LENGTH = b"Content-Length: 7"


def test_status_header_and_body_are_read_as_they_were_written():
    read = plain(
        answer(b"Content-TYPE:  application/json; charset=utf-8 ", LENGTH, b"X-A:", b"x-a: \xc3\xa9\tb", b"Y: \xff")
    )
    assert read is not None
    assert (read.status, read.body) == (200, BODY)
    assert read.content_type == "application/json; charset=utf-8"
    assert read.headers == (
        ("Content-TYPE", "application/json; charset=utf-8"),
        ("Content-Length", "7"),
        ("X-A", ""),
        ("x-a", "é\tb"),
        ("Y", "\udcff"),
    )


def test_blanks_within_a_value_take_no_longer_than_other_bytes():
    """A time that grows with the square of their number would be the time of every other call: minutes, here."""
    data = answer(b"Content-Length: 0", b"X: a" + b" " * 7_800 + b"b \t", body=b"")
    for _ in range(2_000):
        read = plain(data)
    assert read is not None
    assert read.headers[1] == ("X", "a" + " " * 7_800 + "b")


def test_of_two_types_the_first_counts():
    read = plain(answer(b"Content-Type: text/plain", b"content-type: application/json", LENGTH))
    assert read is not None
    assert read.content_type == "text/plain"


def test_an_empty_body_and_an_empty_reason_are_whole():
    read = plain(answer(b"content-length: 0", status=b"404 ", body=b""))
    assert read == (404, (("content-length", "0"),), "", b"")


def test_a_connection_that_is_kept_open_is_nothing_special():
    assert plain(answer(LENGTH, b"Connection: Keep-Alive")) is not None


@pytest.mark.parametrize(
    "data",
    [
        answer(LENGTH)[:-1],
        answer(LENGTH) + b"x",
        answer(LENGTH)[:20],
        answer(b"X: 1", body=b""),
        answer(LENGTH, LENGTH),
        answer(LENGTH, b"content-length: 8"),
        answer(b"Content-Length: +7"),
        answer(b"Content-Length:"),
        answer(b"Content-Length: " + b"7" * 5000),
        answer(b"Content-Length: 0000000000007"),
        answer(b"Content-Length: 7,7"),
        answer(b"Content-Length: 0x7"),
        answer("Content-Length: ٧".encode()),
        answer(b"Content-Length :7"),
        answer(LENGTH, b"Transfer-Encoding: chunked"),
        answer(LENGTH, b"Content-Encoding: gzip"),
        answer(LENGTH, b"Upgrade: h2c"),
        answer(LENGTH, b"Trailer: x"),
        answer(LENGTH, b"Connection: close"),
        answer(LENGTH, b"Connection: keep-alive, close"),
        answer(LENGTH, b"folded: a", b" b"),
        answer(LENGTH, b"X: a\0b"),
        answer(LENGTH, b"X: a\nY: b"),
        answer(LENGTH, b"X: a\rb"),
        answer(LENGTH, b"no colon"),
        answer(LENGTH, b": no name"),
        answer(LENGTH, b"a b: c"),
        answer(LENGTH, version=b"HTTP/1.0"),
        answer(LENGTH, status=b"100 Continue"),
        answer(LENGTH, status=b"204 No Content"),
        answer(LENGTH, status=b"205 Reset"),
        answer(LENGTH, status=b"304 Not Modified"),
        answer(LENGTH, status=b"600 Odd"),
        answer(LENGTH, status=b"20 OK"),
        answer(LENGTH, status=b"2000 OK"),
        answer(LENGTH, b"X: " + b"a" * HEAD_MAX),
        answer(LENGTH, "Connection: \u212aeep-alive".encode()),
        b"\r\n" + answer(LENGTH),
        b"",
    ],
)
def test_everything_else_is_left_to_the_parser(data):
    assert plain(data) is None


def test_lines_that_differ_each_time_take_no_room_from_those_that_come_again():
    reader = Reader()
    for number in range(3 * VALUES_MAX):
        read = reader.plain(answer(LENGTH, b"X-Request-ID: %d" % number, b"Date: %d" % number))
        assert read is not None
        assert read.headers[1:] == (("X-Request-ID", str(number)), ("Date", str(number)))
    read = reader.plain(answer(LENGTH, b"Server: a"))
    again = reader.plain(answer(LENGTH, b"Server: a"))
    assert read is not None
    assert again is not None
    assert read.headers[1] is again.headers[1], "the line is remembered"
    assert len(reader._lines) == 1 + 2 * VALUES_MAX + 1


def test_what_is_remembered_has_a_bound():
    """Whatever a gateway sends is read all the same."""
    reader = Reader()
    for number in range(2 * NAMES_MAX):
        name, reason = b"X-%d" % number, b"200 OK%d" % number
        long = b"X-%d: %b" % (number % 8, b"a" * LINE_MAX)
        assert (
            reader.plain(answer(LENGTH, name + b": 1", long, b"Y" * LINE_MAX + name + b": 1", status=reason))
            is not None
        )
        assert reader.plain(answer(LENGTH, name + b": 1", name + b"\0: 1", status=reason)) is None
    assert len(reader._names) == len(reader._firsts) == NAMES_MAX
    assert max(map(len, (*reader._lines, *reader._names))) <= LINE_MAX
    assert len(reader._lines) <= NAMES_MAX


def test_a_remembered_line_is_judged_with_the_others_of_its_answer():
    reader = Reader()
    assert reader.plain(answer(LENGTH, b"X: 1")) is not None
    assert reader.plain(answer(LENGTH, b"X: 1", LENGTH)) is None
    assert reader.plain(answer(LENGTH, b"X: 1") + b"x") is None
    assert reader.plain(answer(b"X: 1")) is None
