"""Groups as code on a large tenant: how long a plan and an apply take, and how many requests, against the double.

python -m bench.tenant                                2,000 groups, 50,000 members
python -m bench.tenant --groups 200 --members 5000    a smaller one
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from proxy.config.secret import Secret
from proxy.config.values import base_url
from proxy.emulator.groups.accounts import access_token
from proxy.emulator.groups.records import Person
from proxy.emulator.groups.service import GroupService, running_groups
from proxy.groups.applied import Applied
from proxy.groups.apply import apply
from proxy.groups.client import GroupClient, group_client
from proxy.groups.compare import compare
from proxy.groups.groupsfile import GroupsFile
from proxy.groups.present import silent
from proxy.groups.wanted import UNSET, Wanted

TREE: Final = 50
"""Groups of one tree."""
FILLED: Final = 2
"""Groups that hold all members between them."""
FIRST: Final = 1000
"""The lowest id of a member."""


def entries_of(groups: int, members: int) -> list[Wanted]:
    """Trees of `TREE` groups each, seven below each group."""
    return [
        Wanted(
            en_name=f"G{number}",
            ko_name=f"그룹 {number}",
            type_id=1,
            parent=f"G{number - number % TREE + (number % TREE - 1) // 7}" if number % TREE else None,
            group_quota=100,
            member_quota=10,
            models={5: False},
            members=tuple(range(FIRST + number, FIRST + members, FILLED)) if number < FILLED else UNSET,
        )
        for number in range(groups)
    ]


class Work:
    """Plans and applies, and tells what each took."""

    def __init__(self, service: GroupService, client: GroupClient, folder: Path) -> None:
        self._service: Final = service
        self._client: Final = client
        self._path: Final = folder / "groups.yaml"

    async def tell(self, what: str, entries: Sequence[Wanted]) -> None:
        """Print one line."""
        applied = Applied.beside(self._path, self._service.url)
        self._service.journal.clear()
        began_s = time.perf_counter()
        plan = await compare(self._client, GroupsFile(None, tuple(entries)), self._service.url, applied, silent)
        planned_s, asked = time.perf_counter() - began_s, len(self._service.journal)
        outcome = await apply(self._client, plan, applied, silent)
        assert outcome.complete, outcome.failures[:3]
        took_s, sent = time.perf_counter() - began_s - planned_s, len(self._service.journal) - asked
        print(f"{what}: plan {planned_s:.2f} s with {asked} requests, apply {took_s:.2f} s with {sent:,} requests")


async def main() -> None:
    """Fill a tenant, then change it, then change nothing."""
    parser = argparse.ArgumentParser(prog="python -m bench.tenant", description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--members", type=int, default=50_000)
    given = parser.parse_args()
    async with running_groups() as service:
        people = range(FIRST, FIRST + given.members)
        service.tenant.people |= {ident: Person(ident, f"P{ident}", f"p{ident}@example.org") for ident in people}
        entries = entries_of(given.groups, given.members)
        raised = [replace(entry, group_quota=200, members=UNSET) for entry in entries]
        filled = [replace(entry, group_quota=200) for entry in entries if entry.members is not UNSET]
        folder = Path(tempfile.mkdtemp(prefix="tenant-"))
        async with group_client(base_url(service.url), Secret(access_token("master"))) as client:
            work = Work(service, client, folder)
            await work.tell(f"from nothing to {given.groups:,} groups and {given.members:,} members", entries)
            await work.tell("another quota for all groups", raised)
            await work.tell("nothing to do", raised)
            await work.tell("nothing to do, with the members of two groups compared", filled)


if __name__ == "__main__":
    asyncio.run(main())
