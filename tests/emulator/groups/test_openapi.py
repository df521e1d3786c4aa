"""The described service and the running one agree, over generated requests that fit the description and that do not."""

import asyncio
import threading
from contextlib import contextmanager

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from proxy.emulator.groups.openapi import document
from proxy.emulator.groups.service import running_groups
from tests.emulator.groups.caller import MASTER

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    ignored_auth,
    unsupported_method,
]
"""Not whether data that fits is taken: names that are taken and rules of the tree are refused with 400 too."""


@contextmanager
def served():
    """The service on a loop of its own, as the generated requests block; gives its address."""
    address, started, done = [], threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve():
        async with running_groups() as service:
            address.append(service.url)
            started.set()
            await done.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert started.wait(30)
        yield address[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def address():
    with served() as url:
        yield url


@schemathesis.openapi.from_dict(document()).parametrize()
@settings(
    max_examples=12,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_service_does_what_its_description_says(case, address):
    case.call_and_validate(base_url=address, headers={"x-access-token": MASTER}, checks=CHECKS)
