"""Every endpoint of the group service: a table of paths, and a function that answers each with its `data`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.emulator.groups.accounts import Account
from proxy.emulator.groups.paging import page_of, whole
from proxy.emulator.groups.records import AGENTS, MODEL_IDS, PERMISSIONS, Group, Refusal
from proxy.emulator.groups.tenant import Tenant
from proxy.emulator.groups.views import addable, administrator, detail, names, overview, unclassified


@dataclass(frozen=True, slots=True)
class Ask:
    """One authenticated request: whose, which group and member the path names, query and body."""

    caller: Account
    group_id: int
    member_id: int
    query: Mapping[str, str]
    body: Mapping[str, Any]


Endpoint = Callable[[Tenant, Ask], Any]


def create(tenant: Tenant, ask: Ask) -> Any:
    body = ask.body
    type_id, parent_id = body.get("member_group_type_id"), body.get("parent_id")
    _check_place(tenant, ask, parent_id)
    tenant.check_names(body["ko_name"], body["en_name"])
    tenant.check_type(type_id)
    tenant.check_parent(None, type_id, parent_id)
    group = tenant.create(
        ko_name=body["ko_name"],
        en_name=body["en_name"],
        type_id=type_id,
        parent_id=parent_id,
        group_quota=body.get("group_credit_quota"),
        member_quota=body.get("member_credit_quota"),
        hidden=body.get("is_visible_to_admin_only", False),
    )
    return detail(tenant, group)


def read(tenant: Tenant, ask: Ask) -> Any:
    if ask.group_id == 0:
        return unclassified(tenant, whole(ask.query.get("member_group_type_id")))
    return detail(tenant, tenant.group(ask.group_id, ask.caller))


def change(tenant: Tenant, ask: Ask) -> Any:
    """Only what is in the body is changed; null clears a quota and leaves a name as it is."""
    group, body = tenant.group(ask.group_id, ask.caller), ask.body
    tenant.check_names(body.get("ko_name"), body.get("en_name"), but=group.ident)
    if (type_id := body.get("member_group_type_id")) is not None:
        tenant.check_type(type_id)
        if type_id != group.type_id and (group.parent_id is not None or tenant.below(group.ident)):
            raise Refusal(400, "a group inside a tree keeps its type")
        group.type_id = type_id
    tenant.rename(group, body.get("ko_name"), body.get("en_name"))
    group.group_quota = body.get("credit_quota", group.group_quota)
    group.member_quota = body.get("member_credit_quota", group.member_quota)
    if body.get("is_visible_to_admin_only") is not None:
        group.hidden = body["is_visible_to_admin_only"]
    return detail(tenant, group)


def delete(tenant: Tenant, ask: Ask) -> Any:
    tenant.delete(tenant.group(ask.group_id, ask.caller))


def move(tenant: Tenant, ask: Ask) -> Any:
    group = tenant.group(ask.group_id, ask.caller)
    _check_place(tenant, ask, ask.body["parent_id"])
    tenant.move(group, ask.body["parent_id"])


def add_members(tenant: Tenant, ask: Ask) -> Any:
    tenant.add(tenant.group(ask.group_id, ask.caller), ask.body["member_ids"])


def remove_member(tenant: Tenant, ask: Ask) -> Any:
    tenant.remove(tenant.group(ask.group_id, ask.caller), [ask.member_id])


def remove_members(tenant: Tenant, ask: Ask) -> Any:
    tenant.remove(tenant.group(ask.group_id, ask.caller), ask.body["member_ids"])


def move_members(tenant: Tenant, ask: Ask) -> Any:
    source = tenant.group(ask.group_id, ask.caller)
    target = tenant.group(ask.body["target_member_group_id"], ask.caller)
    tenant.move_members(source, target, ask.body["member_ids"], apply_quota=ask.body.get("apply_quota", False))


def addable_members(tenant: Tenant, ask: Ask) -> Any:
    group, wanted = tenant.group(ask.group_id, ask.caller), ask.query.get("search", "").lower()
    found = [row for row in tenant.people.values() if wanted in row.name.lower() or wanted in row.email.lower()]
    return [addable(tenant, group, person) for person in found]


def list_admins(tenant: Tenant, ask: Ask) -> Any:
    group = tenant.group(ask.group_id, ask.caller)
    return {"admins": [administrator(tenant.people[member], included) for member, included in group.admins.items()]}


def designate(tenant: Tenant, ask: Ask) -> Any:
    group, member, below = (
        tenant.group(ask.group_id, ask.caller),
        ask.body["member_id"],
        ask.body.get("include_descendants"),
    )
    if below is not None and not ask.caller.master:
        raise Refusal(403, "only a master administrator includes the groups below")
    tenant.check_people([member])
    if member not in group.members:
        raise Refusal(400, f"member {member} does not belong to the group")
    group.admins[member] = group.admins.get(member, False) if below is None else below


def dismiss(tenant: Tenant, ask: Ask) -> Any:
    group = tenant.group(ask.group_id, ask.caller)
    if group.admins.pop(ask.member_id, None) is None:
        raise Refusal(404, f"member {ask.member_id} is no administrator of the group")


def bulk_credit_limit(tenant: Tenant, ask: Ask) -> Any:
    def apply(group: Group) -> str | None:
        if not tenant.enterprise:
            return "not_enterprise"
        if group.member_quota is None:
            return "member_quota_required"
        group.group_quota = ask.body["group_credit_quota"]
        return None

    return _bulk(tenant, ask, apply)


def bulk_model_permissions(tenant: Tenant, ask: Ask) -> Any:
    wanted = {row["llm_model_id"]: row["is_available"] for row in ask.body["model_permissions"]}
    for ident in wanted:
        if ident not in MODEL_IDS:
            raise Refusal(400, f"model {ident} is not usable for the tenant")

    def apply(group: Group) -> str | None:
        group.models.update(wanted)
        return None

    return _bulk(tenant, ask, apply)


def usage_overview(tenant: Tenant, ask: Ask) -> Any:
    mine = (group for group in tenant.groups.values() if tenant.manages(ask.caller, group.ident))
    return page_of(mine, ask.query, lambda group: overview(tenant, group))


def list_all(tenant: Tenant, ask: Ask) -> Any:
    """For everybody who is logged in: the groups that are not hidden."""
    return page_of((group for group in tenant.groups.values() if not group.hidden), ask.query, _named)


def list_managed(tenant: Tenant, ask: Ask) -> Any:
    """For everybody who is logged in: the groups they manage."""
    mine = (group for group in tenant.groups.values() if tenant.manages(ask.caller, group.ident))
    return page_of(mine, ask.query, _named)


def read_agents(tenant: Tenant, ask: Ask) -> Any:
    own = tenant.group(ask.group_id, ask.caller).agents
    return [
        {"agent_type": name, "is_enabled": own.get(name, default), "tenant_default": default}
        for name, default in AGENTS.items()
    ]


def change_agent(tenant: Tenant, ask: Ask) -> Any:
    name, wanted = ask.body["agent_type"], ask.body["is_enabled"]
    if name not in AGENTS:
        raise Refusal(400, f"there is no agent {name}")
    own = tenant.group(ask.group_id, ask.caller).agents
    own.pop(name, None)
    if wanted is not None:
        own[name] = wanted
    return read_agents(tenant, ask)


def read_permissions(tenant: Tenant, ask: Ask) -> Any:
    group = tenant.group(ask.group_id, _master(ask))
    return {"permissions": {name: group.permissions.get(name) for name in PERMISSIONS}}


def change_permissions(tenant: Tenant, ask: Ask) -> Any:
    """True allows, false blocks, null inherits."""
    group = tenant.group(ask.group_id, _master(ask))
    for name, wanted in ask.body["permissions"].items():
        if name not in PERMISSIONS or not isinstance(wanted, bool | None):
            raise Refusal(400, f"permission {name} must be a known name with true, false or null")
        group.permissions.pop(name, None)
        if wanted is not None:
            group.permissions[name] = wanted
    return read_permissions(tenant, ask)


def _bulk(tenant: Tenant, ask: Ask, apply: Callable[[Group], str | None]) -> Any:
    """Partial success: each group succeeds, or fails with its code."""
    done: dict[str, list[Any]] = {"succeeded": [], "failed": []}
    for ident in ask.body["member_group_ids"]:
        try:
            code = apply(tenant.group(ident, ask.caller))
        except Refusal as refusal:
            code = "not_found" if refusal.status == 404 else "forbidden"
        if code is None:
            done["succeeded"].append(ident)
        else:
            done["failed"].append({"member_group_id": ident, "code": code})
    return done


def _master(ask: Ask) -> Account:
    if not ask.caller.master:
        raise Refusal(403, "only a master administrator may do this")
    return ask.caller


def _check_place(tenant: Tenant, ask: Ask, parent_id: int | None) -> None:
    """Where a group may be put: below one the caller manages; at the root by a master administrator only."""
    if parent_id is None and not ask.caller.master:
        raise Refusal(403, "only a master administrator puts groups at the root")
    if parent_id in tenant.groups:
        tenant.group(parent_id, ask.caller)


def _named(group: Group) -> dict[str, Any]:
    return {"id": group.ident, **names(group)}
