"""Policy files: a folder of `*.yaml`, merged into one `Policy`, or everything that is wrong with them.

Problems read `file:line:col: path: message`. Files merge in the order of their names; what may stand only once names
both of its places when it stands twice.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from proxy.config import made
from proxy.config.policymodel import FileModel, TeamModel, UnpricedModel, model_at
from proxy.config.problem import Problem, Problems, did_you_mean
from proxy.config.salvage import Salvage, Steps, named, salvage, whole
from proxy.config.yamlfile import YamlFile, read_yaml
from proxy.core.deterministic import CacheRule
from proxy.core.limits import Budget, Rate
from proxy.core.policy import DEFAULT_POLICY, WAIT_MAX_S, KeyRef, Policy, Team, credential_of_digest
from proxy.core.prices import PriceTable, Rule


class PolicyProblems(Problems):
    """Everything wrong with the policy files."""


def load_policies(folder: Path) -> Policy:
    """The policy of all files in a folder and the gateway's own limits; raises PolicyProblems.

    Where there are no files it is `DEFAULT_POLICY` with those limits.
    """
    if not folder.is_dir():
        return replace(DEFAULT_POLICY, rates=made.gateway_rates())
    # Taken first: a file that changes while it is read is read again, and no change is missed.
    seen = digest(folder)
    merged = _Merged()
    copies = []
    for path in sorted(folder.iterdir()):
        if path.suffix == ".yml":
            merged.problems.append(Problem(str(path), "is not read", "rename it to .yaml, or move it away"))
        elif path.name == made.GATEWAY.name and path.is_file() and path.read_bytes() == made.GATEWAY.read_bytes():
            copies.append(path)
        # Editors and mounts leave hidden files and folders beside the real ones.
        elif path.suffix == ".yaml" and not path.name.startswith("."):
            merged.read(path)
    if merged.switches.get("gateway_limits") == "own":
        for copy in copies:
            merged.read(copy)
    elif not merged.blind:
        merged.add_gateway()
    merged.check()
    if merged.problems:
        raise PolicyProblems(merged.problems)
    if not merged.files:
        return replace(DEFAULT_POLICY, rates=made.gateway_rates(), digest=seen)
    return replace(merged.policy(), digest=seen)


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
    rates: list[Rate] = field(default_factory=list)
    members: dict[str, str] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    tool_aliases: dict[str, str] = field(default_factory=dict)
    cache: list[CacheRule] = field(default_factory=list)
    places: dict[tuple[str, ...], str] = field(default_factory=dict)
    blind: bool = False
    """Something in the files could not be read at all, so nobody knows what is missing."""

    def read(self, path: Path) -> None:
        self.files += 1
        try:
            file = read_yaml(path)
        except Problems as error:
            self.problems += error.problems
            self.blind = True
            return
        try:
            self._take(file, FileModel.model_validate(file.tree), whole(file.tree))
        except ValidationError as error:
            self.problems += _problems(file, error)
            self._take_sound(file, [steps for steps, _ in _faults(error)])

    def _take_sound(self, file: YamlFile, faults: list[Steps]) -> None:
        """Take what no fault is in, and the names of the rest: what a broken item would have defined is not missing."""
        rest = salvage(file.tree, faults)
        for thing, steps, title in named(file.tree, faults):
            self._first(thing, file.place(steps), title)
        self.blind = self.blind or any(_may_define(name) for name in rest.broken)
        try:
            model = FileModel.model_validate(rest.tree)
        except ValidationError:
            self.blind = True  # what is wrong was told already
            return
        self._take(file, model, rest)

    def _take(self, file: YamlFile, model: FileModel, rest: Salvage) -> None:
        for name, said in model.teams.items():
            self._first(("team", name), file.place(["teams", name]), f"teams.{name}: the team")
            self.teams[name] = self._team(file, name, said)
        for index, budget in zip(rest.places("budgets", len(model.budgets)), model.budgets, strict=True):
            place = file.place(["budgets", index, "name"])
            self._first(("budget", budget.name), place, f"budgets.{index}.name: the budget {budget.name!r}")
            self.budgets.append(made.budget(budget, file.place(["budgets", index])))
        for index, rate in zip(rest.places("rates", len(model.rates)), model.rates, strict=True):
            place = file.place(["rates", index, "name"])
            self._first(("rate", rate.name), place, f"rates.{index}.name: the rate {rate.name!r}")
            self.rates.append(made.rate(rate, file.place(["rates", index])))
        for member, digests in model.members.items():
            for index, digest in enumerate(digests):
                title = f"members.{member}.{index}: the key"
                self._first(("member of", digest.lower()), file.place(["members", member, index]), title)
                self.members[credential_of_digest(digest)] = member
        for index, price in zip(rest.places("prices", len(model.prices)), model.prices, strict=True):
            self.rules.append(made.rule(price, file.place(["prices", index])))
        for index, kept in zip(rest.places("cache", len(model.cache)), model.cache, strict=True):
            self.cache.append(made.cache_rule(kept, file.place(["cache", index])))
        for alias, stands_for in model.aliases.items():
            self._first(("alias", alias), file.place(["aliases", alias]), f"aliases.{alias}: the alias")
            self.aliases[alias] = stands_for
        for alias, stands_for in model.tool_aliases.items():
            self._first(("tool alias", alias), file.place(["tool_aliases", alias]), f"tool_aliases.{alias}: the alias")
            title = f"tool_aliases.{alias}: an alias of {stands_for}"
            self._first(("alias of tool", stands_for), file.place(["tool_aliases", alias]), title)
            self.tool_aliases[alias] = stands_for
        for name in model.model_fields_set - MERGED:
            self._first((name,), file.place([name]), f"{name}: the setting")
            self.switches[name] = getattr(model, name)

    def add_gateway(self) -> None:
        """The gateway's own limits hold besides what the files say."""
        for rate in made.gateway_rates():
            if (place := self.places.get(("rate", rate.name))) is not None:
                what = f"the rate {rate.name!r} is one of the gateway's own ({rate.source})"
                do = "give it another name, or say gateway_limits: own and write all of them down"
                self.problems.append(Problem(place, what, do))
            self.rates.append(rate)

    def check(self) -> None:
        """What can be judged only when all files are read."""
        wanted = self.switches.get("open_team")
        known = {thing[1] for thing in self.places if thing[0] == "team"} or DEFAULT_POLICY.teams.keys()
        if wanted is not None and wanted not in known and not self.blind:
            do = did_you_mean(wanted, known)
            self.problems.append(Problem(self.places["open_team",], f"open_team: there is no team {wanted!r}", do))
        for first, second in PriceTable(tuple(self.rules)).ties():
            what = f"prices: {second.pattern!r} is priced at {first.price.source} already"
            self.problems.append(Problem(second.price.source, what, "take one of them out"))
        self._check_limits("budget", {one.name: (one.match.team, one.instead_of, one.source) for one in self.budgets})
        self._check_limits("rate", {one.name: (one.match.facts.team, one.instead_of, one.source) for one in self.rates})

    def _check_limits(self, kind: str, limits: dict[str, tuple[str | None, str | None, str]]) -> None:
        """Names that limits mention have to be there."""
        if self.blind:
            return
        known = {thing[1] for thing in self.places if thing[0] == "team"} or DEFAULT_POLICY.teams.keys()
        others = limits.keys() | {thing[1] for thing in self.places if thing[0] == kind}
        for name, (team, instead_of, source) in limits.items():
            if team is not None and team not in known:
                what = f"{kind}s.{name}.match.team: there is no team {team!r}"
                self.problems.append(Problem(source, what, did_you_mean(team, known)))
            if instead_of is not None and instead_of not in others - {name}:
                what = f"{kind}s.{name}.instead_of: there is no other {kind} {instead_of!r}"
                self.problems.append(Problem(source, what, did_you_mean(instead_of, others)))

    def policy(self) -> Policy:
        switches = {name: value for name, value in self.switches.items() if value is not None}
        switches.pop("gateway_limits", None)
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
            rates=tuple(self.rates),
            members=self.members,
            prices=PriceTable(tuple(self.rules)),
            aliases=self.aliases,
            tool_aliases=self.tool_aliases,
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
            group=said.group,
            weight=said.weight,
        )

    def _first(self, thing: tuple[str, ...], where: str, title: str) -> None:
        """Remember where a thing stands that may stand once; the second place is a problem that names the first."""
        first = self.places.setdefault(thing, where)
        if first != where:
            self.problems.append(Problem(where, f"{title} stands at {first} already", "take one of them out"))


_OF_KEYS: Final = frozenset({"id", "digest"})

MERGED: Final = frozenset({"teams", "budgets", "rates", "members", "prices", "aliases", "tool_aliases", "cache"})
"""What files add to one another; everything else is said once."""


_DEFINING: Final = frozenset({"teams", "budgets", "rates", "gateway_limits"})
"""What others name."""


def _may_define(name: str) -> bool:
    """Whether a name at the top of a file is one of those, or one of them misspelt."""
    return name in _DEFINING or any(word in did_you_mean(name, FileModel.model_fields) for word in _DEFINING)


def _faults(error: ValidationError) -> list[tuple[Steps, ErrorDetails]]:
    # A fault in a key of a mapping is marked by a last step that is no key of the file.
    return [(tuple(step for step in fault["loc"] if step != "[key]"), fault) for fault in error.errors()]


def _problems(file: YamlFile, error: ValidationError) -> Iterator[Problem]:
    for steps, fault in sorted(_faults(error), key=lambda found: file.position(found[0])):
        path = ".".join(str(step) for step in steps)
        what, do = _sentence(steps, fault)
        yield Problem(file.place(steps), f"{path}: {what}", do)


def _sentence(steps: tuple[str | int, ...], fault: ErrorDetails) -> tuple[str, str]:
    """What is wrong and what to do, for one fault that pydantic found."""
    written = fault.get("input")
    match fault["type"]:
        case "extra_forbidden":
            model = model_at(steps[:-1])
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
