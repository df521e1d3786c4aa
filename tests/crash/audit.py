"""What must hold in the books after a kill, looked up in a copy of the file with arithmetic of its own.

None of the proxy's code is used here: whatever it gets wrong it would get wrong twice.
"""

import hashlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

CREDIT: Final = 10**8
ENTRIES: Final = """
    SELECT entries.id, kind, hold, coalesce(team, ''), credits, reason, at_s, ending
    FROM entries LEFT JOIN facts ON facts.id = entries.facts ORDER BY entries.id
"""


@dataclass
class Audit:
    """The books of one run, looked at again and again.

    limits: most credits of a team, in units of 1e-8, in one window that does not end meanwhile.
    """

    ledger: Path
    limits: Mapping[str, int]
    entries: int = 0
    held: Counter[str] = field(default_factory=Counter)
    settled: Counter[str] = field(default_factory=Counter)
    holds: Counter[str] = field(default_factory=Counter)
    reasons: set[str] = field(default_factory=set)
    _open: dict[str, tuple[str, int]] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _digest: bytes = b""

    def look(self, scratch: Path) -> None:
        """Copy the file and its log of writes as the kill left them, open the copy, and go through what is in it."""
        for ending in ("", "-wal"):
            if (part := Path(f"{self.ledger}{ending}")).exists():
                shutil.copyfile(part, scratch / f"copy{ending}")
        with closing(sqlite3.connect(scratch / "copy")) as books:
            assert books.execute("PRAGMA quick_check").fetchall() == [("ok",)]
            # A process that died while it made the file has left an empty one.
            made = books.execute("SELECT 1 FROM sqlite_schema WHERE name = 'entries'").fetchall()
            self._go_through(books.execute(ENTRIES).fetchall() if made else [])
        for ending in ("", "-wal", "-shm"):
            (scratch / f"copy{ending}").unlink(missing_ok=True)

    def _go_through(self, rows: list[Any]) -> None:
        """I4: what was there is there, unchanged; then one new entry after the other."""
        old, new = rows[: self.entries], rows[self.entries :]
        assert len(old) == self.entries, "I4: an entry is gone"
        assert digest(old) == (self._digest or digest([])), "I4: an entry has changed"
        for row in new:
            self._one(*row)
        self.entries, self._digest = len(rows), digest(rows)

    def _one(self, _: int, kind: str, hold: str, team: str, amount: int, reason: str, *__: Any) -> None:
        match kind:
            case "hold":
                assert hold not in self._open, "I2: a hold is taken twice"
                assert hold not in self._ended, "I2: a hold is taken after its ending"
                self._open[hold] = team, amount
                self.held[team] += amount
                self.holds[team] += 1
                limit = self.limits.get(team)
                # I1 at every single admission, not only at the end.
                assert limit is None or self.settled[team] + self.held[team] <= limit, f"I1: {team} is over its limit"
            case "settle" | "void":
                assert hold not in self._ended, "I2: a hold ends twice"
                assert hold in self._open, "I2: an ending without a hold"
                whose, was = self._open.pop(hold)
                self._ended.add(hold)
                self.held[whose] -= was
                self.settled[whose] += amount if kind == "settle" else 0
            case "adjust":
                self.settled[team] += amount
                self.reasons.add(reason)
            case _:
                raise AssertionError(f"no {kind} can be here")


def digest(rows: list[Any]) -> bytes:
    return hashlib.sha256(repr(rows).encode()).digest()
