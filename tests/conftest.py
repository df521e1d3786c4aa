"""What nearly every test uses: an emulated gateway on a real port, and a proxy in front of it."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, settings

from proxy.emulator.gateway import Gateway
from proxy.emulator.gateway import running as emulated
from proxy.emulator.options import Options
from tests.proxies import Front, proxied

# Properties are tried on the same examples everywhere, in whatever room they stand, and a slow machine is no failure.
settings.register_profile(
    "everywhere", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("everywhere")


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    """A strict double without limits on rates, so that a test is about what it is about."""
    async with emulated(Options(limits=False)) as running:
        yield running


@pytest.fixture
async def front(gateway: Gateway) -> AsyncIterator[Front]:
    """A proxy in open mode in front of `gateway`."""
    async with proxied(gateway.url) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What could not run here is said loudly: nobody shall take it for shown."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("DID NOT RUN HERE, AND IS NOT SHOWN", red=True, bold=True)
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.line(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")
