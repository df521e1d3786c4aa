"""Processes that are measured: each on the core it is given, CPU time and memory as the system counts them."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

CORES: Final = sorted(os.sched_getaffinity(0))
CANDIDATE_CORE: Final = CORES[-1]
"""Where the candidate runs, alone."""
OTHER_CORE: Final = CORES[0]
"""Where gateway and callers run; the same core when there is but one."""


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Process:
    """A running program with all its children."""

    popen: subprocess.Popen[bytes]

    @classmethod
    def start(cls, command: list[str], *, core: int, log: Path, env: Mapping[str, str], folder: Path) -> "Process":
        """Start a program on one core; what it says goes to `log`."""
        said: IO[bytes]
        with log.open("ab") as said:
            popen = subprocess.Popen(
                ["taskset", "-c", str(core), *command],
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **env},
                cwd=folder,
                start_new_session=True,
            )
        return cls(popen)

    def pids(self) -> list[int]:
        """It and its descendants."""
        parents: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (stat := _read(entry / "stat")):
                parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
        found, waiting = [], [self.popen.pid]
        while waiting:
            found.append(pid := waiting.pop())
            waiting += parents.get(pid, [])
        return found

    def cpu_s(self) -> float:
        """CPU time of all its threads so far, in seconds, exact to the scheduler's nanoseconds."""
        files: Iterable[Path] = (
            task / "schedstat" for pid in self.pids() for task in Path(f"/proc/{pid}/task").glob("*")
        )
        return sum(int(text.split()[0]) for text in map(_read, files) if text) / 1e9

    def memory_mib(self) -> float:
        """Resident memory, what is shared counted by share, in MiB."""
        kib = 0
        for pid in self.pids():
            for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
        return kib / 1024

    def pause(self) -> None:
        """Let it stand still while others are measured."""
        os.killpg(self.popen.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again."""
        os.killpg(self.popen.pid, signal.SIGCONT)

    def end(self) -> None:
        """End it and its children at once; nothing of it is worth keeping."""
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.popen.wait(10)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def first_answer_s(port: int, request: bytes, process: Process, *, patience_s: float) -> float:
    """Ask until the first 200, and say how long that took, in seconds. Raises RuntimeError when it never comes."""
    began_s = time.monotonic()
    said = b""
    while time.monotonic() - began_s < patience_s and process.popen.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as asking:
                asking.settimeout(patience_s)
                asking.sendall(request)
                said = asking.recv(400)
        except OSError as error:
            said = repr(error).encode()
        if said[9:12] == b"200":
            return time.monotonic() - began_s
        time.sleep(0.005)
    raise RuntimeError(f"no answer: {said[:300]!r}")
