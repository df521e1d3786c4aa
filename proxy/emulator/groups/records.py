"""What a tenant is made of, and what every tenant starts with: types, people, agents, permissions and a few groups."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


class Refusal(Exception):
    """A rule turned the request away."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


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
    """members are in the order they came. admins: administrator to whether the groups below are included."""

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
    members: dict[int, None] = field(default_factory=dict)
    admins: dict[int, bool] = field(default_factory=dict)
    agents: dict[str, bool] = field(default_factory=dict)
    permissions: dict[str, bool] = field(default_factory=dict)
    models: dict[int, bool] = field(default_factory=dict)


DEPTH_MAX: Final = 4
"""Deepest place in the tree; the root is 0."""

# fmt: off
TYPES: Final[Mapping[int, GroupType]] = {row.ident: row for row in (
    GroupType(1, "department", hierarchical=True),
    GroupType(2, "campus", required=True),
    GroupType(3, "course", single=True),
    GroupType(4, "division", hierarchical=True),
)}
AGENTS: Final[Mapping[str, bool]] = {"law_in_data": True, "korea_in_data": False, "univ_in_data": True}
"""Agents and the tenant's default of each."""

PERMISSIONS: Final[Mapping[str, bool]] = {"image_generation": True, "video_generation": False, "file_upload": True}
"""Feature permissions and the tenant's own answer for each."""

MODEL_IDS: Final = range(1, 21)
"""Models exposed and usable for a tenant."""

NORTH: Final = "north"
SOUTH: Final = "south"
PEOPLE: Final[Mapping[str, tuple[Person, ...]]] = {
    NORTH: (
        Person(101, "Ada",   "ada@example.org"),
        Person(102, "Bora",  "bora@example.org"),
        Person(103, "Chan",  "chan@example.org"),
        Person(104, "Dana",  "dana@example.org"),
        Person(105, "Eunji", "eunji@example.org"),
    ),
    SOUTH: (Person(201, "Farid", "farid@example.net"),),
}
# fmt: on


def first_groups(tenant: str) -> list[Group]:
    """The groups of a new tenant. Ids are counted over all tenants, so that one's id means nothing to another."""
    if tenant == SOUTH:
        return [Group(101, "기본", "Default", type_id=1, is_default=True, members={201: None})]
    return [
        Group(1, "기본", "Default", is_default=True, members=dict.fromkeys([101, 102, 103, 104, 105])),
        Group(2, "공학부", "Engineering", 1, None, 5000, 100, members={102: None}, admins={102: True}),
        Group(3, "전산과", "Computing", 1, 2, members={103: None}),
        Group(4, "서울", "Seoul", 2, members={104: None}),
        Group(5, "수문학", "Hydrology", 3, members={103: None}),
        Group(6, "본부", "Office", sso="office"),
    ]
