"""How the group service shows what it knows: the documented fields, and figures that never change."""

from typing import Any

from proxy.emulator.assumptions import CREATED_TEXT
from proxy.emulator.groups.records import MODEL_IDS, Group, Person
from proxy.emulator.groups.tenant import Tenant
from proxy.emulator.words import Dice


def detail(tenant: Tenant, group: Group) -> dict[str, Any]:
    used = used_month(group)
    return {
        "id": group.ident,
        **names(group),
        "is_default": group.is_default,
        "member_count": len(group.members),
        "is_visible_to_admin_only": group.hidden,
        "sso_origin_value": group.sso,
        "member_group_type_id": group.type_id,
        "parent_id": group.parent_id,
        "depth": len(list(tenant.above(group.ident))) if group.ident else 0,
        "quota_source": {"group_credit_quota": group.group_quota, "member_credit_quota": group.member_quota},
        "group_member_stats": {
            "credit_used_30d": used * 2,
            "credit_used_month": used,
            "total_members": len(group.members),
        },
    }


def unclassified(tenant: Tenant, type_id: int | None) -> dict[str, Any]:
    """The pseudo-group 0: members without a group, of that type where one is asked for."""
    placed = tenant.placed(type_id)
    left = dict.fromkeys(member for member in tenant.people if member not in placed)
    return detail(tenant, Group(0, "미분류", "Unclassified", type_id, members=left))


def overview(tenant: Tenant, group: Group) -> dict[str, Any]:
    used = used_month(group)
    above = [tenant.groups[ident] for ident in tenant.above(group.ident)]
    return {
        "id": group.ident,
        **names(group),
        "member_group_type_id": group.type_id,
        "parent_id": group.parent_id,
        "member_count": len(group.members),
        "group_credit_quota": group.group_quota,
        "member_credit_quota": group.member_quota,
        "credit_used_month": used,
        "credit_used_30d": used * 2,
        "credit_projected_month": used * 3,
        "credit_used_weekly": [used // 4] * 4,
        "ancestors": [{"id": ancestor.ident, **names(ancestor)} for ancestor in reversed(above)],
        "allowed_model_count": len(MODEL_IDS) - sum(not allowed for allowed in group.models.values()),
        "total_model_count": len(MODEL_IDS),
    }


def addable(tenant: Tenant, group: Group, person: Person) -> dict[str, Any]:
    kind = tenant.conflict(group, person.ident)
    reason = None
    if person.ident in group.members:
        reason = "already_member"
    elif kind:
        reason = "single_membership_conflict"
    conflict = {"id": kind.ident, "name": kind.name} if kind and reason == "single_membership_conflict" else None
    shown = {"id": person.ident, "name": person.name, "email": person.email}
    return {**shown, "addable": reason is None, "reason_code": reason, "conflict_type": conflict}


def administrator(person: Person, included: bool) -> dict[str, Any]:
    shown = {"id": person.ident, "name": person.name, "email": person.email}
    return {**shown, "created_at": CREATED_TEXT, "include_descendants": included}


def used_month(group: Group) -> int:
    """Credits used this month: some number that belongs to the group."""
    return Dice("group usage", group.ident).below(1000)


def utilization(group: Group) -> float:
    """Used this month over the group's limit; nothing where there is none."""
    return used_month(group) / group.group_quota if group.group_quota else 0.0


def names(group: Group) -> dict[str, Any]:
    both = {"ko": group.ko_name, "en": group.en_name}
    return {"ko_name": group.ko_name, "en_name": group.en_name, "name_i18n": both}
