"""Policy files: a folder of `*.yaml`, merged into one `Policy`, or everything that is wrong with them.

Problems read `file:line:col: path: message`. Files merge in the order of their names; what may stand only once names
both of its places when it stands twice.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from proxy.config.policymodel import (
    NOT_YET,
    BudgetModel,
    CacheModel,
    FileModel,
    PriceModel,
    TeamModel,
    UnpricedModel,
    model_at,
)
from proxy.config.problem import Problem, Problems, did_you_mean
from proxy.config.yamlfile import YamlFile, read_yaml
from proxy.core.deterministic import CacheRule
from proxy.core.limits import Budget, Match
from proxy.core.policy import DEFAULT_POLICY, WAIT_MAX_S, KeyRef, Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.windows import Calendar, Sliding

_NOT_ENFORCED: Final = "this version does not enforce it yet"


class PolicyProblems(Problems):
    """Everything wrong with the policy files."""


def load_policies(folder: Path) -> Policy:
    """The policy of all files in a folder; `DEFAULT_POLICY` where there are none. Raises PolicyProblems."""
    if not folder.is_dir():
        return DEFAULT_POLICY
    # Taken first: a file that changes while it is read is read again, and no change is missed.
    seen = digest(folder)
    merged = _Merged()
    for path in sorted(folder.iterdir()):
        if path.suffix == ".yml":
            merged.problems.append(Problem(str(path), "is not read", "rename it to .yaml, or move it away"))
        # Editors and mounts leave hidden files and folders beside the real ones.
        elif path.suffix == ".yaml" and not path.name.startswith("."):
            merged.read(path)
    merged.check()
    if merged.problems:
        raise PolicyProblems(merged.problems)
    return replace(merged.policy() if merged.files else DEFAULT_POLICY, digest=seen)


def digest(folder: Path) -> str:
    """What the policy files hold, as one value."""
    sum_ = hashlib.sha256()
    for path in sorted(folder.glob("*.y*ml")):
        try:
            sum_.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        except OSError:
            sum_.update(path.name.encode() + b"\0?")
    return sum_.hexdigest()


@dataclass(slots=True)
class _Merged:
    """The files read so far, and where each thing that may stand only once was found first."""

    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    teams: dict[str, Team] = field(default_factory=dict)
    switches: dict[str, Any] = field(default_factory=dict)
    budgets: list[Budget] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    cache: list[CacheRule] = field(default_factory=list)
    places: dict[tuple[str, ...], str] = field(default_factory=dict)

    def read(self, path: Path) -> None:
        self.files += 1
        try:
            file = read_yaml(path)
        except Problems as error:
            self.problems += error.problems
            return
        try:
            model = FileModel.model_validate(file.tree)
        except ValidationError as error:
            self.problems += _problems(file, error)
            self._note_teams(file)
            return
        for name, said in model.teams.items():
            self._first(("team", name), file.place(["teams", name]), f"teams.{name}: the team")
            self.teams[name] = self._team(file, name, said)
        for index, budget in enumerate(model.budgets):
            place = file.place(["budgets", index, "name"])
            self._first(("budget", budget.name), place, f"budgets.{index}.name: the budget {budget.name!r}")
            self.budgets.append(_budget(budget, file.place(["budgets", index])))
        for index, price in enumerate(model.prices):
            self.rules.append(_rule(price, file.place(["prices", index])))
        for index, kept in enumerate(model.cache):
            self.cache.append(_cache_rule(kept, file.place(["cache", index])))
        for alias, stands_for in model.aliases.items():
            self._first(("alias", alias), file.place(["aliases", alias]), f"aliases.{alias}: the alias")
            self.aliases[alias] = stands_for
        for name in model.model_fields_set - MERGED:
            self._first((name,), file.place([name]), f"{name}: the setting")
            self.switches[name] = getattr(model, name)

    def check(self) -> None:
        """What can be judged only when all files are read."""
        wanted = self.switches.get("open_team")
        known = {thing[1] for thing in self.places if thing[0] == "team"} or DEFAULT_POLICY.teams.keys()
        if wanted is not None and wanted not in known:
            do = did_you_mean(wanted, known)
            self.problems.append(Problem(self.places["open_team",], f"open_team: there is no team {wanted!r}", do))
        for first, second in PriceTable(tuple(self.rules)).ties():
            what = f"prices: {second.pattern!r} is priced at {first.price.source} already"
            self.problems.append(Problem(second.price.source, what, "take one of them out"))
        names = {budget.name for budget in self.budgets}
        for budget in self.budgets:
            if budget.match.team is not None and budget.match.team not in known:
                what = f"budgets.{budget.name}.match.team: there is no team {budget.match.team!r}"
                self.problems.append(Problem(budget.source, what, did_you_mean(budget.match.team, known)))
            if budget.instead_of is not None and budget.instead_of not in names - {budget.name}:
                what = f"budgets.{budget.name}.instead_of: there is no other budget {budget.instead_of!r}"
                self.problems.append(Problem(budget.source, what, did_you_mean(budget.instead_of, names)))

    def policy(self) -> Policy:
        switches = {name: value for name, value in self.switches.items() if value is not None}
        for name in switches.keys() & {"heartbeat", "expires_after"}:
            switches[f"{name}_s"] = switches.pop(name)
        # Files that say nothing of teams leave the one team there is without files.
        if isinstance(unpriced := switches.pop("unpriced", None), UnpricedModel):
            switches["unpriced_hold"] = unpriced.hold
        if not self.teams:
            switches.setdefault("open_team", DEFAULT_POLICY.open_team)
        return Policy(
            teams=self.teams or DEFAULT_POLICY.teams,
            budgets=tuple(self.budgets),
            prices=PriceTable(tuple(self.rules)),
            aliases=self.aliases,
            cache=tuple(self.cache),
            sources={" ".join(thing): place for thing, place in self.places.items() if thing[0] not in _OF_KEYS},
            **switches,
        )

    def _team(self, file: YamlFile, name: str, said: TeamModel) -> Team:
        for index, key in enumerate(said.keys):
            path = f"teams.{name}.keys.{index}"
            at: list[str | int] = ["teams", name, "keys", index]
            self._first(("id", name, key.id), file.place([*at, "id"]), f"{path}.id: the id {key.id!r}")
            self._first(("digest", key.sha256.lower()), file.place([*at, "sha256"]), f"{path}.sha256: the key")
        keys = tuple(KeyRef(key.id, bytes.fromhex(key.sha256), key.expires) for key in said.keys)
        wait_max_s = WAIT_MAX_S if said.wait_max is None else said.wait_max
        return Team(
            name,
            keys,
            said.gateway_balance,
            wait_max_s,
            models=said.models,
            deny_models=said.deny_models,
            suites=said.suites,
            tools=said.tools.allow,
            deny_tools=said.tools.deny,
            chatbots=said.chatbots,
            cache=said.cache,
            cache_control=said.cache_control,
        )

    def _first(self, thing: tuple[str, ...], where: str, title: str) -> None:
        """Remember where a thing stands that may stand once; the second place is a problem that names the first."""
        first = self.places.setdefault(thing, where)
        if first != where:
            self.problems.append(Problem(where, f"{title} stands at {first} already", "take one of them out"))

    def _note_teams(self, file: YamlFile) -> None:
        """Teams of a file with problems exist too: `open_team` may name them."""
        teams = file.tree.get("teams")
        for name in teams if isinstance(teams, dict) else ():
            self.places.setdefault(("team", str(name)), file.place(["teams", name]))


_OF_KEYS: Final = frozenset({"id", "digest"})

MERGED: Final = frozenset({"teams", "budgets", "prices", "aliases", "cache"})
"""What files add to one another; everything else is said once."""


def _budget(said: BudgetModel, source: str) -> Budget:
    window: Calendar | Sliding
    if said.per is not None:
        window = Calendar(said.per, said.timezone or UTC)
    else:
        assert said.within is not None
        window = Sliding(said.within)
    return Budget(
        name=said.name,
        amount=said.credits,
        window=window,
        match=Match(**said.match.model_dump()),
        each=said.each,
        amounts=dict(said.amounts),
        instead_of=said.instead_of,
        excess=said.excess,
        warn_at=said.warn_at,
        shadow=said.shadow,
        source=source,
    )


def _rule(said: PriceModel, source: str) -> Rule:
    kind = next(kind for kind in ("models", "chatbots", "suites") if getattr(said, kind) is not None)
    given = said.model_dump(exclude_none=True, exclude={"models", "chatbots", "suites"})
    return Rule(kind, getattr(said, kind), Price(**given, source=source))


def _cache_rule(said: CacheModel, source: str) -> CacheRule:
    return CacheRule(
        match=Match(**said.match.model_dump(exclude={"deterministic"})),
        deterministic=said.match.deterministic,
        ttl_s=said.ttl,
        stale_if_error_s=said.stale_if_error,
        source=source,
    )


def _problems(file: YamlFile, error: ValidationError) -> Iterator[Problem]:
    # A fault in a key of a mapping is marked by a last step that is no key of the file.
    faults = [(tuple(step for step in fault["loc"] if step != "[key]"), fault) for fault in error.errors()]
    for steps, fault in sorted(faults, key=lambda found: file.position(found[0])):
        path = ".".join(str(step) for step in steps)
        what, do = _sentence(steps, fault)
        yield Problem(file.place(steps), f"{path}: {what}", do)


def _sentence(steps: tuple[str | int, ...], fault: ErrorDetails) -> tuple[str, str]:
    """What is wrong and what to do, for one fault that pydantic found."""
    written = fault.get("input")
    match fault["type"]:
        case "extra_forbidden":
            model = model_at(steps[:-1])
            if steps[-1] in NOT_YET.get(model, ()):
                return _NOT_ENFORCED, "take it out, so that nobody relies on it"
            return "is not known", did_you_mean(str(steps[-1]), model.model_fields)
        case "missing":
            return "is missing", ""
        case "enum":
            words = [word.strip("'") for word in re.split(", | or ", fault["ctx"]["expected"])]
            return f"{written!r} is not one of {', '.join(words)}", ""
        case "model_type" | "dict_type":
            return "expected keys and values", ""
        case "tuple_type":
            return "expected a list", ""
        case "string_type":
            return f"expected text, not {written!r}", 'write it in quotes ("…")'
        case "string_pattern_mismatch" if steps[-1] == "sha256":
            return "is not a SHA-256 digest: 64 hexadecimal digits", ""
        case "string_pattern_mismatch":
            return "is not a name: letters, digits and . _ - , at most 64, the first a letter or digit", ""
        case "value_error":
            return str(fault["ctx"]["error"]), ""
        case _:
            message = fault["msg"]
            return message[0].lower() + message[1:], ""
