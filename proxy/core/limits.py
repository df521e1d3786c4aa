"""What a limit is: which calls it counts, for whom apart, how much, in which window, and what happens on excess."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from proxy.core.facts import Facts
from proxy.core.names import folded, plain, read_as, same
from proxy.core.tuples import maker
from proxy.core.windows import Calendar, Sliding


class Each(Enum):
    """For whom a limit keeps an account of its own."""

    TEAM = "team"
    KEY = "key"
    MODEL = "model"
    SUITE = "suite"
    TOOL = "tool"
    CREDENTIAL = "credential"
    MEMBER = "member"


_FOLDED: Final = frozenset({Each.MODEL, Each.SUITE, Each.TOOL})
"""Names that calls spell: whoever spells one otherwise has no account of its own by that, as rules match it, too."""


def _named(each: Each, facts: Facts) -> str:
    """Whose account a call draws on."""
    value = facts.value_of(each.value)
    return folded(value) if each in _FOLDED else value


def _amount(amounts: Mapping[str, int], each: Each | None, group: tuple[str, ...], default: int) -> int:
    if not amounts or not group:
        return default
    if each in _FOLDED:
        return next((amount for name, amount in amounts.items() if folded(name) == group[-1]), default)
    return amounts.get(group[-1], default)


def spoken_group(each: Each | None, group: tuple[str, ...]) -> str:
    """Whose account it is, in words; "" where a limit keeps one account. Calls that have no suite, say, share one."""
    if each is None or not group:
        return ""
    *before, named = group
    return "/".join([*before, named or f"calls without a {each.value}"])


class Excess(Enum):
    """What happens to a call that does not fit. WAIT is for rates alone: money does not come back by itself."""

    REFUSE = "refuse"
    WAIT = "wait"
    WARN = "warn"


class Counts(Enum):
    """What a rate counts: calls, tokens they may use, or calls that are open at once."""

    __hash__ = object.__hash__  # by identity, which takes no call

    REQUESTS = "requests"
    TOKENS = "tokens"
    IN_FLIGHT = "in_flight"


@dataclass(frozen=True, slots=True)
class Match:
    """Which calls a limit counts: all given words have to fit; model and tool are globs, tool on `suite.tool` too.

    Names that callers spell count as whatever they may be read as (`core/names`).
    A tool's own name with a dot in it could be another suite's `suite.tool`, so it counts only beside its suite.
    """

    team: str | None = None
    key: str | None = None
    model: str | None = None
    route: str | None = None
    suite: str | None = None
    tool: str | None = None
    chatbot: str | None = None

    @property
    def of_all_calls(self) -> bool:
        """Whether it is about whose calls they are and nothing else."""
        return not any((self.model, self.route, self.suite, self.tool, self.chatbot))

    def may_take(self, team: str, key: str) -> bool:
        """Whether calls of a team's key can be among them."""
        return self.team in (None, team) and self.key in (None, key)

    def takes(self, facts: Facts) -> bool:
        """Whether a call is one of them."""
        return (
            (self.team is None or self.team == facts.team)
            and (self.key is None or self.key == facts.key)
            and (self.route is None or self.route == facts.route)
            and (self.suite is None or same(self.suite, facts.suite))
            and (self.chatbot is None or same(self.chatbot, facts.chatbot))
            and (self.model is None or read_as(self.model, facts.model))
            and (self.tool is None or self._names(facts))
        )

    def _names(self, facts: Facts) -> bool:
        assert self.tool is not None
        if read_as(self.tool, facts.suite_tool):
            return True
        alone = self.suite is not None or facts.tool is None or "." not in plain(facts.tool)
        return alone and read_as(self.tool, facts.tool)


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit that counts credits.

    amount:     units of 1e-8 credit; `amounts` overrides it for single values of `each`.
    instead_of: name of a budget whose calls this one takes over.
    warn_at:    shares of the amount at which somebody wants to know.
    shadow:     count and report, without acting.
    source:     file:line:col of where it stands.
    acts:       whether a call that does not fit is refused.
    shares:     those of `warn_at`, least first, and the whole amount where that is what happens on excess.
    """

    name: str
    amount: int
    window: Calendar | Sliding
    match: Match = Match()
    each: Each | None = None
    amounts: Mapping[str, int] = field(default_factory=dict)
    instead_of: str | None = None
    excess: Excess = Excess.REFUSE
    warn_at: tuple[float, ...] = ()
    shadow: bool = False
    source: str = ""
    acts: bool = field(init=False, repr=False, compare=False)
    shares: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "acts", self.excess is Excess.REFUSE and not self.shadow)
        at_excess = {1.0} if self.excess is Excess.WARN else set()
        object.__setattr__(self, "shares", tuple(sorted({*self.warn_at} | at_excess)))

    def group(self, facts: Facts) -> tuple[str, ...]:
        """Whose account a call draws on; keys of two teams with one name are two."""
        if self.each is None:
            return ()
        value = _named(self.each, facts)
        return (facts.team, value) if self.each is Each.KEY else (value,)

    def amount_for(self, group: tuple[str, ...]) -> int:
        """The amount of one account."""
        return _amount(self.amounts, self.each, group, self.amount)


class Draw(NamedTuple):
    """What a call is, for rates.

    member:   whom the gateway's limits count the call for.
    method:   of an MCP call.
    reserves: the gateway reserves credits for it.     spends: its ceiling is above 0.
    """

    facts: Facts
    member: str = ""
    method: str | None = None
    reserves: bool = False
    spends: bool = False


draw_of: Final[Callable[[tuple[Facts, str, str | None, bool, bool]], Draw]] = maker(Draw)
"""A draw of all its values, in order."""


@dataclass(frozen=True, slots=True)
class RateMatch:
    """Which calls a rate counts: what every limit may ask for, and what only calls on their way have."""

    facts: Match = Match()
    method: str | None = None
    reserves: bool | None = None
    spends: bool | None = None

    def takes(self, draw: Draw) -> bool:
        """Whether a call is one of them."""
        return (
            (self.method is None or self.method == draw.method)
            and (self.reserves is None or self.reserves == draw.reserves)
            and (self.spends is None or self.spends == draw.spends)
            and self.facts.takes(draw.facts)
        )


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit that counts calls, their tokens, or those open at once.

    window_s:   length of the sliding window in seconds, 0 for what is counted while it is open.
    amounts:    overrides the amount for single values of `each`.
    instead_of: name of a rate whose calls this one takes over.
    shadow:     count and report, without acting.
    source:     file:line:col of where it stands.
    acts:       whether a call that does not fit waits or is refused.
    """

    name: str
    counts: Counts
    amount: int
    window_s: float = 0.0
    match: RateMatch = RateMatch()
    each: Each | None = None
    amounts: Mapping[str, int] = field(default_factory=dict)
    instead_of: str | None = None
    excess: Excess = Excess.WAIT
    shadow: bool = False
    source: str = field(default="", compare=False)
    acts: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "acts", self.excess is not Excess.WARN and not self.shadow)

    def group(self, draw: Draw) -> tuple[str, ...]:
        """Whose account a call draws on."""
        if self.each is None:
            return ()
        if self.each is Each.MEMBER:
            return (draw.member,)
        value = _named(self.each, draw.facts)
        return (draw.facts.team, value) if self.each is Each.KEY else (value,)

    def amount_for(self, group: tuple[str, ...]) -> int:
        """The amount of one account."""
        return _amount(self.amounts, self.each, group, self.amount)


def rates_of(rates: tuple[Rate, ...], draw: Draw) -> list[Rate]:
    """The rates that a call draws on: all that match, less those whose calls another takes over."""
    matching = [rate for rate in rates if rate.match.takes(draw)]
    taken = {rate.instead_of for rate in matching}
    return [rate for rate in matching if rate.name not in taken]


def drawn(budgets: tuple[Budget, ...], facts: Facts) -> list[Budget]:
    """The budgets that a call draws on: all that match, less those whose calls another takes over."""
    matching = [budget for budget in budgets if budget.match.takes(facts)]
    taken = {budget.instead_of for budget in matching}
    return [budget for budget in matching if budget.name not in taken]


def within_reach(budgets: tuple[Budget, ...], team: str, key: str) -> list[Budget]:
    """The budgets that calls of a team's key can draw on, less those whose calls another takes over whole."""
    reached = [budget for budget in budgets if budget.match.may_take(team, key)]
    taken = {budget.instead_of for budget in reached if budget.match.of_all_calls}
    return [budget for budget in reached if budget.name not in taken]
