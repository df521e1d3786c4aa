"""From a file and a service to a plan: read the one, look at the other, lay them over each other."""

from proxy.config.problem import Problem, Problems
from proxy.groups.applied import Applied
from proxy.groups.client import GroupClient
from proxy.groups.groupsfile import GroupsFile
from proxy.groups.matching import match
from proxy.groups.plan import Plan, make_plan
from proxy.groups.present import Progress, read_details, read_groups


async def compare(client: GroupClient, file: GroupsFile, tenant: str, applied: Applied, progress: Progress) -> Plan:
    """What applying the file would do. tenant: the service's address. Raises Problems, or a fault of the service."""
    if file.tenant is not None and file.tenant.rstrip("/") != tenant:
        what = f"is for {file.tenant}, and the service is {tenant}"
        raise Problems([Problem("tenant", what, "mend --tenant-url, or take tenant out of the file")])
    present = await read_groups(client)
    matched = match(file.groups, present.groups)
    await read_details(client, present, matched.found, matched.new.values(), progress)
    return make_plan(matched, present, applied.models)
