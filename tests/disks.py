"""A disk as the calls of a program leave it, and what of it is left when the power goes: a replay of recorded writes."""

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.syscalls import Event

SECTOR: Final = 512


@dataclass
class Disk:
    """What of each file is on the disk for good, and what was written since."""

    kept: dict[str, bytes] = field(default_factory=dict)
    written: dict[str, list[Event]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def take(self, event: Event) -> None:
        if event.name in ("fdatasync", "fsync"):
            self.kept[event.target] = self.after(event.target, self.written.pop(event.target, []))
            self.gone = {name for name in self.gone if Path(name).parent != Path(event.target)}
        elif event.name == "unlink":
            self.kept.pop(event.target, None)
            self.written.pop(event.target, None)
        else:
            self.written.setdefault(event.target, []).append(event)

    def after(self, name: str, writes: Sequence[Event]) -> bytes:
        content = bytearray(self.kept.get(name, b""))
        for write in writes:
            if write.name == "ftruncate":
                del content[write.at :]
                content.extend(bytes(write.at - len(content)))
                continue
            content.extend(bytes(max(0, write.at - len(content))))
            content[write.at : write.at + len(write.data)] = write.data
        return bytes(content)

    def worst(self) -> Mapping[str, bytes]:
        """Nothing of what was not synced is there."""
        return {name: self.after(name, []) for name in self.kept.keys() | self.written.keys()}

    def torn(self, rng: random.Random) -> Mapping[str, bytes]:
        """Of what was not synced some writes are there, in whole or by sectors."""
        return {
            name: self.after(name, [part for write in self.written.get(name, []) for part in _parts(write, rng)])
            for name in self.kept.keys() | self.written.keys()
        }


def _parts(write: Event, rng: random.Random) -> Iterator[Event]:
    match rng.choice(("none", "whole", "torn")):
        case "whole":
            yield write
        case "torn" if write.data:
            for at in range(0, len(write.data), SECTOR):
                if rng.random() < 0.5:
                    yield Event(write.name, write.target, write.data[at : at + SECTOR], write.at + at)


def left(files: Mapping[str, bytes], folder: Path) -> set[str]:
    """What a file says that a power cut left like this."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / Path(name).name).write_bytes(content)
    with closing(sqlite3.connect(folder / "ledger.db")) as books:
        assert books.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {f"{kind} {hold}" for kind, hold in books.execute("SELECT kind, hold FROM entries")}
