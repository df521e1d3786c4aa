"""A request is written when the other side has all of it, and not when the system took it."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest

from proxy.server.departure import LOOK_S, on_way
from proxy.server.upstream import PIECE, Broke, Outgoing, Upstream, headers_of

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
SMALL, LARGE = 200_000, PIECE + 100_000
"""What the system takes from this process at once, and what goes out in pieces."""


class Peer:
    """The other end of a line that holds a few kilobytes, and whether the request was told to be written."""

    def __init__(self, sock: socket.socket, sending: asyncio.Task, told: asyncio.Event, upstream: Upstream) -> None:
        self.sock, self.sending, self.told, self.upstream = sock, sending, told, upstream

    async def read(self, size: int) -> None:
        loop = asyncio.get_running_loop()
        while size > 0:
            got = await loop.sock_recv(self.sock, size)
            assert got
            size -= len(got)


@asynccontextmanager
async def asked(size):
    """A request of so many bytes of body that is on its way."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    with socket.socket() as listening:
        # Connections have it from here, and its size stays as it was set.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        upstream = Upstream(url, connect_s=60.0, read_s=60.0, keepalive_s=1.0)
        sending = asyncio.create_task(
            upstream.send(Outgoing("POST", "/", headers_of({}), b"x" * size, "id-1"), told.set)
        )
        peer, _ = await loop.sock_accept(listening)
        try:
            with peer:
                yield Peer(peer, sending, told, upstream)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await upstream.close()


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_what_is_still_on_this_machine_is_not_written(size):
    async with asked(size) as peer:
        await peer.read(1)
        departures = peer.upstream._departures
        if size == SMALL:
            # It was handed over whole; what goes out in pieces is not looked at before.
            departures._timer.cancel()
            departures._look()
        assert not peer.told.is_set(), "this was its first byte"
        await peer.read(size)
        await peer.told.wait()
        assert not peer.sending.done()
        await asyncio.get_running_loop().sock_sendall(peer.sock, ANSWER)
        assert (await peer.sending).status == 200


async def test_what_is_small_is_written_at_once_where_the_other_side_is_near():
    async with asked(10) as peer:
        await peer.told.wait()
        assert not peer.sending.done()


async def test_an_answer_that_begins_before_says_more_and_is_told_alone():
    async with asked(SMALL) as peer:
        await peer.read(1)
        await asyncio.get_running_loop().sock_sendall(peer.sock, ANSWER)
        assert (await peer.sending).status == 200
        await peer.read(SMALL)
        # Whoever looks on would have done so before.
        await asyncio.sleep(2 * LOOK_S)
        assert not peer.told.is_set()


async def test_a_line_that_breaks_is_told_by_whoever_waits_for_the_answer_alone():
    async with asked(SMALL) as peer:
        await peer.read(1)
        peer.sock.close()
        with pytest.raises(Broke):
            await peer.sending
        await asyncio.sleep(2 * LOOK_S)
        assert not peer.told.is_set()


class Holding(asyncio.WriteTransport):
    """A transport that keeps bytes although the system would take them, as one that encrypts them may."""

    def __init__(self, kept: int, sock: socket.socket) -> None:
        super().__init__({"socket": sock})
        self.kept = kept

    def get_write_buffer_size(self) -> int:
        return self.kept


def test_what_waits_in_this_process_is_on_its_way_too():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not on_way(Holding(0, ours))
        assert on_way(Holding(1, ours))
    assert not on_way(Holding(0, ours)), "it is closed"
