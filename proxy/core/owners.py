"""Whose id is this? Ids that the gateway answered belong to the team that asked, and to nobody else. Pure.

An id is compared after one percent-decoding, because ids hold slashes and colons that clients encode as they like.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final
from urllib.parse import unquote

KEPT_S: Final = 30 * 86_400.0
"""How long an id is remembered: the vendors keep stored responses for 30 days."""

OWNERS_MAX: Final = 200_000
"""Ids remembered at once, some 50 MB; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who was given an id, for which model, and when (wall clock).

    tokens: input and output of the answer that the id names: the most they can be, until it says so; None where nobody
            here asked for it.
    """

    team: str
    model: str | None
    at_s: float
    tokens: int | None = None


class Claim(Enum):
    """What a team may do with an id."""

    OWN = "own"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Owners:
    """Ids and their owners, oldest first."""

    kept_s: float = KEPT_S
    owners_max: int = OWNERS_MAX
    _by_id: dict[str, Owner] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def all(self) -> Mapping[str, Owner]:
        """Every id, as it was decoded."""
        return self._by_id

    def give(self, identifier: str, owner: Owner) -> None:
        """An id was answered to a team. The first one it was answered to keeps it."""
        self._forget(owner.at_s)
        self._by_id.setdefault(unquote(identifier), owner)

    def used(self, identifier: str, tokens: int) -> bool:
        """The answer that an id names said what it used; False when that is known, or the id is not."""
        name = unquote(identifier)
        owner = self._by_id.get(name)
        if owner is None or owner.tokens == tokens:
            return False
        self._by_id[name] = replace(owner, tokens=tokens)
        return True

    def claim(self, identifier: str, team: str, now_s: float) -> tuple[Claim, Owner | None]:
        """Whether a team may use an id as it stands in a path, a query or a body."""
        owner = self._by_id.get(unquote(identifier))
        if owner is None or now_s - owner.at_s > self.kept_s:
            return Claim.UNKNOWN, None
        return (Claim.OWN, owner) if owner.team == team else (Claim.FOREIGN, None)

    def _forget(self, now_s: float) -> None:
        while self._by_id:
            identifier, oldest = next(iter(self._by_id.items()))
            if len(self._by_id) < self.owners_max and now_s - oldest.at_s <= self.kept_s:
                return
            del self._by_id[identifier]
