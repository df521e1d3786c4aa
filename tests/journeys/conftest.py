"""One emulated gateway and one proxy in front of it for all journeys of a worker; the gateway is as new for each."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.journeys.programs import Emulated, emulating, proxying

CLIENTS_READ = ("OPENAI_", "ANTHROPIC_", "MCP_", "SLUICEGATE_", "LANGCHAIN_", "LANGSMITH_")
"""Beginnings of variables that would send a client elsewhere, or give it another key."""


@pytest.fixture(scope="session")
def own_environment() -> Iterator[None]:
    """Clients run inside the tests: nothing that whoever runs them has set shall lead one past the proxy."""
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name.startswith(CLIENTS_READ) or name.lower().endswith("_proxy"):
                environment.delenv(name)
        yield


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def _emulated(home: Path) -> Iterator[Emulated]:
    with emulating(home) as gateway:
        yield gateway


@pytest.fixture(scope="session")
def url(own_environment: None, home: Path, _emulated: Emulated) -> Iterator[str]:
    """The proxy, in open mode, in front of the gateway."""
    with proxying(home, _emulated.url) as url:
        yield url


@pytest.fixture(autouse=True)
def gateway(_emulated: Emulated) -> Emulated:
    """The gateway without faults, with full balances and an empty journal."""
    _emulated.reset()
    return _emulated


@pytest.fixture(scope="session")
def http(own_environment: None) -> Iterator[httpx2.Client]:
    """A client without an SDK; one for all, as making one takes longer than most calls."""
    with httpx2.Client(timeout=60) as client:
        yield client
