"""Departure: when the last byte of a request is with the other side, as far as the system tells.

What was handed to the system may stay on this machine for seconds: a large body behind a slow line, packets that are
lost, a laptop that sleeps. Until all of it is confirmed the gateway cannot have counted the call.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Final

if sys.platform == "linux":
    from fcntl import ioctl
    from termios import TIOCOUTQ

LOOK_S: Final = 0.1
"""How often it is looked whether the bytes are gone; a place under a rate comes back so much later at most.

Of calls that are answered sooner than the guard it says nothing, since the answer says more.
"""


def on_way(transport: asyncio.WriteTransport) -> bool:
    """Whether bytes wait in this process, or in the system for the other side to confirm them.

    Only Linux is asked for the latter.
    """
    if transport.get_write_buffer_size():
        return True
    if sys.platform != "linux":
        return False
    try:
        return any(ioctl(transport.get_extra_info("socket").fileno(), TIOCOUTQ, bytes(4)))
    except (OSError, ValueError):
        # It was closed meanwhile, and whoever waits for the answer hears of that.
        return False


class Departure:
    """Tells once when the last byte is gone, unless an answer begins before."""

    __slots__ = ("_gone", "_transport")

    def __init__(self, gone: Callable[[], None] | None) -> None:
        self._gone = gone
        self._transport: asyncio.WriteTransport | None = None

    def begin(self, transport: asyncio.WriteTransport | None) -> None:
        """All of the request was handed to a transport; None: it is closed already."""
        self._transport = transport
        self._look()

    def stop(self) -> None:
        """Nobody has to be told any more."""
        self._gone = None

    def _look(self) -> None:
        if self._gone is None or self._transport is None:
            return
        if on_way(self._transport):
            asyncio.get_running_loop().call_later(LOOK_S, self._look)
            return
        self._gone()
