"""Lines to a file descriptor, from a thread of their own.

A pipe whose reader sleeps blocks the writer, and a full disk or a closed pipe raises: neither may reach the event loop.
Waking the thread for each line would cost every request a switch between threads, so lines are gathered for a moment.
"""

import os
import threading
import time
from collections import deque
from typing import Final

LINES_MAX: Final = 10_000
"""Lines that wait for a slow reader: some seconds of full traffic, about 5 MB."""

GATHER_S: Final = 0.1
"""How long lines are gathered before they are written together; nobody reads a log faster."""


class Sink:
    """Writes lines in order; what does not fit or cannot be written is dropped and counted in `dropped`."""

    def __init__(self, descriptor: int, *, lines_max: int = LINES_MAX) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._lines_max = lines_max
        self._awake = threading.Event()
        self._closing = threading.Event()
        self.dropped = 0
        # A daemon, because a reader that never reads must not keep the process from ending.
        self._thread = threading.Thread(target=self._drain, name="sluicegate-log", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Never waits, never raises."""
        if len(self._lines) >= self._lines_max:
            self.dropped += 1
            return
        self._lines.append(line)
        if not self._awake.is_set():
            self._awake.set()

    def close(self, timeout_s: float = 2.0) -> None:
        """Write what is there, but wait no longer than this for a slow reader."""
        self._closing.set()
        self._awake.set()
        self._thread.join(timeout_s)

    def _drain(self) -> None:
        while True:
            self._awake.wait()
            if not self._closing.is_set():
                time.sleep(GATHER_S)
            self._awake.clear()
            self._write_out()
            if self._closing.is_set() and not self._lines:
                return

    def _write_out(self) -> None:
        while self._lines:
            # The lines leave the queue once they are written, so that a slow reader fills it.
            batch = [self._lines[at] for at in range(min(len(self._lines), 256))]
            try:
                rest = memoryview(b"".join(batch))
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                self.dropped += len(batch)
            for _ in batch:
                self._lines.popleft()
