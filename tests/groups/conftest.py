import pytest

from proxy.emulator.groups.service import running_groups
from tests.groups.services import Bench, client_of


@pytest.fixture
async def service():
    async with running_groups() as running:
        yield running


@pytest.fixture
async def client(service):
    async with client_of(service) as master:
        yield master


@pytest.fixture
async def bench(service, client, tmp_path):
    return Bench(service, client, tmp_path)
