"""The purse: what the budgets have for those who wait, at one instant.

Money goes in the order of the queue. What a call was let go for is promised to it until its hold is taken, and an
account in which somebody is short lets nobody through who comes behind: else small calls could keep a large one waiting
for ever, and a late one could take what an early one was let go for.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import inf
from typing import Final

from proxy.core.account import Account, Refusal
from proxy.core.accounts import NOBODY, Accounts
from proxy.core.turns import Waiter


class Purse:
    """All budgets at one instant; one that is used for a whole look knows who waits in it."""

    __slots__ = ("_accounts", "_kept", "_wall_s")

    def __init__(self, accounts: Accounts, wall_s: float) -> None:
        """wall_s: the instant by the clock that budgets go by."""
        self._accounts: Final = accounts
        self._wall_s: Final = wall_s
        self._kept: AbstractSet[Account] = NOBODY

    def judge(self, waiter: Waiter) -> Refusal | None:
        """Why a call's hold does not fit now, or is not its turn; None where it may go."""
        return self._accounts.judge(waiter.draw.facts, waiter.credits, self._wall_s, self._kept)

    def accounts(self, waiter: Waiter) -> Sequence[Account]:
        """The accounts that it draws on."""
        return self._accounts.drawn_by(waiter.draw.facts, self._wall_s)

    def promise(self, waiter: Waiter) -> Sequence[Account]:
        """The call is let go: what it may cost is nobody else's. The accounts it may cost it in."""
        return self._accounts.promise(waiter.id, waiter.draw.facts, waiter.credits, self._wall_s)

    def keep(self, waiter: Waiter) -> float:
        """Let nobody behind this call have of the budgets in which it is short.

        Seconds until one of them has room for it if nothing else happens; inf where none ever has.
        """
        short = self._accounts.short(waiter.draw.facts, waiter.credits, self._wall_s)
        self._kept |= short.keys()
        return max(0.0, min(short.values(), default=inf) - self._wall_s)
