"""The double of the member-group service, and clients of it that do not wait before they repeat a call."""

from contextlib import asynccontextmanager
from pathlib import Path

from proxy.config.secret import Secret
from proxy.config.values import base_url
from proxy.emulator.groups.accounts import access_token
from proxy.groups.applied import Applied
from proxy.groups.apply import apply
from proxy.groups.client import group_client
from proxy.groups.compare import compare
from proxy.groups.groupsfile import GroupsFile
from proxy.groups.present import silent
from proxy.groups.steps import sentence


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


class Bench:
    """Plans and applies entries without a file."""

    def __init__(self, service, client, folder):
        self.service, self.client, self.path = service, client, Path(folder) / "groups.yaml"

    async def plan(self, *entries):
        file = GroupsFile(None, entries)
        return await compare(self.client, file, self.service.url, self.applied(), silent)

    async def says(self, *entries):
        plan = await self.plan(*entries)
        return [sentence(step, plan.names) for step in plan.steps]

    def asked(self):
        return targets(self.service)

    async def apply(self, *entries):
        """The outcome, and what was asked of the service for it after planning."""
        plan = await self.plan(*entries)
        before = len(self.service.journal)
        outcome = await apply(self.client, plan, self.applied(), silent)
        return outcome, targets(self.service)[before:]

    def applied(self):
        return Applied.beside(self.path, self.service.url)
