"""The double against its own OpenAPI document, by hundreds of generated requests on a real port."""

import asyncio
import threading

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from proxy.emulator.groups.accounts import access_token
from proxy.emulator.groups.openapi import PATH, QUERIES, document
from proxy.emulator.groups.routes import LISTS, ROUTES
from proxy.emulator.groups.service import running_groups

SCHEMA = schemathesis.openapi.from_dict(document())

# fmt: off
LEFT_OUT = {
    # check                           why it is not asked
    "positive_data_acceptance":      "a body of the right form may break a rule that no schema tells, such as a parent of another type",
}
# fmt: on


NAMES = {name for query in QUERIES.values() for name in query}


@SCHEMA.hook
def filter_query(_, query):
    """Names that nobody reads are passed over, as in most services; the document says nothing of them."""
    return all(name in NAMES for name in query or {})


@pytest.fixture(scope="module")
def url():
    """The double, in a thread of its own, as the requests are made by a library that waits."""
    started, ended, found = threading.Event(), asyncio.Event(), []

    async def serve():
        async with running_groups() as service:
            found.append((asyncio.get_running_loop(), service.url))
            started.set()
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(60)
    loop, at = found[0]
    yield at
    loop.call_soon_threadsafe(ended.set)
    thread.join(60)


@SCHEMA.parametrize()
@settings(
    max_examples=30, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_no_request_finds_the_double_and_its_document_apart(case, url):
    excluded = [check for check in schemathesis.checks.CHECKS.get_all() if check.__name__ in LEFT_OUT]
    case.call_and_validate(base_url=url, headers={"x-access-token": access_token("master")}, excluded_checks=excluded)


def test_the_document_is_that_of_the_tables_and_can_be_asked_for(url):
    told = requests.get(url + PATH, timeout=60).json()
    assert told == document()
    operations = [(path, method) for path, methods in told["paths"].items() for method in methods]
    assert len(operations) == len(ROUTES) + len(LISTS)
