"""The books: holds, and the steps that begin and end them. Pure; every home of the ledger calls this.

A *hold* reserves credits for one call before its first byte is sent. It ends at most once: *settled* at a charge
(`core.charges`), *voided*, or *expired*. Entries are appended and never changed; `core.projection` is their sum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from proxy.core.charges import Charge, Ending
from proxy.core.facts import Facts
from proxy.core.riders import Rider
from proxy.core.tuples import maker
from proxy.units import Credits


class Phase(Enum):
    """Where the life of a hold stands."""

    __hash__ = object.__hash__  # by identity, which takes no call

    HELD = "held"
    SETTLED = "settled"
    VOIDED = "voided"
    EXPIRED = "expired"


class Move(Enum):
    """What may happen to a hold."""

    __hash__ = object.__hash__  # by identity, which takes no call

    SETTLE = "settle"
    VOID = "void"
    EXPIRE = "expire"
    RESOLVE = "resolve"


NEXT: Final[Mapping[Phase, Mapping[Move, Phase]]] = {
    Phase.HELD: {
        Move.SETTLE: Phase.SETTLED,
        Move.VOID: Phase.VOIDED,
        Move.EXPIRE: Phase.EXPIRED,
        Move.RESOLVE: Phase.SETTLED,
    },
    # A stream can outlive its hold. The gateway charged for it all the same, so the late settlement is booked.
    Phase.EXPIRED: {Move.SETTLE: Phase.SETTLED},
    # Only what is in doubt is resolved by hand, once: `move` looks at that.
    Phase.SETTLED: {Move.RESOLVE: Phase.SETTLED},
    Phase.VOIDED: {Move.RESOLVE: Phase.SETTLED},
}


class Hold(NamedTuple):
    """Reserve `credits` for one call; `sent` is part of the same entry, so a crash after it counts as spent.

    place: where the call's price stands, "" where that is not known.
    """

    hold: str
    facts: Facts
    credits: Credits
    at_s: float
    place: str = ""

    def dated(self, at_s: float) -> "Hold":
        """The same at another instant."""
        return Hold(self.hold, self.facts, self.credits, at_s, self.place)


hold_of: Final[Callable[[tuple[str, Facts, Credits, float, str]], Hold]] = maker(Hold)
"""A hold of all its values, in order."""


class Settle(NamedTuple):
    """End a hold at a charge."""

    hold: str
    charge: Charge
    ending: Ending
    at_s: float


settle_of: Final[Callable[[tuple[str, Charge, Ending, float]], Settle]] = maker(Settle)
"""A settlement of all its values, in order."""


class Void(NamedTuple):
    """End a hold at nothing."""

    hold: str
    ending: Ending
    at_s: float
    uncertain: bool = False


@dataclass(frozen=True, slots=True)
class Expire:
    """End a hold because nobody ended it in time: its money is free again until a late settlement says otherwise."""

    hold: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Resolve:
    """Somebody says what a hold in doubt has cost: one without an ending, or one whose ending is uncertain.

    credits: units of 1e-8 credit, what the call cost in all.      who: the person or key that says so.
    """

    hold: str
    credits: Credits
    reason: str
    who: str
    at_s: float


class Adjust(NamedTuple):
    """Somebody moves what a team has spent, in the windows of `at_s`.

    id: no hold or other adjustment has it.      credits: units of 1e-8 credit, negative to give some back.
    """

    id: str
    facts: Facts
    credits: int
    reason: str
    who: str
    at_s: float

    def dated(self, at_s: float) -> "Adjust":
        """The same at another instant."""
        return self._replace(at_s=at_s)


Step = Hold | Settle | Void | Expire | Resolve | Adjust | Rider
MOVE: Final = {Settle: Move.SETTLE, Void: Move.VOID, Expire: Move.EXPIRE, Resolve: Move.RESOLVE}


class Outcome(Enum):
    """What became of one step."""

    OK = "ok"
    OVER_BUDGET = "over_budget"
    DUPLICATE_HOLD = "duplicate_hold"
    NO_SUCH_HOLD = "no_such_hold"
    ALREADY_RESOLVED = "already_resolved"
    NOT_IN_DOUBT = "not_in_doubt"


class HoldState(NamedTuple):
    """One hold as its entries left it.

    doubt: only the gateway knows what it cost: its process died, or its ending is uncertain.
    """

    facts: Facts
    phase: Phase
    held: Credits
    at_s: float = 0.0
    charged: Credits = Credits(0)
    doubt: bool = False


state_of: Final[Callable[[tuple[Facts, Phase, Credits, float, Credits, bool]], HoldState]] = maker(HoldState)
"""A hold of all its values, in order."""


def move(state: HoldState, step: Settle | Void | Expire | Resolve) -> HoldState | Outcome:
    """A hold as a step leaves it, or what is said of a step that does not fit."""
    facts, phase, held, at_s, charged, doubt = state
    after = NEXT[phase].get(MOVE[type(step)])
    if after is None:
        return Outcome.ALREADY_RESOLVED
    if isinstance(step, Settle):
        charged, _, _, doubt = step.charge
    elif isinstance(step, Void):
        doubt = step.uncertain
    elif isinstance(step, Resolve):
        if not doubt:
            return Outcome.NOT_IN_DOUBT
        charged, doubt = step.credits, False
    return state_of((facts, after, held, at_s, charged, doubt))
