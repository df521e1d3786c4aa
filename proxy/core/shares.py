"""Shares: the virtual clocks by which teams share by weight what they compete for, one clock for each account."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from proxy.core.account import Account, Refusal

SHARES_MAX: Final = 4096
"""Budgets' clocks that are kept; callers may name any model, and so wait for any number of accounts."""


@dataclass(slots=True, eq=False)
class Share:
    """The clock of one account, in units of its amount over weight.

    start_tag:   when the call that started last began.
    finish_tags: by team, when its next call would begin if it had exactly its share.
    """

    start_tag: float = 0.0
    finish_tags: dict[str, float] = field(default_factory=dict)

    def claim(self, team: str) -> float:
        """When a team's next call would begin; 0 for one that has had nothing."""
        return self.finish_tags.get(team, 0.0)

    def take(self, team: str, cost: float) -> None:
        """A call of the team starts. cost: its amount over the team's weight."""
        claim = self.finish_tags.get(team, 0.0)
        tag = self.start_tag = claim if claim > self.start_tag else self.start_tag
        self.finish_tags[team] = tag + cost

    def give_back(self, team: str, cost: float) -> None:
        """The call was not sent, so the share was not used.

        The clock goes back with the claim: teams that are due by now are not due before this one. By no more than the
        call, though, as its team may have had nothing else to send while the clock went on.
        """
        claim = max(self.start_tag, self.claim(team)) - cost
        self.finish_tags[team] = claim
        self.start_tag = min(self.start_tag, claim)


Claims = tuple[tuple[Share, float], ...]
"""Clocks that a call has moved, and by how much its team's claim."""


class MoneyShares:
    """Clocks of the budgets that somebody has waited for; they outlive the accounts, which end with their windows."""

    def __init__(self) -> None:
        self._shares: Final[dict[tuple[str, tuple[str, ...]], Share]] = {}

    def of(self, refusal: Refusal) -> Share:
        """The clock of the account in the way."""
        key = refusal.budget.name, refusal.group
        share = self._shares.get(key)
        if share is None:
            if len(self._shares) >= SHARES_MAX:
                self._shares.clear()
            share = self._shares[key] = Share()
        return share

    def ahead(self, accounts: Iterable[Account], team: str) -> Share | None:
        """Of these accounts the clock on which a team has had most; None where nobody has waited for any of them."""
        if not self._shares:
            return None
        found = [self._shares.get((account.budget.name, account.group)) for account in accounts]
        waited = [share for share in found if share is not None]
        return max(waited, key=lambda share: share.claim(team) - share.start_tag, default=None)

    def take(self, accounts: Iterable[Account], team: str, credits_over_weight: float) -> Claims:
        """A call of the team is let go for what it may cost in these accounts; in units of 1e-8 credit over weight."""
        if not self._shares:
            return ()
        claims = []
        for account in accounts:
            if (share := self._shares.get((account.budget.name, account.group))) is not None:
                # By what there is, so that claims for a small budget and for a large one can be compared.
                cost = credits_over_weight / max(1, account.amount)
                share.take(team, cost)
                claims.append((share, cost))
        return tuple(claims)
