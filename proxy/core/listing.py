"""A policy as a list of what it says: kind, name, words and place of each rule. What two policies differ in, from that.

Amounts are text in credits and only what differs from a default is said, so that a list reads as a file would.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Final

from proxy.core.limits import Budget, Match
from proxy.core.policy import KeyRef, Policy
from proxy.core.prices import Price
from proxy.core.windows import Calendar, Sliding, spoken
from proxy.units import credit_text, instant_text

COUNTS: Final = frozenset({"output_tokens_max", "part_tokens"})
"""Whole numbers of budgets and prices that are no amounts of credits; those of other rules never are."""

_LISTED_APART: Final = frozenset({"teams", "prices", "aliases", "tool_aliases", "sources", "digest"})
_WRITTEN_AS: Final = {"heartbeat_s": "heartbeat", "unpriced_hold": "unpriced"}
"""Switches whose field has another name than their word in a file."""


@dataclass(frozen=True, slots=True)
class Said:
    """One rule of a policy. source: file:line:col, "" for what no file says."""

    kind: str
    name: str
    words: Mapping[str, Any]
    source: str

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {"kind": self.kind, "name": self.name, "words": dict(self.words), "source": self.source}


def said_of(plain: Mapping[str, Any]) -> Said:
    """A rule from its JSON; raises KeyError for something else."""
    return Said(plain["kind"], plain["name"], plain["words"], plain["source"])


def listing(policy: Policy) -> tuple[Said, ...]:
    """All rules: teams, limits, prices, aliases, then the switches."""
    return (*_teams(policy), *_limits(policy), *_prices(policy), *_aliases(policy), *_switches(policy))


def _teams(policy: Policy) -> Iterator[Said]:
    for name, team in policy.teams.items():
        yield Said("team", name, _words(team, without=frozenset({"name"})), policy.sources.get(f"team {name}", ""))


def _limits(policy: Policy) -> Iterator[Said]:
    """Budgets, rates, rules of the cache: whatever a policy holds as a list of things with a place."""
    for field in _own_fields(policy):
        for number, limit in enumerate(_placed(getattr(policy, field.name)), start=1):
            # Rules without a name are known by their order, which decides between them.
            name = getattr(limit, "name", f"rule {number}")
            yield Said(field.name.removesuffix("s"), name, _words(limit, without=_NAMED), limit.source)


_NAMED: Final = frozenset({"name", "source"})


def _placed(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) and all(hasattr(item, "source") for item in value) else ()


def _prices(policy: Policy) -> Iterator[Said]:
    for rule in policy.prices.rules:
        words = _words(rule.price, without=frozenset({"source"}))
        yield Said("price", f"{rule.kind} {rule.pattern}", words, rule.price.source)


def _aliases(policy: Policy) -> Iterator[Said]:
    for alias, stands_for in policy.aliases.items():
        yield Said("alias", alias, {"stands_for": stands_for}, policy.sources.get(f"alias {alias}", ""))
    for alias, stands_for in policy.tool_aliases.items():
        yield Said("tool alias", alias, {"stands_for": stands_for}, policy.sources.get(f"tool alias {alias}", ""))


def _switches(policy: Policy) -> Iterator[Said]:
    for field in _own_fields(policy):
        value = getattr(policy, field.name)
        if isinstance(value, tuple):
            continue
        word = _WRITTEN_AS.get(field.name, field.name)
        is_money = field.name == "unpriced_hold"
        yield Said("switch", word, {"is": _plain(value, is_money=is_money)}, policy.sources.get(word, ""))


def _own_fields(policy: Policy) -> Iterator[Field[Any]]:
    for field in fields(policy):
        if field.name not in _LISTED_APART and not field.name.startswith("_"):
            yield field


def _words(value: Any, without: frozenset[str]) -> dict[str, Any]:
    """What a rule says beyond its defaults."""
    has_money = isinstance(value, Budget | Price)
    return {
        field.name: _plain(getattr(value, field.name), is_money=has_money and field.name not in COUNTS)
        for field in fields(value)
        if field.init and field.name not in without and getattr(value, field.name) != _default(field)
    }


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


def _plain(value: Any, *, is_money: bool) -> Any:
    """A value for JSON. is_money: whole numbers in it are units of 1e-8 credit."""
    match value:
        case Enum():
            return value.value
        case Calendar() | Sliding():
            return spoken(value)
        case KeyRef():
            # Enough of the digest to tell a replaced key.
            words = _words(value, without=frozenset({"sha256", "expires_s"}))
            expires = {} if value.expires_s is None else {"expires": instant_text(value.expires_s)}
            return {"sha256": f"{value.sha256.hex()[:12]}…", **words, **expires}
        case Match():
            return _words(value, without=frozenset())
        case frozenset():
            return sorted(value)
        case Mapping():
            return {key: _plain(item, is_money=is_money) for key, item in value.items()}
        case tuple() | list():
            return [_plain(item, is_money=is_money) for item in value]
        case bool() | str() | float() | None:
            return value
        case int():
            return credit_text(value) if is_money else value
        case _ if is_dataclass(value):
            return _words(value, without=_NAMED)
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class Difference:
    """One rule that two policies do not share. before, after: None where it is not there."""

    before: Said | None
    after: Said | None

    @property
    def rule(self) -> Said:
        """The rule as it is, else as it was."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Words that differ: before and after, None for one that is not said."""
        before = self.before.words if self.before is not None else {}
        after = self.after.words if self.after is not None else {}
        names = [*before, *(name for name in after if name not in before)]
        return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def differences(before: tuple[Said, ...], after: tuple[Said, ...]) -> tuple[Difference, ...]:
    """What changes from one policy to another, wherever in the files it stands."""
    old = {(rule.kind, rule.name): rule for rule in before}
    new = {(rule.kind, rule.name): rule for rule in after}
    places = [*old, *(place for place in new if place not in old)]
    found = (Difference(old.get(place), new.get(place)) for place in places)
    return tuple(one for one in found if one.before is None or one.after is None or one.changed)
