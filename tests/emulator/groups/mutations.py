"""Ways to break the group service, one row at a time; the form is that of `tests/emulator/mutations.py`."""

from dataclasses import replace

from proxy.emulator.groups.accounts import ACCOUNTS
from proxy.emulator.groups.records import Refusal
from proxy.emulator.groups.service import _administrator
from proxy.emulator.shapes import Shape
from tests.emulator.mutations import Mutation, after, always, becomes, more, optional


def refused(status):
    """A rule that says no with another status."""

    def change(old):
        def rule(*args, **names):
            try:
                return old(*args, **names)
            except Refusal as refusal:
                raise Refusal(status, refusal.message) from None

        return rule

    return change


def without(name):
    return after(lambda row: {key: value for key, value in row.items() if key != name})


def as_account(name):
    return always((ACCOUNTS[name], False))


def in_scope(old):
    return lambda self, ident, caller: self.groups[ident]


def forgetting_quota(old):
    return lambda self, source, target, members, apply_quota: old(self, source, target, members, apply_quota=False)


def removing_one_by_one(old):
    return lambda self, group, members: [old(self, group, [member]) for member in members]


def taking_half(old):
    def add(self, group, members):
        for member in members:
            old(self, group, [member])

    return add


def first_word(old):
    """Permissions of the group a member came to first decide."""
    return lambda self, member, permission, own=None: next(
        (
            self.groups[ident].permissions[permission]
            for ident in self._places[member]
            if permission in self.groups[ident].permissions
        ),
        True,
    )


def deaf_to_members(old):
    return lambda self, member, permission, own=None: old(self, member, permission)


def unfiltered(name):
    return lambda old: lambda group, query: old(group, {key: value for key, value in query.items() if key != name})


def filling(old):
    """Fields that are not in the body count as null."""
    return lambda tenant, ask: old(tenant, replace(ask, body={"credit_quota": None, **ask.body}))


def dropping_nulls(old):
    def change(tenant, ask):
        return old(tenant, replace(ask, body={name: value for name, value in ask.body.items() if value is not None}))

    return change


def limiting_members(old):
    def limit(tenant, ask):
        for group in tenant.groups.values():
            group.member_quota = group.member_quota or 1
        return old(tenant, ask)

    return limit


# fmt: off
ROWS = [
    ("envelope",            "service:GroupService._data",                          after(lambda value: {"result": value})),
    ("path",                "service:PREFIX",                                      becomes("/v1/gateway/member-groups/")),
    ("path",                "routes:ROUTES[GET {group}/].path",                    becomes("{group}")),
    ("body",                "service:_body",                                       refused(422)),
    ("no-gateway-key",      "service:GroupService._account",                       as_account("master")),
    ("token",               "accounts:_signature",                                 always("")),
    ("token-expired",       "service:account_of",                                  lambda old: lambda token, now_s: old(token, 0)),
    ("session",             "service:SAFE",                                        becomes(("GET", "PATCH"))),
    ("session",             "service:SESSIONS",                                    becomes({})),
    ("active",              "service:_administrator",                              always(None)),
    ("administrator",       "accounts:ACCOUNTS[member].administrator",             becomes(True)),
    ("delegate",            "tenant:Tenant.manages",                               always(True)),
    ("delegate-below",      "tenant:Tenant.above",                                 always(())),
    ("delegate-below",      "endpoints:_check_place",                              always(None)),
    ("tenants",             "accounts:ACCOUNTS[south].tenant",                     becomes("north")),
    ("lists",               "service:_anybody",                                    becomes(_administrator)),
    ("lists",               "service:LISTS_PREFIX",                                becomes("/v1/elsewhere/")),
    ("create",              "endpoints:detail",                                    without("quota_source")),
    ("create-defaults",     "routes:ROUTES[POST ].solid",                          becomes(frozenset())),
    ("create-names",        "routes:ROUTES[POST ].fields",                         optional),
    ("duplicate",           "tenant:Tenant.check_names",                           always(None)),
    ("duplicate",           "tenant:Tenant.check_names",                           refused(400)),
    ("create-tree",         "tenant:Tenant.check_parent",                          always(None)),
    ("create-tree",         "tenant:Tenant.check_type",                            always(None)),
    ("read",                "endpoints:detail",                                    without("group_member_stats")),
    ("read",                "tenant:Tenant.group",                                 refused(400)),
    ("unclassified",        "tenant:Tenant.placed",                                always(set())),
    ("change",              "routes:ROUTES[PATCH {group}/].answer",                filling),
    ("change-null",         "routes:ROUTES[PATCH {group}/].answer",                dropping_nulls),
    ("change-whole",        "routes:CHANGE[credit_quota].shape",                   becomes(Shape.NUMBER)),
    ("change-whole",        "routes:CHANGE[member_credit_quota].shape",            becomes(Shape.NUMBER)),
    ("change-type",         "tenant:Tenant.check_type",                            always(None)),
    ("delete",              "tenant:Tenant.delete",                                always(None)),
    ("delete-sso",          "tenant:first_groups",                                 after(lambda groups: [replace(group, sso=None) for group in groups])),
    ("delete-required",     "records:TYPES[2].required",                           becomes(False)),
    ("delete-children",     "tenant:Tenant.below",                                 always([])),
    ("parent",              "tenant:Tenant.move",                                  always(None)),
    ("parent",              "routes:ROUTES[PATCH {group}/parent/].nulls",          becomes(frozenset())),
    ("parent-cycle",        "tenant:Tenant.check_parent",                          always(None)),
    ("parent-type",         "tenant:Tenant.check_parent",                          always(None)),
    ("parent-hierarchical", "records:TYPES[3].hierarchical",                       becomes(True)),
    ("parent-depth",        "tenant:DEPTH_MAX",                                    more(1)),
    ("parent-depth",        "tenant:DEPTH_MAX",                                    more(-1)),
    ("parent-depth",        "tenant:Tenant._height",                               always(0)),
    ("add",                 "tenant:Tenant.add",                                   always(None)),
    ("add",                 "tenant:Tenant.check_people",                          always(None)),
    ("member-ids",          "routes:ROUTES[POST {group}/members/].counts",         becomes(())),
    ("member-ids",          "routes:ROUTES[POST {group}/members/move/].counts",    becomes(())),
    ("member-ids",          "routes:ROUTES[POST {group}/members/remove-bulk/].counts", becomes(())),
    ("single",              "records:TYPES[3].single",                             becomes(False)),
    ("remove",              "tenant:Tenant.remove",                                always(None)),
    ("remove-bulk",         "tenant:Tenant.remove",                                removing_one_by_one),
    ("required",            "records:TYPES[2].required",                           becomes(False)),
    ("move",                "tenant:Tenant.move_members",                          always(None)),
    ("move-single",         "tenant:Tenant._elsewhere",                            always(True)),
    ("move-whole",          "tenant:Tenant.add",                                   taking_half),
    ("move-quota",          "tenant:Tenant.move_members",                          forgetting_quota),
    ("move-quota",          "routes:ROUTES[POST {group}/members/move/].solid",     becomes(frozenset())),
    ("addable",             "records:Person.email",                                becomes(property(lambda self: ""))),
    ("addable-reasons",     "tenant:Tenant.conflict",                              always(None)),
    ("admins",              "endpoints:administrator",                             without("created_at")),
    ("admins-belong",       "tenant:Tenant.check_people",                          always(None)),
    ("admins-id",           "routes:ROUTES[POST {group}/admins/].above_0",         becomes(frozenset())),
    ("admins-below",        "accounts:ACCOUNTS[delegate].master",                  becomes(True)),
    ("admins-scope",        "tenant:Tenant.manages",                               always(True)),
    ("bulk-credit",         "routes:ROUTES[PATCH bulk/credit-limit/].nulls",       becomes(frozenset())),
    ("bulk-credit",         "tenant:Tenant.group",                                 refused(404)),
    ("bulk-credit-member",  "routes:ROUTES[PATCH bulk/credit-limit/].answer",      limiting_members),
    ("bulk-credit-plan",    "endpoints:_bulk",                                     after(lambda done: {**done, "failed": []})),
    ("bulk-500",            "routes:ROUTES[PATCH bulk/credit-limit/].counts",      becomes((("member_group_ids", 501),))),
    ("bulk-500",            "routes:ROUTES[PATCH bulk/model-permissions/].counts", becomes((("member_group_ids", 499),))),
    ("bulk-models",         "views:MODEL_IDS",                                     becomes(range(19))),
    ("bulk-models-known",   "endpoints:MODEL_IDS",                                 becomes(range(1000))),
    ("bulk-models-known",   "routes:ROUTES[PATCH bulk/model-permissions/].counts", becomes((("member_group_ids", 500),))),
    ("agents",              "endpoints:AGENTS",                                    becomes({"korea_in_data": True})),
    ("agents-known",        "endpoints:AGENTS",                                    lambda agents: {**agents, "nobody": True}),
    ("agents-known",        "routes:ROUTES[PATCH {group}/agents/].fields",         optional),
    ("permissions",         "endpoints:PERMISSIONS",                               lambda names: {**names, "flying": True}),
    ("permissions-master",  "endpoints:_master",                                   lambda old: lambda ask: ask.caller),
    ("permissions-or",      "tenant:Tenant.permitted",                             first_word),
    ("permissions-rank",    "tenant:Tenant.permitted",                             deaf_to_members),
    ("permissions-rank",    "tenant:PERMISSIONS",                                  lambda names: dict.fromkeys(names, True)),
    ("overview",            "endpoints:overview",                                  without("credit_projected_month")),
    ("overview-named",      "endpoints:overview",                                  without("parent_id")),
    ("overview-scope",      "tenant:Tenant.manages",                               always(True)),
    ("overview-type",       "paging:_fits",                                        unfiltered("member_group_type_id")),
    ("overview-parent",     "paging:_fits",                                        unfiltered("parent_id")),
    ("overview-search",     "paging:_fits",                                        unfiltered("search_term")),
    ("overview-order",      "paging:ORDERS",                                       lambda orders: {**orders, "colour": orders["name"]}),
    ("overview-order",      "paging:ORDERS",                                       lambda orders: {**orders, "utilization": orders["name"]}),
    ("overview-pages",      "paging:_from_1",                                      lambda old: lambda query, name, default: 1 if name == "page" else old(query, name, default)),
    ("overview-defaults",   "paging:SIZE_DEFAULT",                                 more(1)),
    ("overview-defaults",   "paging:SIZE_DEFAULT",                                 more(-1)),
    ("overview-defaults",   "paging:PAGE_DEFAULT",                                 more(1)),
    ("list-all",            "endpoints:_named",                                    always({"id": 0})),
    ("list-managed",        "tenant:Tenant.manages",                               always(True)),
]
# fmt: on

MUTATIONS = [Mutation(fact, f"groups.{target}", change) for fact, target, change in ROWS]
