"""Ways: routes with their models and suites, and whose calls they failed lately.

One team's failures say little about anybody else: its own bodies may be what the gateway fails on. So they shut the way
for that team alone. It is shut for all once several teams fail there and nobody is answered.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from proxy.core.gatename import GateName

FAILURES: Final = 5
WITHIN_S: Final = 10.0
"""So many failures in so many seconds shut a way."""

TEAMS: Final = 2
"""At least so many teams have to fail before a way is shut for all."""

KEPT_MAX: Final = 64
"""Failures of one way that are kept: many teams fail together where it is the gateway's fault."""

WAYS_MAX: Final = 1024
"""Ways kept; the one heard of longest ago goes, as callers invent model names."""


@dataclass(slots=True)
class Way:
    """failed: when and whose, oldest first.      well: teams whose last call was answered, and when."""

    failed: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=KEPT_MAX))
    well: dict[str, float] = field(default_factory=dict)


class Ways:
    """All ways that were heard of lately."""

    def __init__(self) -> None:
        self._ways: Final[OrderedDict[GateName, Way]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ways)

    def _way(self, name: GateName) -> Way:
        way = self._ways.get(name)
        if way is None:
            way = self._ways[name] = Way()
            if len(self._ways) > WAYS_MAX:
                self._ways.popitem(last=False)
        else:
            self._ways.move_to_end(name)
        return way

    def answered(self, name: GateName, team: str, now_s: float) -> None:
        """A team's call was answered, with whatever is not a failure of the gateway's."""
        self._way(name).well[team] = now_s

    def failed(self, name: GateName, team: str, now_s: float) -> tuple[bool, bool]:
        """A team's call failed: whether that is enough to shut the way for this team, and for everybody."""
        way = self._way(name)
        way.failed.append((now_s, team))
        way.well.pop(team, None)
        of_team: dict[str, int] = {}
        for at_s, one in way.failed:
            if now_s - at_s <= WITHIN_S:
                of_team[one] = of_team.get(one, 0) + 1
        # A team that fails as often as that is not well, however many of its calls are answered in between.
        well = [one for one, at_s in way.well.items() if now_s - at_s <= WITHIN_S and of_team.get(one, 0) < FAILURES]
        enough = sum(of_team.values()) >= FAILURES and len(of_team) >= TEAMS
        return of_team[team] >= FAILURES, enough and not well

    def mended(self, name: GateName, team: str | None) -> None:
        """It answers again: what failed before does not count any more. team: whose failures, None for all."""
        if (way := self._ways.get(name)) is not None:
            kept = [] if team is None else [entry for entry in way.failed if entry[1] != team]
            way.failed.clear()
            way.failed.extend(kept)
