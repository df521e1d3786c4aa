"""The steps of a plan: one value for each thing that is done to the service, and how each is told to a person."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from proxy.groups.client import Change, NewGroup
from proxy.groups.wanted import Ref


@dataclass(frozen=True, slots=True)
class Create:
    """new: without its parent, which may itself be created before."""

    group: Ref
    new: NewGroup
    parent: Ref | None


@dataclass(frozen=True, slots=True)
class ChangeFields:
    """why: "" where the file asks for it, else what it makes room for."""

    group: Ref
    change: Change
    why: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    group: Ref
    parent: Ref | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class MoveMembers:
    group: Ref
    target: Ref
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddMembers:
    group: Ref
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveMembers:
    group: Ref
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Designate:
    group: Ref
    member: int
    include_descendants: bool | None


@dataclass(frozen=True, slots=True)
class Dismiss:
    group: Ref
    member: int


@dataclass(frozen=True, slots=True)
class SetAgent:
    group: Ref
    agent: str
    enabled: bool | None


@dataclass(frozen=True, slots=True)
class SetCredit:
    groups: tuple[Ref, ...]
    quota: int | None


@dataclass(frozen=True, slots=True)
class SetModels:
    groups: tuple[Ref, ...]
    models: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class Delete:
    group: Ref


Step: TypeAlias = (
    Create
    | ChangeFields
    | Place
    | MoveMembers
    | AddMembers
    | RemoveMembers
    | Designate
    | Dismiss
    | SetAgent
    | SetCredit
    | SetModels
    | Delete
)

DESTRUCTIVE = (RemoveMembers, Dismiss, Delete)
"""Steps that take something away from somebody; done last, and confirmed."""


def sentence(step: Step, names: Mapping[Ref, str]) -> str:
    """What the step does, as a person reads it."""
    match step:
        case Create(group, new, parent):
            where = "at the root" if parent is None else f"below {_named(parent, names)}"
            return f"create {_named(group, names)} {where}{_fields(new, skip=('en_name',))}"
        case ChangeFields(group, change, why):
            return f"change {_named(group, names)}{_fields(change)}{why and f' ({why})'}"
        case Place(group, parent, why):
            where = "to the root" if parent is None else f"below {_named(parent, names)}"
            return f"move {_named(group, names)} {where}{why and f' ({why})'}"
        case MoveMembers(group, target, members):
            return f"move {_people(members)} from {_named(group, names)} to {_named(target, names)}"
        case AddMembers(group, members):
            return f"add {_people(members)} to {_named(group, names)}"
        case RemoveMembers(group, members):
            return f"remove {_people(members)} from {_named(group, names)}"
        case Designate(group, member, below):
            how = {True: ", groups below included", False: ", this group only", None: ""}[below]
            return f"make member {member} an administrator of {_named(group, names)}{how}"
        case Dismiss(group, member):
            return f"dismiss member {member} as administrator of {_named(group, names)}"
        case SetAgent(group, agent, enabled):
            word = {True: "on", False: "off", None: "back to the tenant's default"}[enabled]
            return f"switch agent {agent} {word} for {_named(group, names)}"
        case SetCredit(groups, quota):
            return f"set the credit limit of {_groups(groups, names)} to {_quota(quota)}"
        case SetModels(groups, models):
            rules = ", ".join(f"{model} {'allowed' if allowed else 'blocked'}" for model, allowed in models)
            return f"set models for {_groups(groups, names)}: {rules}"
        case Delete(group):
            return f"delete {_named(group, names)}"
        case _:
            assert_never(step)


def groups_of(step: Step) -> tuple[Ref, ...]:
    return step.groups if isinstance(step, SetCredit | SetModels) else (step.group,)


def _named(group: Ref, names: Mapping[Ref, str]) -> str:
    name = names.get(group, str(group))
    return f"“{name}”" + (f" ({group})" if isinstance(group, int) else "")


def _groups(groups: tuple[Ref, ...], names: Mapping[Ref, str]) -> str:
    first = ", ".join(_named(group, names) for group in groups[:3])
    return first if len(groups) <= 3 else f"{first} and {len(groups) - 3} more groups"


def _people(members: tuple[int, ...]) -> str:
    if len(members) <= 3:
        return ("member " if len(members) == 1 else "members ") + ", ".join(map(str, members))
    return f"{len(members)} members"


def _fields(values: Mapping[str, Any], skip: tuple[str, ...] = ()) -> str:
    told = [f"{name} {_value(value)}" for name, value in values.items() if name not in skip]
    return ": " + ", ".join(told) if told else ""


def _value(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else "none" if value is None else str(value)


def _quota(quota: int | None) -> str:
    return "unlimited" if quota is None else f"{quota:,} credits"
