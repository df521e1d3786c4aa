"""A tenant of 2,000 groups and 50,000 members: how many requests the work takes."""

import random
from collections import Counter
from dataclasses import replace

from proxy.emulator.groups.records import Person
from proxy.groups.applied import Applied
from proxy.groups.apply import apply
from proxy.groups.compare import compare
from proxy.groups.groupsfile import GroupsFile
from proxy.groups.present import silent
from proxy.groups.wanted import UNSET, Wanted
from tests.groups.services import targets

GROUPS, MEMBERS, FILLED = 2000, 50_000, 2


def wanted_groups(rng):
    """Forty trees of fifty groups each, parents before or after their children; two of them hold all members."""
    entries = []
    for number in range(GROUPS):
        tree, place = divmod(number, 50)
        entries.append(
            Wanted(
                en_name=f"G{number}",
                ko_name=f"그룹 {number}",
                type_id=1,
                parent=f"G{tree * 50 + (place - 1) // 7}" if place else None,
                group_quota=100,
                member_quota=10,
                models={5: False},
                members=tuple(range(1000 + number, 1000 + MEMBERS, FILLED)) if number < FILLED else UNSET,
            )
        )
    rng.shuffle(entries)
    return entries


async def test_requests_are_few_where_the_service_offers_bulk_calls(service, client, tmp_path):
    service.tenant.people |= {
        ident: Person(ident, f"P{ident}", f"p{ident}@example.org") for ident in range(1000, 1000 + MEMBERS)
    }
    entries = wanted_groups(random.Random(1))

    async def work(entries):
        """Kinds of requests that planning and applying took."""
        applied = Applied.beside(tmp_path / "groups.yaml", service.url)
        service.journal.clear()
        plan = await compare(client, GroupsFile(None, tuple(entries)), service.url, applied, silent)
        outcome = await apply(client, plan, applied, silent)
        assert outcome.complete, outcome.failures[:3]
        return Counter("".join(letter for letter in target if not letter.isdigit()) for target in targets(service))

    made = await work(entries)
    assert made == {
        "GET usage-overview/": 1,
        "POST ": GROUPS,
        "POST /members/": MEMBERS // 500,
        "PATCH bulk/model-permissions/": GROUPS // 500,
    }
    raised = await work([replace(entry, group_quota=200, members=UNSET) for entry in entries])
    assert raised == {"GET usage-overview/": 21, "PATCH bulk/credit-limit/": GROUPS // 500}
    assert await work([replace(entry, group_quota=200, members=UNSET) for entry in entries]) == {
        "GET usage-overview/": 21
    }
    filled = [replace(entry, group_quota=200) for entry in entries if entry.members is not UNSET]
    assert await work(filled) == {"GET usage-overview/": 21, "GET /addable-members/": FILLED}
