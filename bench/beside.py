"""Programs that are run once after the rounds, each with figures of its own; a table of their commands."""

import subprocess
import sys
from typing import Final

from bench.books import ROOT

COMMANDS: Final[tuple[tuple[str, ...], ...]] = (
    ("bench.commits",),
    ("bench.inserts",),
    ("bench.waiters",),
    ("bench.tenant",),
)
"""Modules and their arguments; `bench.books` is left out, as its file takes minutes to make."""


def run(command: tuple[str, ...]) -> tuple[str, str]:
    """The command as one would type it, and what it printed, or how it failed."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False
    )
    said = done.stdout if done.returncode == 0 else f"failed: {done.stderr[-500:]}"
    return f"python -m {' '.join(command)}", said.strip()
