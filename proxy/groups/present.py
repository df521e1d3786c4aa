"""What the service holds, as far as a file of groups needs it: read with as few requests as that takes."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from proxy.groups.client import GroupClient
from proxy.groups.records import Agent, Candidate, Overview
from proxy.groups.wanted import Person, Unset, Wanted

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done and how much there is."""


def silent(what: str, done: int, total: int) -> None:
    """No progress is shown."""


@dataclass(slots=True)
class Present:
    """groups: all in the account's scope, by id. The rest, by group id, only where it was asked for.

    people:   every member of the tenant by address in small letters, where somebody is named by address.
    defaults: the tenant's default of each agent, where any agent is spoken of.
    """

    groups: dict[int, Overview]
    hidden: dict[int, bool] = field(default_factory=dict)
    agents: dict[int, dict[str, Agent]] = field(default_factory=dict)
    administrators: dict[int, dict[int, bool]] = field(default_factory=dict)
    members: dict[int, tuple[Candidate, ...]] = field(default_factory=dict)
    people: dict[str, int] = field(default_factory=dict)
    defaults: dict[str, bool] = field(default_factory=dict)


async def read_groups(client: GroupClient) -> Present:
    """All groups by the overview, a hundred with each request."""
    # A group created while we read shifts the pages, and one stands on two of them.
    return Present({row.id: row async for row in client.overview()})


async def read_details(
    client: GroupClient, present: Present, found: Mapping[int, Wanted], others: Collection[Wanted], progress: Progress
) -> None:
    """Fill in what the file speaks about. found: the entries of groups that exist; others: of those that do not."""
    tasks: list[Callable[[], Awaitable[None]]] = []
    for ident, wanted in found.items():
        tasks += _tasks(client, present, ident, wanted)
    await all_of("reading groups", tasks, progress)
    switching = any(wanted.agents and not isinstance(wanted.agents, Unset) for wanted in others)
    if switching and not present.defaults and present.groups:
        _note_defaults(present, await client.agents(min(present.groups)))
    named = any(isinstance(person, str) for wanted in [*found.values(), *others] for person in _people(wanted))
    if named and not present.people and present.groups:
        # Addable members of any group are all members of the tenant.
        _note_people(present, await client.addable_members(min(present.groups)))


def _tasks(
    client: GroupClient, present: Present, ident: int, wanted: Wanted
) -> Sequence[Callable[[], Awaitable[None]]]:
    async def alone() -> None:
        present.hidden[ident] = (await client.read(ident)).admin_only

    async def agents() -> None:
        rows = await client.agents(ident)
        present.agents[ident] = {agent.type: agent for agent in rows}
        _note_defaults(present, rows)

    async def administrators() -> None:
        rows = await client.administrators(ident)
        present.administrators[ident] = {row.id: row.include_descendants for row in rows}

    async def members() -> None:
        rows = await client.addable_members(ident)
        present.members[ident] = tuple(row for row in rows if row.is_member)
        _note_people(present, rows)

    if not isinstance(wanted.members, Unset) and not present.groups[ident].member_count:
        present.members[ident] = ()
    wishes = (
        (wanted.admin_only, alone),
        (wanted.agents or Unset.UNSET, agents),
        (wanted.administrators, administrators),
        (Unset.UNSET if ident in present.members else wanted.members, members),
    )
    return [read for wish, read in wishes if not isinstance(wish, Unset)]


def _people(wanted: Wanted) -> Iterable[Person]:
    for people in (wanted.members, wanted.administrators):
        if not isinstance(people, Unset):
            yield from people


def _note_people(present: Present, rows: Iterable[Candidate]) -> None:
    if not present.people:
        present.people = {row.email.lower(): row.id for row in rows}


def _note_defaults(present: Present, rows: Iterable[Agent]) -> None:
    present.defaults |= {row.type: row.tenant_default for row in rows}


REPORTS: Final = 100
"""Progress is told about so many times."""


async def all_of(what: str, tasks: Sequence[Callable[[], Awaitable[None]]], progress: Progress) -> None:
    """Run all of them, as many at once as the wire takes; the first fault ends them."""
    done = 0

    async def one(task: Callable[[], Awaitable[None]]) -> None:
        nonlocal done
        await task()
        done += 1
        if done % max(1, len(tasks) // REPORTS) == 0 or done == len(tasks):
            progress(what, done, len(tasks))

    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(one(task))
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None
