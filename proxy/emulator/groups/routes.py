"""Every path of the group service, as a table: method, path after the prefix, who answers, and the body's fields."""

from dataclasses import dataclass
from typing import Final

from proxy.emulator.groups import endpoints
from proxy.emulator.groups.endpoints import Endpoint
from proxy.emulator.shapes import Field, Shape

BULK_MAX: Final = 500
"""Groups in one bulk request."""


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint; `counts` names the arrays that hold 1 to so many items."""

    method: str
    path: str
    answer: Endpoint
    fields: tuple[Field, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    nulls: frozenset[str] = frozenset()
    """Required fields that may be null."""
    solid: frozenset[str] = frozenset()
    """Optional fields that may not be null."""
    above_0: frozenset[str] = frozenset()
    """Numbers that must be greater than 0."""

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


_NAMES: Final = (Field("ko_name", Shape.STRING, required=True), Field("en_name", Shape.STRING, required=True))
_IDS: Final = Field("member_ids", Shape.ARRAY, required=True, each=Shape.INTEGER)
_GROUPS: Final = Field("member_group_ids", Shape.ARRAY, required=True, each=Shape.INTEGER)
_MANY: Final = 1_000_000

# fmt: off
CREATE: Final = (
    *_NAMES,
    Field("member_group_type_id", Shape.INTEGER), Field("member_credit_quota", Shape.NUMBER),
    Field("group_credit_quota", Shape.NUMBER),    Field("is_visible_to_admin_only", Shape.BOOLEAN),
    Field("parent_id", Shape.INTEGER),
)
CHANGE: Final = (
    Field("ko_name", Shape.STRING),               Field("en_name", Shape.STRING),
    Field("credit_quota", Shape.INTEGER),         Field("member_credit_quota", Shape.INTEGER),
    Field("member_group_type_id", Shape.INTEGER), Field("is_visible_to_admin_only", Shape.BOOLEAN),
)
MOVE: Final = (_IDS, Field("target_member_group_id", Shape.INTEGER, required=True), Field("apply_quota", Shape.BOOLEAN))
ADMIN: Final = (Field("member_id", Shape.INTEGER, required=True), Field("include_descendants", Shape.BOOLEAN))
MODELS: Final = (
    Field("llm_model_id", Shape.INTEGER, required=True),
    Field("is_available", Shape.BOOLEAN, required=True),
)
PARENT: Final = (Field("parent_id", Shape.INTEGER, required=True),)
CREDIT: Final = (_GROUPS, Field("group_credit_quota", Shape.INTEGER, required=True))
PERMIT: Final = (_GROUPS, Field("model_permissions", Shape.ARRAY, required=True, inside=MODELS))
AGENT: Final = (Field("agent_type", Shape.STRING, required=True), Field("is_enabled", Shape.BOOLEAN, required=True))
TOGGLES: Final = (Field("permissions", Shape.OBJECT, required=True),)

_ONE_MEMBER: Final = (("member_ids", _MANY),)
_BULK: Final = (("member_group_ids", BULK_MAX),)
_BULK_MODELS: Final = (*_BULK, ("model_permissions", _MANY))
_QUOTA: Final = frozenset({"group_credit_quota"})
_PARENT: Final = frozenset({"parent_id"})
_ENABLED: Final = frozenset({"is_enabled"})
_HIDDEN: Final = frozenset({"is_visible_to_admin_only"})
_TYPE: Final = frozenset({"member_group_type_id"})
_MEMBER: Final = frozenset({"member_id"})
_APPLY: Final = frozenset({"apply_quota"})

ROUTES: Final = (
    Route("POST",   "",                                endpoints.create,                 CREATE, solid=_HIDDEN),
    Route("GET",    "usage-overview/",                 endpoints.usage_overview),
    Route("PATCH",  "bulk/credit-limit/",              endpoints.bulk_credit_limit,      CREDIT, _BULK, _QUOTA),
    Route("PATCH",  "bulk/model-permissions/",         endpoints.bulk_model_permissions, PERMIT, _BULK_MODELS),
    Route("GET",    "{group}/",                        endpoints.read),
    Route("PATCH",  "{group}/",                        endpoints.change,                 CHANGE, solid=_TYPE),
    Route("DELETE", "{group}/",                        endpoints.delete),
    Route("PATCH",  "{group}/parent/",                 endpoints.move,                   PARENT, nulls=_PARENT),
    Route("POST",   "{group}/members/",                endpoints.add_members,            (_IDS,), _ONE_MEMBER),
    Route("DELETE", "{group}/members/{member}/",       endpoints.remove_member),
    Route("POST",   "{group}/members/remove-bulk/",    endpoints.remove_members,         (_IDS,), _ONE_MEMBER),
    Route("POST",   "{group}/members/move/",           endpoints.move_members,           MOVE,    _ONE_MEMBER, solid=_APPLY),
    Route("GET",    "{group}/addable-members/",        endpoints.addable_members),
    Route("GET",    "{group}/admins/",                 endpoints.list_admins),
    Route("POST",   "{group}/admins/",                 endpoints.designate,              ADMIN, above_0=_MEMBER),
    Route("DELETE", "{group}/admins/{member}/",        endpoints.dismiss),
    Route("GET",    "{group}/agents/",                 endpoints.read_agents),
    Route("PATCH",  "{group}/agents/",                 endpoints.change_agent,           AGENT, nulls=_ENABLED),
    Route("GET",    "{group}/permission-set/",         endpoints.read_permissions),
    Route("PATCH",  "{group}/permission-set/",         endpoints.change_permissions,     TOGGLES),
)
"""Paths after `/v1/admin/member-groups/`, for administrators."""

LISTS: Final = (
    Route("GET",    "",                                endpoints.list_all),
    Route("GET",    "managed/",                        endpoints.list_managed),
)
"""Paths after `/v1/member-groups/`, for everybody with a login."""
# fmt: on
