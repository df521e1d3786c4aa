"""The pages, as one table; each has a twin with the same figures as JSON."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from proxy.admin.call import Asked
from proxy.admin.page import gateway, models, overview, requests, rules, stored, team
from proxy.admin.page.frame import Page
from proxy.server.parts import Parts


@dataclass(frozen=True, slots=True)
class View:
    """One page. read: its figures as JSON values; raises Refused. show: what a person sees of them."""

    path: str
    twin: str
    read: Callable[[Asked, Parts], Awaitable[dict[str, Any]]]
    show: Callable[[dict[str, Any], float], Page]
    says: str


# fmt: off
VIEWS: Final[tuple[View, ...]] = (
    View("/",            "/overview.json",    overview.read, overview.show, "teams by trouble, credits per day"),
    View("/team/{team}", "/team/{team}.json", team.read,     team.show,     "one team: its limits, the one that binds, burn, callers, refusals"),
    View("/requests",    "/requests.json",    requests.read, requests.show, "the last requests with the reason for each decision"),
    View("/cache",       "/cache.json",       stored.read,   stored.show,   "hit share, credits saved, room, largest answers"),
    View("/policies",    "/policies.json",    rules.read,    rules.show,    "rules in force with file and line, and mistakes"),
    View("/upstream",    "/upstream.json",    gateway.read,  gateway.show,  "balance, drift, what runs at the gateway, failures"),
    View("/models",      "/models.json",      models.read,   models.show,   "prices, and models without one"),
)
# fmt: on
