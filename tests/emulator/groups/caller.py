"""A caller of the emulated group service: every test here speaks HTTP to a real port."""

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from proxy.emulator.groups.accounts import access_token
from proxy.emulator.groups.service import GroupService, running_groups

MASTER, DELEGATE, MEMBER, INACTIVE, SOUTH = map(access_token, ("master", "delegate", "member", "inactive", "south"))
NEW = {"ko_name": "새 그룹", "en_name": "New"}


@dataclass
class Groups:
    """Calls the administrative paths as the master administrator unless told otherwise."""

    service: GroupService
    session: aiohttp.ClientSession

    async def call(self, method, path="", body: Any = None, *, token=MASTER, headers=None):
        """Status and body; the token may be None."""
        given = {**({"x-access-token": token} if token else {}), **(headers or {})}
        url = self.service.url + (path if path.startswith("/") else f"/v1/admin/member-groups/{path}")
        async with self.session.request(method, url, json=body, headers=given) as response:
            return response.status, await response.json()

    async def data(self, method, path="", body: Any = None, **rest):
        status, value = await self.call(method, path, body, **rest)
        assert (status, value["success"]) == (200, True), value
        return value.get("data")

    async def status(self, *args, **rest):
        return (await self.call(*args, **rest))[0]

    async def read(self, ident, **rest):
        return await self.data("GET", f"{ident}/", **rest)

    async def create(self, name="New", **fields):
        return await self.data("POST", "", {"ko_name": f"{name} ko", "en_name": name, **fields})

    async def count(self, ident):
        return (await self.read(ident))["member_count"]


@asynccontextmanager
async def serving(**options):
    async with running_groups(**options) as service, aiohttp.ClientSession() as session:
        yield Groups(service, session)
