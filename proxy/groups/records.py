"""What the member-group service tells, as typed values. What is not read by anything here is left out.

Readers raise `Unreadable` where a field the documentation names is missing or of another kind.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from proxy.groups.faults import Unreadable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """One group as it is read alone. Quotas are whole credits, None where there is no limit."""

    id: int
    ko_name: str
    en_name: str
    type_id: int | None
    parent_id: int | None
    group_quota: int | None
    member_quota: int | None
    admin_only: bool
    member_count: int
    is_default: bool
    sso: str | None


@dataclass(frozen=True, slots=True)
class Overview:
    """One group as the overview tells it. `id`, names, type and parent are assumed to be there."""

    id: int
    ko_name: str
    en_name: str
    type_id: int | None
    parent_id: int | None
    group_quota: int | None
    member_quota: int | None
    member_count: int
    allowed_models: int
    total_models: int
    used_month: float


@dataclass(frozen=True, slots=True)
class Named:
    """A group in the lists for everybody."""

    id: int
    ko_name: str
    en_name: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """Somebody who may be added to a group, or why not: `already_member` or `single_membership_conflict`."""

    id: int
    name: str
    email: str
    addable: bool
    reason: str | None

    @property
    def is_member(self) -> bool:
        return self.reason == "already_member"


@dataclass(frozen=True, slots=True)
class Administrator:
    id: int
    name: str
    email: str
    include_descendants: bool


@dataclass(frozen=True, slots=True)
class Agent:
    """enabled: what holds in the group; it is the tenant's default where the group has no override."""

    type: str
    enabled: bool
    tenant_default: bool


@dataclass(frozen=True, slots=True)
class ItemFailure:
    """One group of a bulk call that failed. code: `member_quota_required`, `not_enterprise`, …"""

    group_id: int
    code: str


@dataclass(frozen=True, slots=True)
class Bulk:
    """The outcome of a bulk call, over all its requests."""

    succeeded: tuple[int, ...]
    failed: tuple[ItemFailure, ...]


def group(row: Any) -> Group:
    quotas = _get(row, "quota_source", dict)
    return Group(
        **_identity(row),
        group_quota=_whole(quotas, "group_credit_quota"),
        member_quota=_whole(quotas, "member_credit_quota"),
        admin_only=_get(row, "is_visible_to_admin_only", bool),
        member_count=_get(row, "member_count", int),
        is_default=_get(row, "is_default", bool),
        sso=_maybe(row, "sso_origin_value", str),
    )


def overview(row: Any) -> Overview:
    return Overview(
        **_identity(row),
        group_quota=_whole(row, "group_credit_quota"),
        member_quota=_whole(row, "member_credit_quota"),
        member_count=_get(row, "member_count", int),
        allowed_models=_get(row, "allowed_model_count", int),
        total_models=_get(row, "total_model_count", int),
        used_month=_get(row, "credit_used_month", int, float),
    )


def named(row: Any) -> Named:
    return Named(_get(row, "id", int), _get(row, "ko_name", str), _get(row, "en_name", str))


def candidate(row: Any) -> Candidate:
    return Candidate(*_person(row), _get(row, "addable", bool), _maybe(row, "reason_code", str))


def administrator(row: Any) -> Administrator:
    return Administrator(*_person(row), _get(row, "include_descendants", bool))


def agent(row: Any) -> Agent:
    enabled, default = _maybe(row, "is_enabled", bool), _get(row, "tenant_default", bool)
    # null would be the plainest way to say that a group inherits; the documentation does not say that it is used.
    return Agent(_get(row, "agent_type", str), default if enabled is None else enabled, default)


def bulk(data: Any) -> Bulk:
    """Strict, as what failed must not be taken for done."""
    failed = each(_get(data, "failed", list), _item_failure)
    succeeded = _get(data, "succeeded", list)
    return Bulk(tuple(succeeded), tuple(failed))


def each(rows: Any, read: Callable[[Any], T]) -> list[T]:
    if not isinstance(rows, list):
        raise Unreadable(f"the service answered with {type(rows).__name__} where a list was expected")
    return [read(row) for row in rows]


def field(row: Any, name: str) -> Any:
    """A field of an object that must be there, whatever it holds."""
    if not isinstance(row, dict) or name not in row:
        raise Unreadable(f"the service answered without {name!r}")
    return row[name]


def _item_failure(row: Any) -> ItemFailure:
    return ItemFailure(_get(row, "member_group_id", int), _get(row, "code", str))


def _identity(row: Any) -> dict[str, Any]:
    return {
        "id": _get(row, "id", int),
        "ko_name": _get(row, "ko_name", str),
        "en_name": _get(row, "en_name", str),
        "type_id": _maybe(row, "member_group_type_id", int),
        "parent_id": _maybe(row, "parent_id", int),
    }


def _person(row: Any) -> tuple[int, str, str]:
    return _get(row, "id", int), _get(row, "name", str), _get(row, "email", str)


def _get(row: Any, name: str, *kinds: type) -> Any:
    value = field(row, name)
    # True is an int to Python, and no number to the service.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise Unreadable(f"the service answered with {name} = {value!r:.60}")
    return value


def _maybe(row: Any, name: str, kind: type) -> Any:
    return None if field(row, name) is None else _get(row, name, kind)


def _whole(row: Any, name: str) -> int | None:
    """A quota. One with a fraction is rounded down to what can be written back."""
    value = field(row, name)
    return None if value is None else int(_get(row, name, int, float))
