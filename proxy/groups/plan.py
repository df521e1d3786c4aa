"""The difference between a file of groups and the service, as steps in a safe order. Nothing is read or sent here.

What gives comes before what takes away: groups and members are in place before anybody is removed, dismissed or
deleted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.config.problem import Problem, Problems
from proxy.groups.client import Change, NewGroup
from proxy.groups.matching import Matched
from proxy.groups.membership import member_steps, people_of
from proxy.groups.names import Names, rename_order
from proxy.groups.places import bottom_up, placing
from proxy.groups.present import Present
from proxy.groups.steps import (
    DESTRUCTIVE,
    ChangeFields,
    Create,
    Delete,
    Designate,
    Dismiss,
    Place,
    SetAgent,
    SetCredit,
    SetModels,
    Step,
)
from proxy.groups.wanted import Ref, Unset, Wanted, given

Models = Mapping[int, Mapping[int, bool]]


@dataclass(frozen=True, slots=True)
class Plan:
    """steps: in the order they are done. untouched: groups that the file does not name. notes: what should be known."""

    steps: tuple[Step, ...]
    names: Mapping[Ref, str]
    untouched: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def destructive(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if isinstance(step, DESTRUCTIVE))


def make_plan(matched: Matched, present: Present, applied: Models) -> Plan:
    """applied: model permissions as last applied, by group id. Raises Problems for people nobody knows."""
    if problems := [*_strangers(matched, present)]:
        raise Problems(problems)
    steps = [
        *_tree_steps(matched, present),
        *member_steps(matched, present),
        *_administrator_steps(matched, present),
        *_agent_steps(matched, present),
        *_model_steps(matched, present, applied),
    ]
    going = bottom_up({ref: row.parent_id for ref, row in present.groups.items()}, set(matched.going))
    steps += [Delete(ref) for ref in going]
    # Sorting keeps the order inside each half.
    steps.sort(key=lambda step: isinstance(step, DESTRUCTIVE))
    names: dict[Ref, str] = {ident: row.en_name for ident, row in present.groups.items()}
    names |= {name: name for name in matched.new}
    untouched = tuple(ident for ident in present.groups if ident not in matched.found and ident not in matched.going)
    return Plan(tuple(steps), names, untouched, tuple(_notes(matched, applied)))


def _tree_steps(matched: Matched, present: Present) -> Iterator[Step]:
    """Rename, change, create and move, until every group stands where it shall with the fields it shall have."""
    rows = present.groups
    retyped = {ident for ident in matched.found if matched.types[ident] != rows[ident].type_id}
    now: dict[Ref, Ref | None] = {ident: row.parent_id for ident, row in rows.items()}
    placed = placing(now, matched.parents, retyped, set(matched.going))
    for ref in placed.lifts:
        yield Place(ref, None, "" if matched.parents.get(ref, 0) is None else "for a moment")
    yield from _change_steps(matched, present)
    for ref in placed.order:
        if isinstance(ref, int):
            yield Place(ref, matched.parents[ref])
        else:
            yield Create(ref, _new(matched.new[ref], matched, ref), matched.parents[ref])


def _change_steps(matched: Matched, present: Present) -> Iterator[Step]:
    """One call for each group that changes, and one for many whose credit limit alone does."""
    changes = {ident: _change(ident, wanted, present) for ident, wanted in matched.found.items()}
    limits: dict[int | None, list[Ref]] = {}
    for ident, change in changes.items():
        member_quota = given(matched.found[ident].member_quota, present.groups[ident].member_quota)
        if change.keys() == {"credit_quota"} and member_quota is not None:
            limits.setdefault(change["credit_quota"], []).append(ident)
    alone = {ident for refs in limits.values() if len(refs) > 1 for ident in refs if isinstance(ident, int)}
    yield from _renamed(matched, present, {ident: change for ident, change in changes.items() if ident not in alone})
    for quota, refs in limits.items():
        if len(refs) > 1:
            yield SetCredit(tuple(refs), quota)


def _renamed(matched: Matched, present: Present, changes: dict[int, Change]) -> Iterator[Step]:
    current = {ident: Names(row.ko_name, row.en_name) for ident, row in present.groups.items()}
    wanted = {ident: matched.names[ident] for ident in matched.found if matched.names[ident] != current[ident]}
    for ident, names in rename_order(current, wanted, [matched.names[ref] for ref in matched.new], matched.going):
        if names == wanted.get(ident):
            yield ChangeFields(ident, changes.pop(ident))
        else:
            parked: Change = {}
            if names.ko != current[ident].ko:
                parked["ko_name"] = names.ko
            if names.en != current[ident].en:
                parked["en_name"] = names.en
            yield ChangeFields(ident, parked, "makes room for another group's name")
    for ident, change in changes.items():
        if change:
            yield ChangeFields(ident, change)


def _change(ident: int, wanted: Wanted, present: Present) -> Change:
    """Fields that differ."""
    row = present.groups[ident]
    pairs: tuple[tuple[str, Any, Any], ...] = (
        ("ko_name", wanted.ko_name, row.ko_name),
        ("en_name", wanted.en_name, row.en_name),
        ("credit_quota", wanted.group_quota, row.group_quota),
        ("member_credit_quota", wanted.member_quota, row.member_quota),
        ("member_group_type_id", wanted.type_id, row.type_id),
        ("is_visible_to_admin_only", wanted.admin_only, present.hidden.get(ident)),
    )
    change: Any = {name: value for name, value, now in pairs if not isinstance(value, Unset) and value != now}
    typed: Change = change
    return typed


def _new(wanted: Wanted, matched: Matched, name: str) -> NewGroup:
    new: NewGroup = {"ko_name": matched.names[name].ko, "en_name": name}
    if matched.types[name] is not None:
        new["member_group_type_id"] = matched.types[name]
    if not isinstance(wanted.group_quota, Unset):
        new["group_credit_quota"] = wanted.group_quota
    if not isinstance(wanted.member_quota, Unset):
        new["member_credit_quota"] = wanted.member_quota
    if not isinstance(wanted.admin_only, Unset):
        new["is_visible_to_admin_only"] = wanted.admin_only
    return new


def _administrator_steps(matched: Matched, present: Present) -> Iterator[Step]:
    for ref, wanted in matched.entries():
        if isinstance(wanted.administrators, Unset):
            continue
        now = present.administrators.get(ref, {}) if isinstance(ref, int) else {}
        people = people_of(wanted.administrators, present)
        for person, below in wanted.administrators.items():
            member = people[person]
            if member not in now or below not in (None, now[member]):
                yield Designate(ref, member, below)
        for member in now.keys() - set(people.values()):
            yield Dismiss(ref, member)


def _agent_steps(matched: Matched, present: Present) -> Iterator[Step]:
    """A switch that equals the tenant's default cannot be told from none, and does the same; it is left alone."""
    for ref, wanted in matched.entries():
        now = present.agents.get(ref, {}) if isinstance(ref, int) else {}
        for name, switch in ({} if isinstance(wanted.agents, Unset) else wanted.agents).items():
            default = present.defaults.get(name)
            # A new group inherits everything; an agent that nobody knows is for the service to refuse.
            enabled = now[name].enabled if name in now else default
            if enabled is None or enabled != (default if switch is None else switch):
                yield SetAgent(ref, name, switch)


def _model_steps(matched: Matched, present: Present, applied: Models) -> Iterator[Step]:
    """One step for all groups that need the same models set."""
    alike: dict[tuple[tuple[int, bool], ...], list[Ref]] = {}
    for ref, wanted in matched.entries():
        known = _known_models(ref, present, applied) if isinstance(ref, int) else {}
        models = {} if isinstance(wanted.models, Unset) else wanted.models
        if missing := tuple(sorted(item for item in models.items() if known.get(item[0]) is not item[1])):
            alike.setdefault(missing, []).append(ref)
    for rules, refs in alike.items():
        yield SetModels(tuple(refs), rules)


def _known_models(ident: int, present: Present, applied: Models) -> Mapping[int, bool]:
    """What was applied, unless the count of allowed models says that somebody changed it since."""
    known = applied.get(ident, {})
    row = present.groups[ident]
    blocked = sum(not allowed for allowed in known.values())
    return known if row.allowed_models <= row.total_models - blocked else {}


def _strangers(matched: Matched, present: Present) -> Iterator[Problem]:
    for _, wanted in matched.entries():
        for field, people in (("members", wanted.members), ("administrators", wanted.administrators)):
            for person in () if isinstance(people, Unset) else people:
                if isinstance(person, str) and person.lower() not in present.people:
                    yield Problem(wanted.where, f"{field}: nobody has the address {person}")


def _notes(matched: Matched, applied: Models) -> Iterator[str]:
    for wanted in matched.gone:
        yield f"group {wanted.id} is gone already, or not delegated to this account"
    if any(not isinstance(wanted.models, Unset) and wanted.models for _, wanted in matched.entries()):
        yield (
            "model permissions cannot be read back: they are compared with what was applied from here last"
            + ("" if applied else ", and nothing was yet")
        )
    if any(not isinstance(wanted.agents, Unset) and wanted.agents for _, wanted in matched.entries()):
        yield "an agent's switch that equals the tenant's default cannot be told from none and is left alone"
