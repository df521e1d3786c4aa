"""The books: holds, their endings, and what each ending costs. Pure; every home of the ledger calls this.

A *hold* reserves credits for one call before its first byte is sent. It ends at most once: *settled* at a charge,
*voided*, or *expired*. What cannot be known is charged at the hold rather than given away. Entries are appended and
never changed; `Projection` is their sum and can be rebuilt from them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeVar

from proxy.core.facts import Facts
from proxy.core.riders import Promise, Rider, Turn
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
    basis:     what the figure rests on.      uncertain: only the gateway knows whether it charged.
    """

    credits: Credits
    basis: Basis
    calls: int = 0
    uncertain: bool = False


_GATEWAY, _USAGE, _METERED_ELSE_HELD = Basis.GATEWAY, Basis.USAGE, Rule.METERED_ELSE_HELD
_NOTHING: Final = (Rule.NOTHING, Rule.NOTHING_UNCERTAIN)
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

NO_CHARGE: Final = Charge(Credits(0), Basis.NOTHING)


class Figures(NamedTuple):
    """What is known of an exchange's cost when it ends; None where nothing is known. All in units of 1e-8 credit.

    gateway:  the gateway's own figure (a header or `credits` in the body).
    reported: reported usage at its price.
    metered:  what was seen of the output at its price, an estimate.
    """

    gateway: Credits | None = None
    reported: Credits | None = None
    metered: Credits | None = None


def charge(ending: Ending, figures: Figures, held: Credits, *, is_call: bool = False) -> Charge:
    """What an exchange costs, by the tables above: never zero merely because usage was missing."""
    calls = CALL_COUNTS[ending] if is_call else 0
    rule = CHARGE[ending]
    if rule in _NOTHING:
        return NO_CHARGE._replace(calls=calls, uncertain=rule is Rule.NOTHING_UNCERTAIN)
    # What the gateway made of an answer that was cut short, only the gateway knows.
    cut = rule is _METERED_ELSE_HELD
    if figures.gateway is not None:
        return Charge(figures.gateway, _GATEWAY, calls, cut and is_call)
    if figures.reported is not None:
        return Charge(figures.reported, _USAGE, calls, cut and is_call)
    if figures.metered is not None:
        # An estimate by size is coarse; the hold is a bound of the same call, so it is never more than that.
        return Charge(min(figures.metered, held), Basis.METERED, calls, cut)
    return Charge(held, Basis.HOLD, calls, cut)


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


class Settle(NamedTuple):
    """End a hold at a charge."""

    hold: str
    charge: Charge
    ending: Ending
    at_s: float


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
_Dated = TypeVar("_Dated", Hold, Adjust)
MOVE: Final = {Settle: Move.SETTLE, Void: Move.VOID, Expire: Move.EXPIRE, Resolve: Move.RESOLVE}


class Outcome(Enum):
    """What became of one step."""

    OK = "ok"
    OVER_BUDGET = "over_budget"
    DUPLICATE_HOLD = "duplicate_hold"
    NO_SUCH_HOLD = "no_such_hold"
    ALREADY_RESOLVED = "already_resolved"
    NOT_IN_DOUBT = "not_in_doubt"


_OK, _HELD = Outcome.OK, Phase.HELD
_OF_A_HOLD: Final = (Turn, Promise)


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


def move(state: HoldState | None, step: Hold | Settle | Void | Expire | Resolve) -> tuple[HoldState | None, Outcome]:
    """The state of a hold after one step, and the step's outcome; a step that does not fit changes nothing."""
    if isinstance(step, Hold):
        if state is not None:
            return state, Outcome.DUPLICATE_HOLD
        return HoldState(step.facts, _HELD, step.credits, step.at_s), _OK
    if state is None:
        return None, Outcome.NO_SUCH_HOLD
    after = NEXT[state.phase].get(MOVE[type(step)])
    if after is None:
        return state, Outcome.ALREADY_RESOLVED
    charged, doubt = state.charged, state.doubt
    match step:
        case Settle():
            charged, doubt = step.charge.credits, step.charge.uncertain
        case Void():
            doubt = step.uncertain
        case Resolve() if state.doubt:
            charged, doubt = step.credits, False
        case Resolve():
            return state, Outcome.NOT_IN_DOUBT
    return HoldState(state.facts, after, state.held, state.at_s, charged, doubt), _OK


class Ledgered(Protocol):
    """What keeps accounts of holds: `core.accounts.Accounts`, which knows the budgets."""

    def dated(self, at_s: float) -> float:
        """The instant that what happens now is dated: time does not go back."""
        ...

    def judge(self, facts: Facts, asked: int, at_s: float) -> object | None:
        """Why a hold does not fit, None when it does."""
        ...

    def take_back(self, hold: str) -> None:
        """What was promised to a hold is free: the hold itself is judged now."""
        ...

    def hold(self, hold: str, facts: Facts, amount: int, at_s: float) -> None:
        """A hold was taken."""
        ...

    def end(self, hold: str, charged: int) -> None:
        """A hold ended at a charge."""
        ...

    def spent(self, facts: Facts, amount: int, at_s: float) -> None:
        """A charge was booked late, or corrected by hand."""
        ...


class _Boundless:
    """No budgets: everything fits and nothing is kept."""

    def dated(self, at_s: float) -> float:
        return at_s

    def judge(self, facts: Facts, asked: int, at_s: float) -> None:
        pass

    def take_back(self, hold: str) -> None:
        pass

    def hold(self, hold: str, facts: Facts, amount: int, at_s: float) -> None:
        pass

    def end(self, hold: str, charged: int) -> None:
        pass

    def spent(self, facts: Facts, amount: int, at_s: float) -> None:
        pass


NO_ACCOUNTS: Final = _Boundless()


@dataclass(slots=True)
class Projection:
    """What the entries add up to: open holds, and credits held and spent per team, all in units of 1e-8 credit.

    Holds that ended are remembered up to `resolved_max`, so that a second ending is told from an unknown hold.
    """

    accounts: "Ledgered" = field(default_factory=lambda: NO_ACCOUNTS, compare=False)
    resolved_max: int = 100_000
    holds: dict[str, HoldState] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    _resolved: OrderedDict[str, HoldState] = field(default_factory=OrderedDict)

    def dated(self, step: "_Dated") -> "_Dated":
        """A step as it is to be taken and written: money is never dated before money that moved earlier.

        Else a clock that steps back would reopen a window whose budget is used up.
        """
        if (at_s := self.accounts.dated(step.at_s)) != step.at_s:
            return step.dated(at_s)
        return step

    def apply(self, step: Step) -> Outcome:
        """Take one step. Only an `OK` step changes anything."""
        if isinstance(step, Rider):
            return self._ride(step)
        if isinstance(step, Adjust):
            return self._adjust(step)
        return self.take(step, self.known(step.hold))

    def take(self, step: Hold | Settle | Void | Expire | Resolve, before: HoldState | None) -> Outcome:
        """Take one step of a hold. before: what is `known` of it."""
        after, outcome = move(before, step)
        if outcome is not _OK or after is None:
            return outcome
        if isinstance(step, Hold):
            self.accounts.take_back(step.hold)
            if self.accounts.judge(step.facts, step.credits, step.at_s) is not None:
                return Outcome.OVER_BUDGET
        self._book(before, after, step)
        team = after.facts.team
        was_held = before.held if before is not None and before.phase is _HELD else 0
        now_held = after.held if after.phase is _HELD else 0
        self.held[team] = self.held.get(team, 0) + now_held - was_held
        self.spent[team] = self.spent.get(team, 0) + after.charged - (before.charged if before is not None else 0)
        if isinstance(step, Settle):
            self.calls += step.charge.calls
        if after.phase is _HELD:
            self.holds[step.hold] = after
        else:
            self.holds.pop(step.hold, None)
            self.remember(step.hold, after)
        return outcome

    def _ride(self, step: Rider) -> Outcome:
        """Rows ride along, but what belongs to a hold is not taken without it."""
        if isinstance(step, _OF_A_HOLD) and step.hold is not None and step.hold not in self.holds:
            return Outcome.NO_SUCH_HOLD
        return _OK

    def _adjust(self, step: Adjust) -> Outcome:
        if self.known(step.id) is not None:
            return Outcome.DUPLICATE_HOLD
        self.accounts.spent(step.facts, step.credits, step.at_s)
        self.spent[step.facts.team] = self.spent.get(step.facts.team, 0) + step.credits
        self.remember(step.id, HoldState(step.facts, Phase.SETTLED, Credits(0), step.at_s, Credits(step.credits)))
        return _OK

    def remember(self, hold: str, state: HoldState) -> None:
        """Keep a hold that ended, so that what comes after its ending is judged by it."""
        self._resolved[hold] = state
        while len(self._resolved) > self.resolved_max:
            self._resolved.popitem(last=False)

    def known(self, hold: str) -> HoldState | None:
        """A hold as its entries left it, None for one that was never taken or ended long ago."""
        return self.holds.get(hold) or self._resolved.get(hold)

    def reopen(self, hold: str, state: HoldState) -> None:
        """Take a hold that is open in the file."""
        self.holds[hold] = state
        self.held[state.facts.team] = self.held.get(state.facts.team, 0) + state.held
        self.accounts.hold(hold, state.facts, state.held, state.at_s)

    def _book(self, before: HoldState | None, after: HoldState, step: Hold | Settle | Void | Expire | Resolve) -> None:
        """Let the accounts know of a step that was taken."""
        if isinstance(step, Hold):
            self.accounts.hold(step.hold, step.facts, step.credits, step.at_s)
        elif before is not None and before.phase is not _HELD:
            self.accounts.spent(after.facts, after.charged - before.charged, after.at_s)
        else:
            self.accounts.end(step.hold, after.charged)

    def replay(self, steps: Iterable[Step]) -> None:
        """Take many steps, as at a start."""
        for step in steps:
            self.apply(step)

    @property
    def open_holds(self) -> int:
        """How many holds have no ending yet."""
        return len(self.holds)
