"""A folder of their own for commands: no settings, no policies, a data folder, and nobody who answers."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in list(os.environ):
        if name.startswith("SLUICEGATE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICEGATE_DATA", str(tmp_path / "data"))
    # Nothing listens on port 1.
    monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", "127.0.0.1:1")
    monkeypatch.chdir(tmp_path)
    return tmp_path
