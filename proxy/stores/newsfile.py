"""What was told and what still waits: a file in the data folder, so that a restart tells nothing twice."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

FILE: Final = "alerts.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """told: ids. waiting: news as JSON values."""

    told: tuple[str, ...] = ()
    waiting: tuple[dict[str, Any], ...] = ()


class NewsFile:
    """One file, written whole. Where it cannot be written, a restart may tell something again."""

    def __init__(self, folder: Path) -> None:
        self._path: Final = folder / FILE

    def read(self) -> Kept:
        """What an earlier process kept; nothing where there is no such file or it is broken."""
        try:
            said = orjson.loads(self._path.read_bytes())
            return Kept(tuple(map(str, said["told"])), tuple(dict(one) for one in said["waiting"]))
        except (OSError, ValueError, KeyError, TypeError):
            return Kept()

    def keep(self, kept: Kept) -> None:
        """Write it durably; raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = self._path.with_suffix(".new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps({"told": kept.told, "waiting": kept.waiting}))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
