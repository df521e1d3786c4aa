"""What nearly every test uses: an emulated gateway on a real port, and a proxy in front of it."""

from collections.abc import AsyncIterator

import pytest

from proxy.emulator.gateway import Gateway
from proxy.emulator.gateway import running as emulated
from proxy.emulator.options import Options
from tests.proxies import Front, proxied


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
