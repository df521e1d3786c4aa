"""The tenant the group service administers: who may ask, its members, its group types and the tree of groups."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


class Refusal(Exception):
    """A rule turned the request away."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Account:
    """Who calls. `master` manages every group, other administrators only what is delegated to them."""

    member_id: int
    active: bool = True
    administrator: bool = True
    master: bool = False


@dataclass(frozen=True, slots=True)
class GroupType:
    """Hierarchical types form trees; a member keeps one membership of a required type, and has one of a single type."""

    ident: int
    name: str
    hierarchical: bool = False
    required: bool = False
    single: bool = False


@dataclass(frozen=True, slots=True)
class Person:
    ident: int
    name: str
    email: str


@dataclass(slots=True)
class Group:
    ident: int
    ko_name: str
    en_name: str
    type_id: int | None = None
    parent_id: int | None = None
    group_quota: int | float | None = None
    member_quota: int | float | None = None
    hidden: bool = False
    is_default: bool = False
    sso: str | None = None
    members: list[int] = field(default_factory=list)
    admins: dict[int, bool] = field(default_factory=dict)
    """Administrator to whether the groups below are included."""
    agents: dict[str, bool] = field(default_factory=dict)
    permissions: dict[str, bool] = field(default_factory=dict)
    models: dict[int, bool] = field(default_factory=dict)


MASTER_TOKEN: Final = "emu-master-token"
DELEGATE_TOKEN: Final = "emu-delegate-token"

ACCOUNTS: Final[Mapping[str, Account]] = {
    MASTER_TOKEN: Account(101, master=True),
    DELEGATE_TOKEN: Account(102),
    "emu-member-token": Account(103, administrator=False),
    "emu-inactive-token": Account(104, active=False, master=True),
}
"""Access tokens and session ids alike."""

DEPTH_MAX: Final = 4
"""Deepest place in the tree; the root is 0."""

# fmt: off
TYPES: Final = {row.ident: row for row in (
    GroupType(1, "department", hierarchical=True),
    GroupType(2, "campus", required=True),
    GroupType(3, "course", single=True),
)}
PEOPLE: Final = {row.ident: row for row in (
    Person(101, "Ada",   "ada@example.org"),
    Person(102, "Bora",  "bora@example.org"),
    Person(103, "Chan",  "chan@example.org"),
    Person(104, "Dana",  "dana@example.org"),
    Person(105, "Eunji", "eunji@example.org"),
)}
AGENTS: Final = {"law_in_data": True, "korea_in_data": False, "univ_in_data": True}
PERMISSIONS: Final = ("image_generation", "video_generation", "file_upload")
MODEL_IDS: Final = range(1, 21)
# fmt: on


def _first_groups() -> list[Group]:
    return [
        Group(1, "기본", "Default", is_default=True, members=[101, 102, 103, 104, 105]),
        Group(
            2, "공학부", "Engineering", type_id=1, group_quota=5000, member_quota=100, members=[102], admins={102: True}
        ),
        Group(3, "전산과", "Computing", type_id=1, parent_id=2, members=[103]),
        Group(4, "서울", "Seoul", type_id=2, members=[104]),
        Group(5, "수문학", "Hydrology", type_id=3, members=[103]),
        Group(6, "본부", "Office", sso="office"),
    ]


class Tenant:
    """All groups, and the rules about changing them. Every method raises `Refusal` where a rule says no."""

    def __init__(self, *, enterprise: bool = True) -> None:
        self.enterprise = enterprise
        self.groups = {group.ident: group for group in _first_groups()}

    def group(self, ident: int, caller: Account) -> Group:
        """A group the caller manages: 404 when there is none, 403 when it is not theirs."""
        if ident not in self.groups:
            raise Refusal(404, f"group {ident} not found")
        if not self.manages(caller, ident):
            raise Refusal(403, f"group {ident} is not delegated to you")
        return self.groups[ident]

    def manages(self, caller: Account, ident: int) -> bool:
        if caller.master or caller.member_id in self.groups[ident].admins:
            return True
        return any(self.groups[above].admins.get(caller.member_id, False) for above in self.above(ident))

    def above(self, ident: int) -> Iterator[int]:
        """Ancestors of a group, nearest first."""
        parent = self.groups[ident].parent_id
        while parent is not None:
            yield parent
            parent = self.groups[parent].parent_id

    def below(self, ident: int) -> list[Group]:
        return [group for group in self.groups.values() if group.parent_id == ident]

    def check_names(self, ko_name: str | None, en_name: str | None, but: int | None = None) -> None:
        for other in self.groups.values():
            if other.ident != but and (other.ko_name == ko_name or other.en_name == en_name):
                raise Refusal(409, "a group of this name exists")

    def check_parent(self, ident: int | None, type_id: int | None, parent_id: int | None) -> None:
        """No cycle, the same hierarchical type, not too deep."""
        if parent_id is None:
            return
        parent = self.groups.get(parent_id)
        if parent is None:
            raise Refusal(400, f"parent group {parent_id} not found")
        kind = TYPES.get(type_id or 0)
        if kind is None or not kind.hierarchical:
            raise Refusal(400, "only groups of a hierarchical type have a parent")
        if parent.type_id != type_id:
            raise Refusal(400, "parent and child must be of one type")
        line = [parent_id, *self.above(parent_id)]
        if ident in line:
            raise Refusal(400, "a group cannot stand below itself")
        if len(line) + self._height(ident) > DEPTH_MAX:
            raise Refusal(400, f"groups stand at most {DEPTH_MAX} deep")

    def _height(self, ident: int | None) -> int:
        children = self.below(ident) if ident is not None else []
        return max((1 + self._height(child.ident) for child in children), default=0)

    def check_people(self, members: Iterable[int]) -> None:
        for ident in members:
            if ident not in PEOPLE:
                raise Refusal(404, f"member {ident} not found")

    def conflict(self, group: Group, member: int) -> GroupType | None:
        """The single-membership type in which the member already has a group, when this group is of it too."""
        kind = TYPES.get(group.type_id or 0)
        if kind is None or not kind.single:
            return None
        taken = any(
            other.type_id == group.type_id and member in other.members
            for other in self.groups.values()
            if other.ident != group.ident
        )
        return kind if taken else None

    def add(self, group: Group, members: Iterable[int]) -> None:
        """Append; nobody is taken out of another group, and a conflict stops it all."""
        wanted = list(members)
        self.check_people(wanted)
        for member in wanted:
            if self.conflict(group, member):
                raise Refusal(400, f"single_membership_conflict: member {member}")
        group.members.extend(member for member in wanted if member not in group.members)

    def remove(self, group: Group, members: Iterable[int], *, leaving: bool = True) -> None:
        """`leaving` False is the first half of a move, which may empty a required type for a moment."""
        wanted = list(members)
        kind = TYPES.get(group.type_id or 0)
        for member in wanted:
            if member not in group.members:
                raise Refusal(404, f"member {member} is not in group {group.ident}")
            elsewhere = any(
                other.type_id == group.type_id and member in other.members
                for other in self.groups.values()
                if other is not group
            )
            if leaving and kind and kind.required and not elsewhere:
                raise Refusal(400, f"member {member} needs a group of the required type {kind.name}")
        group.members = [member for member in group.members if member not in wanted]

    def create(self, **fields: Any) -> Group:
        group = Group(max(self.groups) + 1, **fields)
        self.groups[group.ident] = group
        return group
