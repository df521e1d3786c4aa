"""Policy files: a folder of `*.yaml`, merged into one `Policy`, or everything that is wrong with them.

Problems read `file:line:col: path: message`. Files merge in the order of their names; what may stand only once names
both of its places when it stands twice.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from proxy.config import made
from proxy.config.policymodel import FileModel, TeamModel, UnpricedModel, model_at
from proxy.config.problem import Problem, Problems, did_you_mean
from proxy.config.salvage import MERGED, Salvage, named, salvage, whole
from proxy.config.sentences import faults_of
from proxy.config.yamlfile import YamlFile, parse_yaml
from proxy.config.yamltree import Fault, Steps, nulls
from proxy.core.deterministic import CacheRule
from proxy.core.limits import Budget, Each, Rate
from proxy.core.policy import DEFAULT_POLICY, WAIT_MAX_S, KeyRef, Policy, Team, credential_of_digest
from proxy.core.prices import PriceTable, Rule

VARIANTS_MAX: Final = 20
"""Keys given twice whose second value is judged, too: each costs as much as the whole file."""


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
    elif "gateway" not in merged.blind:
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
    cached: list[tuple[str, str, str]] = field(default_factory=list)
    """Places, paths and teams of cache rules."""
    places: dict[tuple[str, ...], str] = field(default_factory=dict)
    blind: set[str] = field(default_factory=set)
    """Kinds of things of which some could not be read at all, so nobody knows what is missing."""

    def read(self, path: Path) -> None:
        self.files += 1
        try:
            file = parse_yaml(path)
        except Problems as error:
            self.problems += error.problems
            self.blind |= _EVERYTHING
            return
        # What only keys given twice hide is told with the rest, and what such keys define is there.
        found = [(part, *_judged(part)) for part in file.parts()]
        faults = [fault for _, _, faults in found for fault in faults]
        for steps, variant in islice(file.variants(), VARIANTS_MAX):
            faults += [fault for fault in _judged(variant)[1] if fault.steps[: len(steps)] == steps]
        self.problems += [file.problem(fault) for fault in sorted(faults, key=lambda fault: fault.at)]
        for part, model, said in found:
            if part is not file and part.tree.keys().isdisjoint(MERGED):
                continue
            broken = [fault.steps for fault in said if fault.breaks]
            if model is not None and not broken:
                self._take(part, model, whole(part.tree))
            else:
                self._take_sound(part, broken)

    def _take_sound(self, file: YamlFile, faults: list[Steps]) -> None:
        """Take what no fault is in, and the names of the rest: what a broken item would have defined is not missing."""
        if () in faults:
            self.blind |= _EVERYTHING
        faults = [steps for steps in faults if steps]
        rest = salvage(file.tree, faults)
        for thing, steps, title in named(file.tree, faults):
            self._first(thing, file.place(steps), title)
        for name in rest.broken:
            self.blind |= _defined_by(name)
        try:
            model = FileModel.model_validate(rest.tree)
        except ValidationError:
            self.blind |= _EVERYTHING  # what is wrong was told already
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
            if kept.match.team is not None:
                place = file.place(["cache", index, "match", "team"])
                self.cached.append((place, f"cache.{index}.match.team", kept.match.team))
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
        if (wanted := self.switches.get("open_team")) is not None:
            self._check_teams([(self.places["open_team",], "open_team", wanted)])
        self._check_teams(self.cached)
        for first, second in PriceTable(tuple(self.rules)).ties():
            what = f"prices: {second.pattern!r} is priced at {first.price.source} already"
            self.problems.append(Problem(second.price.source, what, "take one of them out"))
        self._check_limits("budget", [(one, one.match.team) for one in self.budgets])
        self._check_limits("rate", [(one, one.match.facts.team) for one in self.rates])
        for ring in _rings(self.aliases):
            what = f"aliases.{ring[0]}: stands for itself in the end ({' → '.join([*ring, ring[0]])})"
            self.problems.append(Problem(self.places["alias", ring[0]], what, "say a model of the gateway's"))

    def _known_teams(self) -> Collection[str]:
        return {thing[1] for thing in self.places if thing[0] == "team"} or DEFAULT_POLICY.teams.keys()

    def _check_teams(self, mentioned: Iterable[tuple[str, str, str]]) -> None:
        """mentioned: places, paths, and the teams that are named there."""
        teams = self._known_teams()
        for place, path, name in mentioned:
            if name not in teams and "team" not in self.blind:
                what = f"{path}: there is no team {name!r}"
                self.problems.append(Problem(place, what, did_you_mean(name, teams)))

    def _check_limits(self, kind: str, limits: Iterable[tuple[Budget | Rate, str | None]]) -> None:
        """Names that limits mention have to be there. Keys may be issued by command, so theirs may be any."""
        taken = {one.name: (one.instead_of, one.source) for one, _ in limits}
        others = taken.keys() | {thing[1] for thing in self.places if thing[0] == kind}
        for limit, team in limits:
            path = f"{kind}s.{limit.name}"
            if team is not None:
                self._check_teams([(limit.source, f"{path}.match.team", team)])
            if limit.each is Each.TEAM:
                self._check_teams((limit.source, f"{path}.amounts.{name}", name) for name in limit.amounts)
            instead_of = limit.instead_of
            if instead_of is not None and instead_of not in others - {limit.name} and kind not in self.blind:
                what = f"{path}.instead_of: there is no other {kind} {instead_of!r}"
                rest = others - {limit.name}
                do = did_you_mean(instead_of, rest) if rest else "leave it out"
                self.problems.append(Problem(limit.source, what, do))
        for ring in _rings({name: other for name, (other, _) in taken.items() if other is not None and other != name}):
            what = f"{kind}s.{ring[0]}.instead_of: takes over from itself in the end ({' → '.join([*ring, ring[0]])})"
            self.problems.append(Problem(taken[ring[0]][1], what, "take one instead_of out"))

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

_EVERYTHING: Final = frozenset({"team", "budget", "rate", "gateway"})
_DEFINING: Final[Mapping[str, frozenset[str]]] = {
    "teams": frozenset({"team"}),
    "budgets": frozenset({"budget"}),
    "rates": frozenset({"rate"}),
    "gateway_limits": frozenset({"rate", "gateway"}),
}
"""What others name, by the name at the top of a file that defines it."""


def _defined_by(name: str) -> frozenset[str]:
    """What a name at the top of a file defines, or would if it were not misspelt."""
    near = did_you_mean(name, FileModel.model_fields)
    return next((kinds for word, kinds in _DEFINING.items() if word == name or f"mean {word}?" in near), frozenset())


def _judged(file: YamlFile) -> tuple[FileModel | None, list[Fault]]:
    """What a file says, None where its shape does not let it, and what is wrong in it, each place once."""
    faults = list(file.read.faults)
    told = {fault.steps for fault in faults if fault.covers}
    more = [Fault(steps, file.position(steps), *_EMPTY) for steps in nulls(file.tree)]
    model = None
    try:
        model = FileModel.model_validate(file.tree)
    except ValidationError as error:
        more += faults_of(file, error, lambda steps: model_at(steps).model_fields)
    for fault in more:
        if not any(fault.steps[:end] in told for end in range(1, len(fault.steps) + 1)):
            faults.append(fault)
            told.add(fault.steps)
    return model, faults


_EMPTY: Final = ("is empty", "say something, or leave it out; [] is an empty list and {} an empty mapping")


def _rings(leads_to: Mapping[str, str]) -> Iterator[list[str]]:
    """Names that lead back to themselves: each ring once, from the name that was met first."""
    seen: set[str] = set()
    for name in leads_to:
        way: list[str] = []
        at: str | None = name
        while at is not None and at not in seen:
            seen.add(at)
            way.append(at)
            at = leads_to.get(at)
        if at in way:
            yield way[way.index(at) :]
