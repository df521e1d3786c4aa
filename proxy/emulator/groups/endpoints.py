"""Every endpoint of the group service: a table of paths, and a function that answers each with its `data`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from proxy.emulator.groups.tenant import AGENTS, MODEL_IDS, PEOPLE, PERMISSIONS, TYPES, Account, Group, Refusal, Tenant
from proxy.emulator.groups.views import addable, administrator, detail, overview, unclassified

PAGE_SIZE_DEFAULT: Final = 100


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
    if not ask.caller.master and body.get("parent_id") is None:
        raise Refusal(403, "only a master administrator creates groups at the root")
    if body.get("parent_id") in tenant.groups:
        tenant.group(body["parent_id"], ask.caller)
    tenant.check_names(body["ko_name"], body["en_name"])
    type_id, parent_id = body.get("member_group_type_id"), body.get("parent_id")
    _check_type(type_id)
    tenant.check_parent(None, type_id, parent_id)
    group = tenant.create(
        ko_name=body["ko_name"],
        en_name=body["en_name"],
        type_id=type_id,
        parent_id=parent_id,
        group_quota=body.get("group_credit_quota"),
        member_quota=body.get("member_credit_quota"),
        hidden=bool(body.get("is_visible_to_admin_only")),
    )
    return detail(tenant, group)


def read(tenant: Tenant, ask: Ask) -> Any:
    if ask.group_id == 0:
        return unclassified(tenant, _whole(ask.query.get("member_group_type_id")))
    return detail(tenant, tenant.group(ask.group_id, ask.caller))


def change(tenant: Tenant, ask: Ask) -> Any:
    """Only what is in the body is changed; null clears a quota and leaves a name as it is."""
    group, body = tenant.group(ask.group_id, ask.caller), ask.body
    tenant.check_names(body.get("ko_name"), body.get("en_name"), but=group.ident)
    if (type_id := body.get("member_group_type_id")) is not None:
        _check_type(type_id)
        if type_id != group.type_id and (group.parent_id is not None or tenant.below(group.ident)):
            raise Refusal(400, "a group inside a tree keeps its type")
        group.type_id = type_id
    group.ko_name = body.get("ko_name") or group.ko_name
    group.en_name = body.get("en_name") or group.en_name
    group.group_quota = body.get("credit_quota", group.group_quota)
    group.member_quota = body.get("member_credit_quota", group.member_quota)
    if body.get("is_visible_to_admin_only") is not None:
        group.hidden = body["is_visible_to_admin_only"]
    return detail(tenant, group)


def delete(tenant: Tenant, ask: Ask) -> Any:
    group = tenant.group(ask.group_id, ask.caller)
    kind = TYPES.get(group.type_id or 0)
    if group.sso is not None:
        raise Refusal(400, "a group linked to SSO cannot be deleted")
    if kind and kind.required:
        raise Refusal(400, "a group of a required type cannot be deleted")
    if tenant.below(group.ident):
        raise Refusal(400, "move the groups below it first")
    del tenant.groups[group.ident]


def move(tenant: Tenant, ask: Ask) -> Any:
    group = tenant.group(ask.group_id, ask.caller)
    tenant.check_parent(group.ident, group.type_id, ask.body["parent_id"])
    group.parent_id = ask.body["parent_id"]


def add_members(tenant: Tenant, ask: Ask) -> Any:
    tenant.add(tenant.group(ask.group_id, ask.caller), ask.body["member_ids"])


def remove_member(tenant: Tenant, ask: Ask) -> Any:
    tenant.remove(tenant.group(ask.group_id, ask.caller), [ask.member_id])


def remove_members(tenant: Tenant, ask: Ask) -> Any:
    tenant.remove(tenant.group(ask.group_id, ask.caller), ask.body["member_ids"])


def move_members(tenant: Tenant, ask: Ask) -> Any:
    source = tenant.group(ask.group_id, ask.caller)
    target = tenant.group(ask.body["target_member_group_id"], ask.caller)
    members, before = ask.body["member_ids"], list(source.members)
    tenant.remove(source, members, leaving=source.type_id != target.type_id)
    try:
        tenant.add(target, members)
    except Refusal:
        source.members = before
        raise


def addable_members(tenant: Tenant, ask: Ask) -> Any:
    group, wanted = tenant.group(ask.group_id, ask.caller), ask.query.get("search", "").lower()
    found = [person for person in PEOPLE.values() if wanted in person.name.lower() or wanted in person.email.lower()]
    return [addable(tenant, group, person) for person in found]


def list_admins(tenant: Tenant, ask: Ask) -> Any:
    group = tenant.group(ask.group_id, ask.caller)
    return {"admins": [administrator(member, included) for member, included in group.admins.items()]}


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
    query = ask.query
    page, size = _whole(query.get("page")) or 1, _whole(query.get("size")) or PAGE_SIZE_DEFAULT
    rows = [overview(tenant, group) for group in tenant.groups.values() if tenant.manages(ask.caller, group.ident)]
    for name in ("member_group_type_id", "parent_id"):
        if name in query:
            rows = [row for row in rows if row[name] == _whole(query[name])]
    term = query.get("search_term", "").lower()
    rows = [row for row in rows if term in row["ko_name"] or term in row["en_name"].lower()]
    order, _, direction = query.get("order_by", "name.asc").partition(".")
    keys: dict[str, Callable[[dict[str, Any]], Any]] = {
        "name": lambda row: row["en_name"],
        "credit_used_month": lambda row: row["credit_used_month"],
        "utilization": lambda row: row["credit_used_month"] / (row["group_credit_quota"] or 1e18),
    }
    if order not in keys or direction not in ("asc", "desc"):
        raise Refusal(400, f"order_by must be one of {', '.join(keys)} with .asc or .desc")
    rows.sort(key=keys[order], reverse=direction == "desc")
    pages = {"page": page, "total_pages": -(-len(rows) // size), "total_items": len(rows)}
    return {"results": rows[(page - 1) * size : page * size], "pagination": pages}


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


def _check_type(type_id: int | None) -> None:
    if type_id is not None and type_id not in TYPES:
        raise Refusal(400, f"group type {type_id} not found")


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise Refusal(400, f"{text!r} is not an integer") from None
