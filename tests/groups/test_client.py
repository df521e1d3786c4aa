import orjson
import pytest

from proxy.emulator.groups.routes import LISTS, ROUTES
from proxy.groups.client import in_parts
from proxy.groups.faults import Conflict, NotFound, NotPermitted, RuleBroken
from proxy.groups.records import Bulk, ItemFailure
from tests.groups.services import client_of, targets

NEW = {"ko_name": "새", "en_name": "New"}


async def walk(client):
    """Every operation once."""
    made = await client.create({**NEW, "member_group_type_id": 1, "parent_id": 2, "member_credit_quota": 4})
    await client.change(made.id, {"credit_quota": 9, "is_visible_to_admin_only": True})
    await client.move(made.id, None)
    await client.add_members(made.id, [101, 102, 103])
    await client.remove_member(made.id, 101)
    await client.remove_members(made.id, [102])
    await client.move_members(3, made.id, [103], apply_quota=True)
    await client.addable_members(made.id, "bora")
    await client.designate(made.id, 103, include_descendants=True)
    await client.administrators(made.id)
    await client.dismiss(made.id, 103)
    await client.set_credit_limits([made.id], None)
    await client.set_models([made.id], {5: False})
    [row async for row in client.overview()]
    await client.set_agent(made.id, "law_in_data", False)
    await client.agents(made.id)
    await client.set_permissions(made.id, {"permissions": {"file_upload": False}})
    await client.permissions(made.id)
    await client.read(made.id)
    await client.delete(made.id)
    [row async for row in client.all_groups()]
    [row async for row in client.managed_groups()]


async def test_every_operation_of_the_service_is_offered(service, client):
    await walk(client)
    assert {seen.status for seen in service.journal} == {200}
    asked = {(seen.method, seen.target.partition("?")[0]) for seen in service.journal}
    tables = (("/v1/admin/member-groups/", ROUTES), ("/v1/member-groups/", LISTS))
    offered = {
        (route.method, prefix + route.path.replace("{group}", "G").replace("{member}", "M"))
        for prefix, routes in tables
        for route in routes
    }
    assert {(method, plain(path)) for method, path in asked} == offered


def plain(path):
    """A path with the ids of a group and a member taken out."""
    steps = path.split("/")
    at = [place for place, step in enumerate(steps) if step.isdigit()]
    for place, letter in zip(at, "GM", strict=False):
        steps[place] = letter
    return "/".join(steps)


async def test_what_is_read_is_typed(client):
    made = await client.create({**NEW, "member_group_type_id": 1, "parent_id": 2, "member_credit_quota": 4})
    assert (made.en_name, made.type_id, made.parent_id, made.member_quota, made.group_quota) == ("New", 1, 2, 4, None)
    assert made == await client.read(made.id)
    assert (await client.read(6)).sso == "office"
    assert (await client.read(0, type_id=2)).member_count == 4
    (bora,) = await client.administrators(2)
    assert (bora.id, bora.include_descendants) == (102, True)
    chan = next(row for row in await client.addable_members(3) if row.is_member)
    assert (chan.email, chan.addable) == ("chan@example.org", False)
    assert [agent.type for agent in await client.agents(2) if agent.enabled] == ["law_in_data", "univ_in_data"]


async def test_a_designation_leaves_included_descendants_unless_told(service, client):
    await client.designate(2, 102)
    assert orjson.loads(service.journal[-1].body) == {"member_id": 102}
    assert (await client.administrators(2))[0].include_descendants is True


async def test_all_pages_are_read_one_after_the_other(service, client):
    for number in range(205):
        service.tenant.create(ko_name=f"{number} ko", en_name=f"{number}")
    rows = [row async for row in client.overview()]
    assert len({row.id for row in rows}) == len(rows) == 211
    assert len(service.journal) == 3
    assert [row.en_name async for row in client.overview(parent_id=2)] == ["Computing"]
    assert [row.id async for row in client.overview(search="seo", type_id=2)] == [4]
    ordered = [row.used_month async for row in client.overview(order_by="credit_used_month.desc", size=50)]
    assert ordered == sorted(ordered, reverse=True)


async def test_a_bulk_call_is_split_at_500_and_its_failures_are_collected(service, client):
    idents = [service.tenant.create(ko_name=f"{n} ko", en_name=f"{n}", member_quota=1).ident for n in range(1001)]
    done = await client.set_credit_limits([*idents, 3, 9999, idents[0]], 77)
    assert done == Bulk(tuple(idents), (ItemFailure(3, "member_quota_required"), ItemFailure(9999, "not_found")))
    assert [len(orjson.loads(seen.body)["member_group_ids"]) for seen in service.journal] == [500, 500, 3]


async def test_a_bulk_request_that_is_refused_fails_for_its_groups_alone(service, client):
    done = await client.set_models([1, 2], {999: True})
    assert done.succeeded == ()
    assert {failure.group_id for failure in done.failed} == {1, 2}
    assert all("not usable" in failure.code for failure in done.failed)


async def test_many_members_go_in_several_requests(service, client):
    person = service.tenant.people[101]
    service.tenant.people |= dict.fromkeys(range(1000, 2100), person)
    await client.add_members(2, range(1000, 2100))
    await client.move_members(2, 3, range(1000, 2100))
    await client.remove_members(3, range(1000, 2100))
    assert (
        targets(service) == ["POST 2/members/"] * 3 + ["POST 2/members/move/"] * 3 + ["POST 3/members/remove-bulk/"] * 3
    )
    assert (await client.read(3)).member_count == 1


def test_parts_keep_the_order_and_name_nothing_twice():
    assert list(in_parts([3, 1, 3, 2, 1], 2)) == [[3, 1], [2]]
    assert list(in_parts([], 2)) == []


@pytest.mark.parametrize(
    ("fault", "status", "call"),
    [
        (RuleBroken, 400, lambda client: client.delete(2)),
        (NotFound, 404, lambda client: client.read(99)),
        (Conflict, 409, lambda client: client.create({"ko_name": "기본", "en_name": "x"})),
    ],
)
async def test_a_refusal_is_an_error_of_its_status(client, fault, status, call):
    with pytest.raises(fault) as caught:
        await call(client)
    assert (type(caught.value), caught.value.status) == (fault, status)


IN_SCOPE = {
    "read": lambda client, group: client.read(group),
    "change": lambda client, group: client.change(group, {"credit_quota": 5}),
    "create": lambda client, group: client.create({**NEW, "member_group_type_id": 1, "parent_id": group}),
    "add": lambda client, group: client.add_members(group, [105]),
    "addable": lambda client, group: client.addable_members(group),
    "move members": lambda client, group: client.move_members(group, 2, [105]),
    "move members in": lambda client, group: client.move_members(2, group, [105]),
    "remove one": lambda client, group: client.remove_member(group, 105),
    "remove many": lambda client, group: client.remove_members(group, [103]),
    "designate": lambda client, group: client.designate(group, 104),
    "administrators": lambda client, group: client.administrators(group),
    "dismiss": lambda client, group: client.dismiss(group, 104),
    "agents": lambda client, group: client.agents(group),
    "agent": lambda client, group: client.set_agent(group, "law_in_data", False),
    "place": lambda client, group: client.move(group, 2),
    "place below": lambda client, group: client.move(3, group),
    "delete": lambda client, group: client.delete(group),
}
"""What a group administrator may do in a group of theirs."""

MASTERS_ONLY = {
    "create at the root": lambda client: client.create(NEW),
    "move to the root": lambda client: client.move(3, None),
    "include descendants": lambda client: client.designate(2, 102, include_descendants=True),
    "read permissions": lambda client: client.permissions(2),
    "set permissions": lambda client: client.set_permissions(2, {"permissions": {"file_upload": True}}),
}


@pytest.mark.parametrize("name", IN_SCOPE)
async def test_a_group_administrator_is_refused_outside_of_what_is_delegated(service, name):
    async with client_of(service, "delegate") as delegate:
        with pytest.raises(NotPermitted, match="inactive, no administrator, or the group is not delegated"):
            await IN_SCOPE[name](delegate, 4)


async def test_a_group_administrator_may_do_everything_else_where_it_is_delegated(service):
    """One group goes through all of it, with who is in it and in the group above as each step needs it."""
    tenant = service.tenant
    tenant.add(tenant.groups[3], [104])
    async with client_of(service, "delegate") as delegate:
        for name, call in IN_SCOPE.items():
            match name:
                case "create":
                    await delegate.delete((await call(delegate, 3)).id)
                case "place below":
                    await delegate.move(
                        (await delegate.create({**NEW, "member_group_type_id": 1, "parent_id": 2})).id, 3
                    )
                case "move members in" | "remove one":
                    tenant.add(tenant.groups[2], [105])
                    tenant.add(tenant.groups[3], [105])
                    await call(delegate, 3)
                case "delete":
                    await delegate.delete(tenant.below(3)[0].ident)
                    await call(delegate, 3)
                case _:
                    await call(delegate, 3)
    assert 3 not in tenant.groups


@pytest.mark.parametrize("name", MASTERS_ONLY)
async def test_what_only_a_master_administrator_may_do(service, name):
    async with client_of(service, "delegate") as delegate, client_of(service) as master:
        with pytest.raises(NotPermitted):
            await MASTERS_ONLY[name](delegate)
        await MASTERS_ONLY[name](master)


async def test_lists_and_bulk_calls_of_a_group_administrator_keep_to_what_is_delegated(service):
    service.tenant.groups[3].member_quota = service.tenant.groups[4].member_quota = 1
    async with client_of(service, "delegate") as delegate:
        assert sorted([row.id async for row in delegate.overview()]) == [2, 3]
        assert [row.id async for row in delegate.managed_groups()] == [3, 2]
        assert (await delegate.set_models([3, 4], {5: False})).failed == (ItemFailure(4, "forbidden"),)
        assert (await delegate.set_credit_limits([3, 4], 5)).failed == (ItemFailure(4, "forbidden"),)
