"""What each ending of a call costs. Pure tables, and the one function that reads them.

What cannot be known is charged at the hold rather than given away.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from proxy.core.tuples import maker
from proxy.units import Credits


class Ending(Enum):
    """How a request ended, as the books see it. A closed list: each has a rule below."""

    __hash__ = object.__hash__  # by identity, which takes no call

    ANSWERED = "answered"
    HIT = "hit"
    REFUSED = "refused"
    NEVER_SENT = "never_sent"
    GATEWAY_REFUSED = "gateway_refused"
    GATEWAY_FAILED = "gateway_failed"
    UPSTREAM_BROKE = "upstream_broke"
    TIMED_OUT = "timed_out"
    CALLER_LEFT = "caller_left"
    PROXY_STOPPED = "proxy_stopped"


class Rule(Enum):
    """What an ending costs."""

    NOTHING = "nothing"
    NOTHING_UNCERTAIN = "nothing_uncertain"
    USAGE = "usage"
    METERED_ELSE_HELD = "metered_else_held"


CHARGE: Final[Mapping[Ending, Rule]] = {
    Ending.ANSWERED: Rule.USAGE,
    Ending.HIT: Rule.NOTHING,
    Ending.REFUSED: Rule.NOTHING,
    Ending.NEVER_SENT: Rule.NOTHING,
    Ending.GATEWAY_REFUSED: Rule.NOTHING,
    # The gateway does not say whether a failed call was charged: nothing is booked, and the call is counted for whoever
    # compares the balance.
    Ending.GATEWAY_FAILED: Rule.NOTHING_UNCERTAIN,
    # The gateway bills what it produced and says so last. Cut short, the call costs what was seen, else its hold.
    Ending.UPSTREAM_BROKE: Rule.METERED_ELSE_HELD,
    Ending.TIMED_OUT: Rule.METERED_ELSE_HELD,
    Ending.CALLER_LEFT: Rule.METERED_ELSE_HELD,
    Ending.PROXY_STOPPED: Rule.METERED_ELSE_HELD,
}

CALL_COUNTS: Final[Mapping[Ending, int]] = {
    # A tool call counts as one when it executed (2xx), a JSON-RPC error included, and when nobody can know.
    Ending.ANSWERED: 1,
    Ending.HIT: 0,
    Ending.REFUSED: 0,
    Ending.NEVER_SENT: 0,
    Ending.GATEWAY_REFUSED: 0,
    Ending.GATEWAY_FAILED: 0,
    Ending.UPSTREAM_BROKE: 1,
    Ending.TIMED_OUT: 1,
    Ending.CALLER_LEFT: 1,
    Ending.PROXY_STOPPED: 1,
}


class Basis(Enum):
    """What a charge was computed from, in falling order of trust; `HAND` is what somebody said it was."""

    __hash__ = object.__hash__  # by identity, which takes no call

    GATEWAY = "gateway"
    USAGE = "usage"
    METERED = "metered"
    HOLD = "hold"
    NOTHING = "nothing"
    HAND = "hand"


WORD: Final[Mapping[Basis | Ending, str]] = {one: one.value for kind in (Basis, Ending) for one in kind}
"""Values by member: a member's own attribute takes two calls."""


class Charge(NamedTuple):
    """What one ending costs.

    credits:   units of 1e-8 credit.          calls: tool calls counted, 0 or 1.
    basis:     what the figure rests on.      uncertain: only the gateway knows whether it charged, or how much.
    """

    credits: Credits
    basis: Basis
    calls: int = 0
    uncertain: bool = False


charge_of: Final[Callable[[tuple[Credits, Basis, int, bool]], Charge]] = maker(Charge)
"""A charge of all its values, in order."""

_GATEWAY, _USAGE, _METERED_ELSE_HELD = Basis.GATEWAY, Basis.USAGE, Rule.METERED_ELSE_HELD
_ANSWERED: Final = Ending.ANSWERED
_NOTHING: Final = (Rule.NOTHING, Rule.NOTHING_UNCERTAIN)
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

NO_CHARGE: Final = Charge(Credits(0), Basis.NOTHING)


def is_void(ending: Ending, cost: Charge) -> bool:
    """Whether a hold is let go without a settlement: nothing is charged for it, and nothing was answered."""
    return not cost.credits and not cost.calls and ending is not _ANSWERED


class Figures(NamedTuple):
    """What is known of an exchange's cost when it ends; None where nothing is known. All in units of 1e-8 credit.

    gateway:  the gateway's own figure (a header or `credits` in the body).
    reported: reported usage at its price.
    metered:  what was seen of the output at its price, an estimate.
    """

    gateway: Credits | None = None
    reported: Credits | None = None
    metered: Credits | None = None


figures_of: Final[Callable[[tuple[Credits | None, Credits | None, Credits | None]], Figures]] = maker(Figures)
"""Figures of all their values, in order."""


def charge(ending: Ending, figures: Figures, held: Credits, *, is_call: bool = False) -> Charge:
    """What an exchange costs, by the tables above: never zero merely because usage was missing."""
    calls = CALL_COUNTS[ending] if is_call else 0
    rule = CHARGE[ending]
    if rule in _NOTHING:
        return NO_CHARGE._replace(calls=calls, uncertain=rule is Rule.NOTHING_UNCERTAIN)
    # What the gateway made of an answer that was cut short, only the gateway knows.
    cut = rule is _METERED_ELSE_HELD
    if figures.gateway is not None:
        return charge_of((figures.gateway, _GATEWAY, calls, cut and is_call))
    if figures.reported is not None:
        return charge_of((figures.reported, _USAGE, calls, cut and is_call))
    if figures.metered is not None:
        # An estimate by size is coarse; the hold is a bound of the same call, so it is never more than that.
        return Charge(min(figures.metered, held), Basis.METERED, calls, cut)
    # Nothing was said of it, so a charge above nothing is a guess.
    return Charge(held, Basis.HOLD, calls, cut or held > 0)
