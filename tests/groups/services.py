"""The double of the member-group service, and clients of it that do not wait before they repeat a call."""

from contextlib import asynccontextmanager

from proxy.config.secret import Secret
from proxy.config.values import base_url
from proxy.emulator.groups.accounts import access_token
from proxy.groups.client import group_client


async def at_once(seconds: float) -> None:
    """A pause of no time."""


@asynccontextmanager
async def client_of(service, account="master", pause=at_once):
    """A client with the token of this account."""
    async with group_client(base_url(service.url), Secret(access_token(account)), pause) as client:
        yield client


def targets(service):
    """What was asked of the service so far: method and path after the common prefix, without the query."""
    return [
        f"{seen.method} {seen.target.partition('?')[0].removeprefix('/v1/admin/member-groups/')}"
        for seen in service.journal
    ]
