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
"""How often it is looked whether bytes are gone; a place under a rate comes back so much later at most.

Of calls that are answered sooner nothing is asked, since the answer says more.
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


class Departures:
    """All requests whose last byte may still be here. Each is told once when it is gone, unless it is taken back."""

    def __init__(self) -> None:
        """Call it inside a running loop."""
        self._loop: Final = asyncio.get_running_loop()
        self._here: Final[dict[asyncio.WriteTransport, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.WriteTransport | None, gone: Callable[[], None]) -> None:
        """All of a request was handed to a transport; None: it is closed already."""
        if transport is None:
            return
        self._here[transport] = gone
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_S, self._look)

    def stop(self, transport: asyncio.WriteTransport | None) -> None:
        """Nobody has to be told any more."""
        if transport is not None:
            self._here.pop(transport, None)

    def close(self) -> None:
        """Look no more."""
        self._here.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        for transport, gone in list(self._here.items()):
            if not on_way(transport):
                del self._here[transport]
                gone()
        if self._here:
            self._timer = self._loop.call_later(LOOK_S, self._look)
