"""Where the comparison of balance and ledger stands: a file beside the ledger, so that it goes on over restarts."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from proxy.core.reconciliation import Reading, Span

FILE: Final = "reconciliation.json"


class SpanFile:
    """One span. Without the file a new one begins; nothing else depends on it."""

    def __init__(self, folder: Path) -> None:
        self._path: Final = folder / FILE
        self.span: Span | None = _read(self._path)

    def correct(self, amount: int) -> None:
        """What was corrected by hand, in units of 1e-8 credit, is no charge of the gateway: both looks see it alike."""
        if self.span is not None:
            first, last = (replace(one, settled=one.settled + amount) for one in (self.span.first, self.span.last))
            self.keep(replace(self.span, first=first, last=last))

    def keep(self, span: Span) -> None:
        """Remember a span; where the file cannot be written, until this process ends."""
        self.span = span
        beside = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump(asdict(span), file)
            beside.replace(self._path)
        except OSError:
            return


def _read(path: Path) -> Span | None:
    try:
        kept = json.loads(path.read_bytes())
        return Span(Reading(**kept["first"]), Reading(**kept["last"]), kept["added"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
