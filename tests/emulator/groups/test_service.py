from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from proxy.emulator.groups.service import GroupService, running_groups

MASTER, DELEGATE = "emu-master-token", "emu-delegate-token"
NEW = {"ko_name": "새 그룹", "en_name": "New"}


@dataclass
class Groups:
    """A caller of the group service."""

    service: GroupService
    session: aiohttp.ClientSession

    async def call(self, method, path="", body: Any = None, *, token=MASTER, headers=None):
        """Status and body; the token may be None."""
        given = {**({"x-access-token": token} if token else {}), **(headers or {})}
        url = self.service.url + (path if path.startswith("/") else f"/v1/admin/member-groups/{path}")
        async with self.session.request(method, url, json=body, headers=given) as response:
            return response.status, await response.json()

    async def data(self, method, path="", body: Any = None, **rest):
        status, value = await self.call(method, path, body, **rest)
        assert (status, value["success"]) == (200, True), value
        return value.get("data")

    async def status(self, *args, **rest):
        return (await self.call(*args, **rest))[0]


@asynccontextmanager
async def serving(**options):
    async with running_groups(**options) as service, aiohttp.ClientSession() as session:
        yield Groups(service, session)


@pytest.fixture
async def groups():
    async with serving() as caller:
        yield caller


@pytest.mark.fact("groups-read")
async def test_a_group_is_created_and_read_in_the_envelope(groups):
    made = await groups.data("POST", "", {**NEW, "member_credit_quota": 1.5, "group_credit_quota": 10})
    assert made == await groups.data("GET", f"{made['id']}/")
    assert made["quota_source"] == {"group_credit_quota": 10, "member_credit_quota": 1.5}
    assert made.keys() == {
        "id", "ko_name", "en_name", "name_i18n", "is_default", "member_count", "is_visible_to_admin_only",
        "sso_origin_value", "member_group_type_id", "parent_id", "depth", "quota_source", "group_member_stats",
    }  # fmt: skip
    assert (made["is_visible_to_admin_only"], made["parent_id"], made["depth"]) == (False, None, 0)


@pytest.mark.fact("groups-names")
async def test_both_names_are_required_and_unique(groups):
    assert await groups.status("POST", "", {"ko_name": "a"}) == 400
    assert await groups.status("POST", "", {"ko_name": "기본", "en_name": "x"}) == 409
    assert await groups.status("POST", "", {"ko_name": "x", "en_name": "Default"}) == 409
    assert await groups.status("PATCH", "2/", {"en_name": "Default"}) == 409
    assert await groups.status("PATCH", "2/", {"en_name": "Engineering"}) == 200


@pytest.mark.fact("groups-401")
async def test_the_gateway_key_is_not_accepted(groups):
    bearer = {"Authorization": "Bearer sk-emu-alpha-1"}
    assert await groups.status("GET", "1/", token=None, headers=bearer) == 401
    assert await groups.status("GET", "1/", token=None) == 401
    assert await groups.status("GET", "1/", token="expired") == 401


@pytest.mark.fact("groups-session")
async def test_a_session_is_believed_from_its_own_origin_only(groups):
    cookie = {"Cookie": f"sessionId={MASTER}"}
    own = {**cookie, "Origin": groups.service.url}
    assert await groups.status("GET", "1/", token=None, headers=cookie) == 200
    assert await groups.status("PATCH", "1/", {}, token=None, headers=cookie) == 403
    assert await groups.status("PATCH", "1/", {}, token=None, headers={**cookie, "Origin": "https://evil"}) == 403
    assert await groups.status("PATCH", "1/", {}, token=None, headers=own) == 200


@pytest.mark.fact("groups-403")
async def test_only_active_administrators_may_call(groups):
    for token in ("emu-member-token", "emu-inactive-token"):
        assert await groups.status("GET", "1/", token=token) == 403, token


@pytest.mark.fact("groups-delegate")
async def test_a_group_administrator_manages_delegated_groups_and_those_below(groups):
    assert [await groups.status("GET", f"{ident}/", token=DELEGATE) for ident in (2, 3, 4)] == [200, 200, 403]
    assert await groups.status("POST", "", NEW, token=DELEGATE) == 403
    below = {**NEW, "member_group_type_id": 1, "parent_id": 2}
    assert await groups.status("POST", "", below, token=DELEGATE) == 200
    await groups.data("POST", "2/admins/", {"member_id": 102, "include_descendants": False})
    assert [await groups.status("GET", f"{ident}/", token=DELEGATE) for ident in (2, 3)] == [200, 403]


@pytest.mark.fact("groups-change")
async def test_only_what_is_in_the_body_is_changed(groups):
    before = await groups.data("GET", "2/")
    after = await groups.data("PATCH", "2/", {"credit_quota": None})
    assert after == {**before, "quota_source": {"group_credit_quota": None, "member_credit_quota": 100}}
    assert (await groups.data("PATCH", "2/", {"ko_name": None, "is_visible_to_admin_only": True}))[
        "ko_name"
    ] == "공학부"
    assert await groups.status("PATCH", "2/", {"credit_quota": 1.5}) == 400


@pytest.mark.fact("groups-delete")
async def test_what_cannot_be_deleted(groups):
    reasons = {ident: await groups.call("DELETE", f"{ident}/") for ident in (2, 4, 6)}
    assert [status for status, _ in reasons.values()] == [400, 400, 400]
    assert "below" in reasons[2][1]["message"]
    assert "required" in reasons[4][1]["message"]
    assert "SSO" in reasons[6][1]["message"]
    assert await groups.call("DELETE", "3/") == (200, {"success": True})
    assert await groups.status("GET", "3/") == 404


@pytest.mark.fact("groups-tree")
async def test_the_tree_has_no_cycles_one_type_and_an_end(groups):
    assert await groups.status("PATCH", "2/parent/", {"parent_id": 3}) == 400
    assert await groups.status("PATCH", "2/parent/", {"parent_id": 2}) == 400
    assert await groups.status("PATCH", "3/parent/", {"parent_id": 99}) == 400
    assert await groups.status("PATCH", "3/parent/", {"parent_id": 4}) == 400
    assert await groups.status("PATCH", "5/parent/", {"parent_id": 2}) == 400
    assert await groups.status("PATCH", "3/parent/", {}) == 400
    above = 3
    for depth in (2, 3, 4):
        fields = {"ko_name": f"{depth}", "en_name": f"{depth}", "member_group_type_id": 1, "parent_id": above}
        made = await groups.data("POST", "", fields)
        above = made["id"]
        assert made["depth"] == depth
    assert await groups.status("POST", "", {**NEW, "member_group_type_id": 1, "parent_id": above}) == 400
    assert await groups.call("PATCH", "3/parent/", {"parent_id": None}) == (200, {"success": True})
    assert (await groups.data("GET", "3/"))["depth"] == 0


@pytest.mark.fact("groups-add")
async def test_members_are_added_without_leaving_other_groups(groups):
    await groups.data("POST", "2/members/", {"member_ids": [103, 104]})
    assert (await groups.data("GET", "2/"))["member_count"] == 3
    assert (await groups.data("GET", "3/"))["member_count"] == 1
    assert await groups.status("POST", "2/members/", {"member_ids": [999]}) == 404
    assert await groups.status("POST", "2/members/", {"member_ids": []}) == 400
    assert await groups.status("POST", "2/members/", {"member_ids": ["103"]}) == 400


@pytest.mark.fact("groups-single")
async def test_a_single_membership_type_takes_nobody_twice(groups):
    other = await groups.data("POST", "", {**NEW, "member_group_type_id": 3})
    status, value = await groups.call("POST", f"{other['id']}/members/", {"member_ids": [101, 103]})
    assert (status, "single_membership_conflict" in value["message"]) == (400, True)
    assert (await groups.data("GET", f"{other['id']}/"))["member_count"] == 0
    found = {row["id"]: row for row in await groups.data("GET", f"{other['id']}/addable-members/")}
    assert (found[103]["addable"], found[103]["reason_code"]) == (False, "single_membership_conflict")
    assert found[103]["conflict_type"] == {"id": 3, "name": "course"}


@pytest.mark.fact("groups-required")
async def test_the_last_place_in_a_required_type_is_kept(groups):
    assert await groups.status("DELETE", "4/members/104/") == 400
    assert await groups.status("POST", "4/members/remove-bulk/", {"member_ids": [104]}) == 400
    assert await groups.status("DELETE", "3/members/103/") == 200
    assert await groups.status("DELETE", "3/members/103/") == 404


@pytest.mark.fact("groups-move")
async def test_members_move_or_nothing_happens(groups):
    await groups.data("POST", "3/members/move/", {"member_ids": [103], "target_member_group_id": 2})
    assert ((await groups.data("GET", "3/"))["member_count"], (await groups.data("GET", "2/"))["member_count"]) == (
        0,
        2,
    )
    other = await groups.data("POST", "", {**NEW, "member_group_type_id": 3})
    moved = {"member_ids": [103], "target_member_group_id": other["id"]}
    assert await groups.status("POST", "2/members/move/", moved) == 400
    assert (await groups.data("GET", "2/"))["member_count"] == 2
    assert await groups.status("POST", "5/members/move/", moved) == 200


@pytest.mark.fact("groups-addable")
async def test_addable_members_are_searched_by_name_and_address(groups):
    rows = await groups.data("GET", "3/addable-members/?search=CHAN")
    assert rows == [
        {"id": 103, "name": "Chan", "email": "chan@example.org", "addable": False, "reason_code": "already_member",
         "conflict_type": None}
    ]  # fmt: skip
    assert len(await groups.data("GET", "3/addable-members/?search=example.org")) == 5
    assert (await groups.data("GET", "3/addable-members/?search=ada"))[0]["addable"] is True


@pytest.mark.fact("groups-admins")
async def test_administrators_are_listed_designated_and_dismissed(groups):
    assert (await groups.data("GET", "2/admins/"))["admins"][0].keys() == {
        "id", "name", "email", "created_at", "include_descendants"
    }  # fmt: skip
    assert await groups.status("POST", "2/admins/", {"member_id": 103}) == 400
    assert await groups.status("POST", "2/admins/", {"member_id": 0}) == 400
    assert await groups.status("POST", "3/admins/", {"member_id": 103}, token=DELEGATE) == 200
    whole = {"member_id": 103, "include_descendants": True}
    assert await groups.status("POST", "3/admins/", whole, token=DELEGATE) == 403
    assert await groups.call("DELETE", "3/admins/103/") == (200, {"success": True})
    assert await groups.status("DELETE", "3/admins/103/") == 404


@pytest.mark.fact("groups-bulk-credit")
async def test_bulk_credit_limits_succeed_in_part(groups):
    body = {"member_group_ids": [2, 3, 99], "group_credit_quota": None}
    assert await groups.data("PATCH", "bulk/credit-limit/", body) == {
        "succeeded": [2],
        "failed": [
            {"member_group_id": 3, "code": "member_quota_required"},
            {"member_group_id": 99, "code": "not_found"},
        ],
    }
    for ids in ([], list(range(1, 502))):
        assert await groups.status("PATCH", "bulk/credit-limit/", {**body, "member_group_ids": ids}) == 400
    async with serving(enterprise=False) as other:
        done = await other.data("PATCH", "bulk/credit-limit/", {**body, "member_group_ids": [2]})
        assert done["failed"] == [{"member_group_id": 2, "code": "not_enterprise"}]


@pytest.mark.fact("groups-bulk-models")
async def test_bulk_model_permissions_change_only_what_they_name(groups):
    body = {"member_group_ids": [2, 4], "model_permissions": [{"llm_model_id": 5, "is_available": False}]}
    assert (await groups.data("PATCH", "bulk/model-permissions/", body, token=DELEGATE)) == {
        "succeeded": [2],
        "failed": [{"member_group_id": 4, "code": "forbidden"}],
    }
    row = next(row for row in (await groups.data("GET", "usage-overview/"))["results"] if row["id"] == 2)
    assert (row["allowed_model_count"], row["total_model_count"]) == (19, 20)
    unknown = [{"llm_model_id": 999, "is_available": True}]
    assert await groups.status("PATCH", "bulk/model-permissions/", {**body, "model_permissions": unknown}) == 400
    assert await groups.status("PATCH", "bulk/model-permissions/", {**body, "model_permissions": []}) == 400


@pytest.mark.fact("groups-overview")
async def test_the_overview_is_filtered_sorted_and_paged(groups):
    whole = await groups.data("GET", "usage-overview/")
    assert whole["pagination"] == {"page": 1, "total_pages": 1, "total_items": 6}
    names = [row["en_name"] for row in whole["results"]]
    assert names == sorted(names)
    assert {"ancestors", "credit_used_weekly", "credit_projected_month"} <= whole["results"][0].keys()
    paged = await groups.data("GET", "usage-overview/?page=2&size=4&order_by=name.desc")
    assert [row["en_name"] for row in paged["results"]] == sorted(names, reverse=True)[4:]
    assert [row["id"] for row in (await groups.data("GET", "usage-overview/?parent_id=2"))["results"]] == [3]
    assert [row["id"] for row in (await groups.data("GET", "usage-overview/?search_term=seo"))["results"]] == [4]
    assert len((await groups.data("GET", "usage-overview/?member_group_type_id=1"))["results"]) == 2
    for order in ("credit_used_month.desc", "utilization.asc"):
        assert await groups.status("GET", f"usage-overview/?order_by={order}") == 200
    assert await groups.status("GET", "usage-overview/?order_by=colour.asc") == 400


@pytest.mark.fact("groups-agents")
async def test_agents_override_the_default_and_inherit_it_again(groups):
    async def enabled(wanted):
        rows = await groups.data("PATCH", "2/agents/", {"agent_type": "korea_in_data", "is_enabled": wanted})
        return next((row["is_enabled"], row["tenant_default"]) for row in rows if row["agent_type"] == "korea_in_data")

    assert [await enabled(wanted) for wanted in (True, False, None)] == [(True, False), (False, False), (False, False)]
    assert await groups.status("PATCH", "2/agents/", {"agent_type": "nobody", "is_enabled": True}) == 400
    assert len(await groups.data("GET", "2/agents/")) == 3


@pytest.mark.fact("groups-permissions")
async def test_permissions_have_three_states_and_are_for_masters(groups):
    for wanted in (True, False, None):
        body = {"permissions": {"file_upload": wanted}}
        assert (await groups.data("PATCH", "2/permission-set/", body))["permissions"]["file_upload"] is wanted
    assert await groups.status("GET", "2/permission-set/", token=DELEGATE) == 403
    assert await groups.status("PATCH", "2/permission-set/", {"permissions": {"flying": True}}) == 400


@pytest.mark.fact("groups-unclassified")
async def test_the_unclassified_group_has_the_id_0(groups):
    value = await groups.data("GET", "0/?member_group_type_id=2")
    assert (value["id"], value["member_count"]) == (0, 4)


@pytest.mark.fact("groups-lists")
async def test_everybody_may_list_groups(groups):
    names = await groups.data("GET", "/v1/member-groups/", token="emu-member-token")
    assert len(names["results"]) == 6
    assert await groups.data("GET", "/v1/member-groups/managed/", token=DELEGATE) == {
        "results": [
            {"id": 2, "ko_name": "공학부", "en_name": "Engineering"},
            {"id": 3, "ko_name": "전산과", "en_name": "Computing"},
        ],
        "pagination": {"page": 1, "total_pages": 1, "total_items": 2},
    }
    assert await groups.status("GET", "/v1/member-groups/", token=None) == 401


async def test_wrong_paths_methods_and_bodies(groups):
    assert await groups.status("GET", "1") == 404
    assert await groups.status("GET", "/elsewhere") == 404
    assert await groups.status("PUT", "1/", {}) == 405
    assert await groups.status("GET", "99/") == 404
    assert await groups.status("PATCH", "1/", ["a"]) == 400


async def test_failures_can_be_asked_for_and_everything_is_remembered(groups):
    groups.service.failing.append(503)
    assert [await groups.status("GET", "1/") for _ in range(2)] == [503, 200]
    assert [seen.status for seen in groups.service.journal] == [503, 200]
    await groups.data("PATCH", "1/", {"ko_name": "다른"})
    groups.service.reset()
    assert (await groups.data("GET", "1/"))["ko_name"] == "기본"
    assert len(groups.service.journal) == 1
