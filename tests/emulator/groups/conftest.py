import pytest

from tests.emulator.groups.caller import serving


def pytest_configure(config):
    config.addinivalue_line("markers", "group_fact(id): this test shows the fact of docs/groups.md with this id")


@pytest.fixture
async def groups():
    async with serving() as caller:
        yield caller
