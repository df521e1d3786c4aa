"""One emulated gateway and one proxy per worker, a person with an empty home per test, and what runs in the header."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.roster import ROSTER, found
from tests.clients.strangers import Strangers, listening
from tests.clients.turns import Person
from tests.journeys.programs import Emulated, emulating, proxying


def pytest_report_header() -> list[str]:
    """The versions that run, and loudly what does not."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        rows = {name: found(name, home) for name in ROSTER}
    lines = [f"  {name:<14}{row.version or 'DOES NOT RUN HERE: ' + row.why_not}" for name, row in rows.items()]
    return ["clients:", *lines]


@pytest.fixture(scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def _gateway(_home: Path) -> Iterator[Emulated]:
    with emulating(_home) as gateway:
        yield gateway


@pytest.fixture(scope="session")
def _url(_home: Path, _gateway: Emulated) -> Iterator[str]:
    with proxying(_home, _gateway.url) as url:
        yield url


@pytest.fixture(scope="session")
def _strangers() -> Iterator[Strangers]:
    with listening() as strangers:
        yield strangers


@pytest.fixture
def gateway(_gateway: Emulated) -> Emulated:
    """The gateway without faults, with full balances and an empty journal."""
    _gateway.reset()
    return _gateway


@pytest.fixture
def strangers(_strangers: Strangers) -> Strangers:
    """Nobody else was asked yet."""
    _strangers.hosts.clear()
    return _strangers


@pytest.fixture
def person(tmp_path: Path, _url: str, gateway: Emulated, strangers: Strangers) -> Person:
    return Person(tmp_path, _url, strangers)


@pytest.fixture(scope="session")
def needs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], None]:
    """Skips, with the evidence, what cannot run on this machine."""
    home = str(tmp_path_factory.mktemp("versions"))

    def check(name: str) -> None:
        if found(name, home).version is None:
            pytest.skip(f"{name} DOES NOT RUN HERE: {found(name, home).why_not}")

    return check
