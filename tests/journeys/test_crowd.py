"""One connection more than allowed is closed at once, on whatever event loop the program runs."""

import socket

from tests.journeys.programs import serving


def test_a_connection_too_many_is_closed(home, gateway):
    with serving(home, gateway.url, "--auth", "open", "--max-connections", "1") as program:
        host, _, port = program.url("listens on").removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), 30) as first:
            first.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert first.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
            with socket.create_connection((host, int(port)), 30) as second:
                assert ended(second)
        assert program.stop() == 0
        assert {event["event"] for event in program.events} == {"request", "draining"}


def ended(connection: socket.socket) -> bool:
    """Wait for the other side to close."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
