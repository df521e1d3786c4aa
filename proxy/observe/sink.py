"""Lines to a file descriptor, from a thread of their own.

A pipe whose reader sleeps blocks the writer, and a full disk or a closed pipe raises: neither may reach the event loop.
"""

import os
import queue
import threading
from typing import Final

LINES_MAX: Final = 10_000
"""Lines that wait for a slow reader: some seconds of full traffic, about 5 MB."""


class Sink:
    """Writes lines in order; what does not fit or cannot be written is dropped and counted in `dropped`."""

    def __init__(self, descriptor: int, *, lines_max: int = LINES_MAX) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[bytes | None] = queue.Queue(lines_max)
        self.dropped = 0
        # A daemon, because a reader that never reads must not keep the process from ending.
        self._thread = threading.Thread(target=self._drain, name="sluicegate-log", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Never waits, never raises."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def close(self, timeout_s: float = 2.0) -> None:
        """Write what is there, but wait no longer than this for a slow reader."""
        try:
            self._lines.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _drain(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                self.dropped += 1
