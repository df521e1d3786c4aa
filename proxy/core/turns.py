"""Turns: what a call asks for, what it is given, and why it is not. Words only; `scheduler` decides.

All instants are seconds of one clock that never goes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final

from proxy.core.account import Refusal
from proxy.core.gatename import GateName
from proxy.core.limits import Draw
from proxy.core.shares import Claims
from proxy.core.slots import Place, Slots

if TYPE_CHECKING:
    from proxy.core.lanes import Lane


class Held(Enum):
    """What a call that does not start is held up by."""

    RATE = "rate"  # a rate whose places come back
    FLIGHT = "flight"  # calls that are open
    BUDGET = "budget"  # holds of open calls
    GATE = "gate"  # a pause or an open breaker
    NEVER = "never"  # it is larger than a whole rate
    SPENT = "spent"  # a rate that does not wait
    MONEY = "money"  # a budget that is used up


REFUSED: Final = frozenset({Held.NEVER, Held.SPENT, Held.MONEY})
"""No waiting helps, or none is wanted."""


@dataclass(frozen=True, slots=True)
class Block:
    """Why a call does not start.

    at_s:    when it can, inf where nobody knows; for refusals when the limit reopens.
    slots:   the account in the way.     gate: the pause in the way.     refusal: the budget in the way.
    """

    held: Held
    at_s: float = inf
    slots: Slots | None = None
    gate: GateName | None = None
    refusal: Refusal | None = None


@dataclass(slots=True, eq=False)
class Turn:
    """A place under every rate the call draws on.

    counted_s: latest instant at which the gateway may have counted the call, inf until it is known.
    written_s: when the last byte of the request was with the gateway at the latest, inf until that is known.
    gates:     those that this call looks behind.
    lasts:     a rate with a window counts it, so a restart has to know of it.
    claims:    what its team has had of budgets that others wait for.
    open:      the call is not over.
    """

    id: str
    draw: Draw
    tokens: int
    places: Sequence[Place]
    gates: tuple[GateName, ...] = ()
    lasts: bool = False
    claims: Claims = ()
    counted_s: float = inf
    written_s: float = inf
    open: bool = True

    @property
    def gone(self) -> bool:
        """Whether nothing of it is taken any more."""
        return not self.open and all(place.gone for place in self.places)


Wants = tuple[tuple[Slots, int], ...]
"""The accounts a call draws on, and how much of each."""


@dataclass(slots=True, eq=False)
class Waiter:
    """A call that asks for its turn.

    tokens:     the most it may use.            credits: the most it may cost, in units of 1e-8 credit.
    asked_s, deadline_s: when it came, and when it gives up.
    gates:      names of what must be open.
    seq:        when it came among all; given when it asks or joins, and kept when it comes back.
    wants:      the accounts it draws on, and how much of each; filled in when it asks.
    block:      what held it up when last looked at, None where nothing did.
    looks:      gates that it was let through to look behind.
    team:       whose share it draws on.
    """

    id: str
    draw: Draw
    deadline_s: float
    tokens: int = 0
    credits: int = 0
    gates: tuple[GateName, ...] = ()
    asked_s: float = 0.0
    seq: int = 0
    wants: Wants = ()
    block: Block | None = None
    looks: tuple[GateName, ...] = ()
    lane: "Lane | None" = None
    team: str = field(init=False)

    def __post_init__(self) -> None:
        self.team = self.draw.facts.team


@dataclass(frozen=True, slots=True)
class Round:
    """What a look at the queue came to: who starts, who is sent away, and when to look again (inf: when told)."""

    started: Sequence[tuple[Waiter, Turn]]
    refused: Sequence[Waiter]
    again_s: float
