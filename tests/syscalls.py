"""What a program does to its files and sockets, as `strace` writes it down: one event a call of the system."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

CALLS: Final = "pwrite64,write,writev,sendto,sendmsg,fdatasync,fsync,ftruncate,unlink"

SYNCS: Final = ("fdatasync", "fsync")

_LINE: Final = re.compile(r"(\d+) +(\w+)\((.*)")
_RESUMED: Final = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")
_FILE: Final = re.compile(r"\d+<(.*?)>(?=[,)])")
_TEXT: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True)
class Event:
    """One call. target: the path or the addresses of what it was done to.

    at: of bytes written, and the new size of a file that is cut.
    """

    name: str
    target: str
    data: bytes = b""
    at: int = 0


@cache
def can_trace() -> bool:
    """Whether programs can be watched here: some containers forbid it."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0


def tracing(log: Path, *command: str) -> list[str]:
    """The command, watched. It is the process that is started; its output ends when the last call is written down."""
    return ["strace", "-D", "-f", "-yy", "-xx", "-s", "70000", "-e", f"trace={CALLS}", "-o", str(log), *command]


def events(log: Path) -> Sequence[Event]:
    """All calls that returned: a sync stands where it had returned, all else where it began."""
    lines = log.read_text("ascii", "replace").splitlines()
    pending: dict[str, tuple[int, str, str]] = {}
    found: list[tuple[int, Event]] = []
    for place, line in enumerate(lines):
        if (resumed := _RESUMED.match(line)) is not None:
            thread, rest = resumed.groups()
            if thread in pending:
                began, name, given = pending.pop(thread)
                found.extend(_event(place if name in SYNCS else began, name, given.rstrip() + rest.lstrip()))
        elif (call := _LINE.match(line)) is not None:
            thread, name, given = call.groups()
            if given.endswith("<unfinished ...>"):
                pending[thread] = place, name, given.removesuffix("<unfinished ...>")
            else:
                found.extend(_event(place, name, given))
    return [event for _, event in sorted(found, key=lambda pair: pair[0])]


def _event(place: int, name: str, text: str) -> Iterator[tuple[int, Event]]:
    given, _, result = text.rpartition(" = ")
    if result.startswith("-1") or not given:
        return
    target = _FILE.match(given)
    data = b"".join(bytes.fromhex(one.replace("\\x", "")) for one in _TEXT.findall(given))
    path = bytes.fromhex(_TEXT.match(given)[1].replace("\\x", "")).decode() if name == "unlink" else ""
    if target is not None and "\\x" in target[1]:
        path = bytes.fromhex(target[1].replace("\\x", "")).decode()
    numbers = re.findall(r", (\d+)(?=\)|,|$)", given.rstrip())
    at = int(numbers[-1]) if name in ("pwrite64", "ftruncate") and numbers else 0
    yield place, Event(name, path or (target[1] if target else ""), b"" if name == "unlink" else data, at)
