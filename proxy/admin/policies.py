"""The policy in force, as a list of what it says."""

from typing import Any

from proxy.admin.call import Asked
from proxy.core.listing import listing
from proxy.server.parts import Parts


async def show(_: Asked, parts: Parts) -> dict[str, Any]:
    """All rules, each with its place."""
    return {"policies": str(parts.settings.policies), "rules": [said.plain for said in listing(parts.state.policy)]}
