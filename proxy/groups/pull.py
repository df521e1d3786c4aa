"""Writing down what the service holds: the file of groups and the lists of their members."""

import os
from enum import Enum
from pathlib import Path

from proxy.groups.applied import Applied
from proxy.groups.client import GroupClient
from proxy.groups.groupsfile import file_text
from proxy.groups.present import Present, Progress, read_details, read_groups
from proxy.groups.rows import members_text
from proxy.groups.wanted import UNSET, Person, Unset, Wanted


class Part(Enum):
    """What is read group by group; each costs one request for every group."""

    VISIBILITY = "visibility"
    AGENTS = "agents"
    ADMINISTRATORS = "administrators"
    MEMBERS = "members"


async def pull(client: GroupClient, path: Path, tenant: str, parts: frozenset[Part], progress: Progress) -> int:
    """Write the file and, for MEMBERS, a CSV file for each group. Returns how many groups there are.

    Model permissions cannot be read; what was applied from this file before is written again.
    """
    present = await read_groups(client)
    # Asking for a thing is all that these values do: reading looks at what is set, not to what.
    wish = Wanted(
        admin_only=False if Part.VISIBILITY in parts else UNSET,
        agents={"": None} if Part.AGENTS in parts else UNSET,
        administrators={} if Part.ADMINISTRATORS in parts else UNSET,
        members=() if Part.MEMBERS in parts else UNSET,
    )
    await read_details(client, present, dict.fromkeys(present.groups, wish), (), progress)
    applied = Applied.beside(path, tenant)
    folder = path.with_name(f"{path.stem}.members")
    if present.members:
        folder.mkdir(mode=0o700, exist_ok=True)
    for ident, members in present.members.items():
        write_whole(folder / f"{ident}.csv", members_text(members))
    entries = [_entry(ident, present, applied) for ident in sorted(present.groups)]
    lists = {ident: f"{folder.name}/{ident}.csv" for ident in present.members}
    write_whole(path, file_text(tenant, entries, lists))
    return len(entries)


def _entry(ident: int, present: Present, applied: Applied) -> Wanted:
    """A group as its entry. Of agents only overrides show: those that differ from the tenant's default."""
    row = present.groups[ident]
    agents = {
        name: agent.enabled
        for name, agent in present.agents.get(ident, {}).items()
        if agent.enabled is not agent.tenant_default
    }
    administrators: dict[Person, bool | None] | Unset = UNSET
    if ident in present.administrators:
        administrators = dict(present.administrators[ident].items())
    return Wanted(
        id=ident,
        ko_name=row.ko_name,
        en_name=row.en_name,
        type_id=UNSET if row.type_id is None else row.type_id,
        parent=row.parent_id,
        group_quota=row.group_quota,
        member_quota=row.member_quota,
        admin_only=present.hidden.get(ident, UNSET),
        agents=agents or UNSET,
        models=applied.models.get(ident, UNSET),
        administrators=administrators,
    )


def write_whole(path: Path, text: str) -> None:
    """Replace a file whole. It may name members, so it is for its owner alone."""
    aside = path.with_name(f"{path.name}.new")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    aside.replace(path)
