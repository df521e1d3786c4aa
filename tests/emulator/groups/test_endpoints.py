import pytest

from tests.emulator.groups.caller import DELEGATE, NEW, serving

FIELDS = {
    "id", "ko_name", "en_name", "name_i18n", "is_default", "member_count", "is_visible_to_admin_only",
    "sso_origin_value", "member_group_type_id", "parent_id", "depth", "quota_source", "group_member_stats",
}  # fmt: skip


@pytest.mark.group_fact("create")
async def test_a_created_group_is_what_was_asked_for(groups):
    asked = {
        **NEW, "member_group_type_id": 1, "parent_id": 2, "member_credit_quota": 1.5, "group_credit_quota": 10,
        "is_visible_to_admin_only": True,
    }  # fmt: skip
    made = await groups.data("POST", "", asked)
    assert made == await groups.read(made["id"])
    assert made["quota_source"] == {"group_credit_quota": 10, "member_credit_quota": 1.5}
    assert {name: made[name] for name in asked if "quota" not in name} == {
        name: value for name, value in asked.items() if "quota" not in name
    }


@pytest.mark.group_fact("create-defaults")
async def test_all_but_the_names_may_be_left_out_or_null(groups):
    made = await groups.data("POST", "", NEW)
    assert (made["is_visible_to_admin_only"], made["parent_id"], made["member_group_type_id"]) == (False, None, None)
    assert made["quota_source"] == {"group_credit_quota": None, "member_credit_quota": None}
    nulls = dict.fromkeys(("member_group_type_id", "member_credit_quota", "group_credit_quota", "parent_id"))
    assert (await groups.create("Other", **nulls))["quota_source"] == made["quota_source"]
    assert await groups.status("POST", "", {**NEW, "is_visible_to_admin_only": None}) == 400


@pytest.mark.group_fact("create-names")
async def test_both_names_are_required(groups):
    assert await groups.status("POST", "", {"ko_name": "a"}) == 400
    assert await groups.status("POST", "", {"en_name": "a"}) == 400
    assert await groups.status("POST", "", {"ko_name": "a", "en_name": None}) == 400


@pytest.mark.group_fact("duplicate")
async def test_a_name_that_is_taken_is_409(groups):
    assert await groups.status("POST", "", {"ko_name": "기본", "en_name": "x"}) == 409
    assert await groups.status("POST", "", {"ko_name": "x", "en_name": "Default"}) == 409
    assert await groups.status("PATCH", "2/", {"en_name": "Default"}) == 409
    assert await groups.status("PATCH", "2/", {"en_name": "Engineering"}) == 200


@pytest.mark.group_fact("create-tree")
async def test_a_group_created_against_the_tree_is_400(groups):
    assert await groups.status("POST", "", {**NEW, "parent_id": 2}) == 400
    assert await groups.status("POST", "", {**NEW, "member_group_type_id": 1, "parent_id": 99}) == 400
    assert await groups.status("POST", "", {**NEW, "member_group_type_id": 99}) == 400


@pytest.mark.group_fact("read")
async def test_a_group_has_the_documented_fields(groups):
    value = await groups.read(2)
    assert value.keys() == FIELDS
    assert value["quota_source"] == {"group_credit_quota": 5000, "member_credit_quota": 100}
    assert {"credit_used_30d", "credit_used_month", "total_members"} <= value["group_member_stats"].keys()
    assert ((await groups.read(1))["is_default"], (await groups.read(6))["sso_origin_value"]) == (True, "office")
    assert await groups.status("GET", "99/") == 404


@pytest.mark.group_fact("unclassified")
async def test_the_unclassified_group_has_the_id_0(groups):
    assert (await groups.read(0))["member_count"] == 0
    value = await groups.data("GET", "0/?member_group_type_id=2")
    assert (value["id"], value["member_count"], value.keys()) == (0, 4, FIELDS)


@pytest.mark.group_fact("change")
async def test_only_what_is_in_the_body_is_changed(groups):
    before = await groups.read(2)
    assert await groups.data("PATCH", "2/", {}) == before
    after = await groups.data("PATCH", "2/", {"credit_quota": 7, "is_visible_to_admin_only": True, "ko_name": "공대"})
    quotas = {"group_credit_quota": 7, "member_credit_quota": 100}
    names = {"ko": "공대", "en": "Engineering"}
    changed = {"quota_source": quotas, "is_visible_to_admin_only": True, "ko_name": "공대", "name_i18n": names}
    assert after == {**before, **changed} == await groups.read(2)


@pytest.mark.group_fact("change-null")
async def test_null_clears_a_quota_and_leaves_names_and_visibility(groups):
    before = await groups.read(2)
    nulls = dict.fromkeys(("ko_name", "en_name", "is_visible_to_admin_only", "credit_quota", "member_credit_quota"))
    after = await groups.data("PATCH", "2/", nulls)
    assert after == {**before, "quota_source": {"group_credit_quota": None, "member_credit_quota": None}}


@pytest.mark.group_fact("change-whole")
async def test_changed_quotas_are_whole_numbers(groups):
    assert await groups.status("PATCH", "2/", {"credit_quota": 1.5}) == 400
    assert await groups.status("PATCH", "2/", {"member_credit_quota": 1.5}) == 400


@pytest.mark.group_fact("change-type")
async def test_a_type_is_changed_outside_a_tree_only(groups):
    assert (await groups.data("PATCH", "1/", {"member_group_type_id": 3}))["member_group_type_id"] == 3
    for ident in (2, 3):
        assert await groups.status("PATCH", f"{ident}/", {"member_group_type_id": 4}) == 400
    assert await groups.status("PATCH", "1/", {"member_group_type_id": None}) == 400
    assert await groups.status("PATCH", "1/", {"member_group_type_id": 99}) == 400


@pytest.mark.group_fact("delete")
async def test_a_deleted_group_is_gone(groups):
    assert await groups.call("DELETE", "3/") == (200, {"success": True})
    assert await groups.status("GET", "3/") == 404
    assert await groups.status("DELETE", "3/") == 404


@pytest.mark.group_fact("delete-sso")
async def test_a_group_linked_to_sso_is_not_deleted(groups):
    status, value = await groups.call("DELETE", "6/")
    assert (status, "SSO" in value["message"]) == (400, True)


@pytest.mark.group_fact("delete-required")
async def test_a_group_of_a_required_type_is_not_deleted(groups):
    status, value = await groups.call("DELETE", "4/")
    assert (status, "required" in value["message"]) == (400, True)


@pytest.mark.group_fact("delete-children")
async def test_a_group_with_children_is_not_deleted_before_they_move(groups):
    status, value = await groups.call("DELETE", "2/")
    assert (status, "below" in value["message"]) == (400, True)
    await groups.data("PATCH", "3/parent/", {"parent_id": None})
    assert await groups.status("DELETE", "2/") == 200


@pytest.mark.group_fact("parent")
async def test_a_group_moves_and_null_is_the_root(groups):
    assert (await groups.read(3))["depth"] == 1
    assert await groups.call("PATCH", "3/parent/", {"parent_id": None}) == (200, {"success": True})
    assert [(await groups.read(3))[name] for name in ("parent_id", "depth")] == [None, 0]
    assert await groups.status("PATCH", "3/parent/", {"parent_id": 2}) == 200
    assert await groups.status("PATCH", "3/parent/", {}) == 400
    assert await groups.status("PATCH", "3/parent/", {"parent_id": 99}) == 400
    assert await groups.status("PATCH", "99/parent/", {"parent_id": None}) == 404


@pytest.mark.group_fact("parent-cycle")
async def test_a_group_cannot_stand_below_itself(groups):
    assert await groups.status("PATCH", "2/parent/", {"parent_id": 3}) == 400
    assert await groups.status("PATCH", "2/parent/", {"parent_id": 2}) == 400


@pytest.mark.group_fact("parent-type")
async def test_parent_and_child_are_of_one_type(groups):
    other = await groups.create(member_group_type_id=4)
    assert await groups.status("PATCH", "3/parent/", {"parent_id": other["id"]}) == 400


@pytest.mark.group_fact("parent-hierarchical")
async def test_only_groups_of_a_hierarchical_type_have_a_parent(groups):
    flat = await groups.create(member_group_type_id=3)
    assert await groups.status("PATCH", "5/parent/", {"parent_id": flat["id"]}) == 400
    assert await groups.status("PATCH", "1/parent/", {"parent_id": 6}) == 400


@pytest.mark.group_fact("parent-depth")
async def test_the_tree_has_a_greatest_depth(groups):
    above = 3
    for depth in (2, 3, 4):
        made = await groups.create(f"{depth}", member_group_type_id=1, parent_id=above)
        above = made["id"]
        assert made["depth"] == depth
    assert await groups.status("POST", "", {**NEW, "member_group_type_id": 1, "parent_id": above}) == 400
    top = await groups.create("Top", member_group_type_id=1)
    assert await groups.status("PATCH", "2/parent/", {"parent_id": top["id"]}) == 400


@pytest.mark.group_fact("add")
async def test_members_are_added_without_leaving_other_groups(groups):
    assert await groups.call("POST", "2/members/", {"member_ids": [103, 104]}) == (200, {"success": True})
    assert (await groups.count(2), await groups.count(3)) == (3, 1)
    assert await groups.status("POST", "2/members/", {"member_ids": [999]}) == 404


@pytest.mark.group_fact("member-ids")
async def test_member_ids_are_whole_numbers_at_least_one(groups):
    for path in ("2/members/", "2/members/remove-bulk/", "2/members/move/"):
        for ids in ([], ["102"], None):
            body = {"member_ids": ids, "target_member_group_id": 3}
            assert await groups.status("POST", path, body) == 400, (path, ids)
        assert await groups.status("POST", path, {"target_member_group_id": 3}) == 400


@pytest.mark.group_fact("single")
async def test_a_single_membership_type_takes_nobody_twice(groups):
    other = await groups.create(member_group_type_id=3)
    status, value = await groups.call("POST", f"{other['id']}/members/", {"member_ids": [101, 103]})
    assert (status, "single_membership_conflict" in value["message"]) == (400, True)
    assert await groups.count(other["id"]) == 0
    assert await groups.status("POST", f"{other['id']}/members/", {"member_ids": [101]}) == 200


@pytest.mark.group_fact("remove")
async def test_a_member_is_removed_from_one_group(groups):
    assert await groups.call("DELETE", "3/members/103/") == (200, {"success": True})
    assert (await groups.count(3), await groups.count(5)) == (0, 1)
    assert await groups.status("DELETE", "3/members/103/") == 404


@pytest.mark.group_fact("remove-bulk")
async def test_many_members_are_removed_at_once(groups):
    assert await groups.call("POST", "1/members/remove-bulk/", {"member_ids": [101, 102]}) == (200, {"success": True})
    assert await groups.count(1) == 3
    assert await groups.status("POST", "1/members/remove-bulk/", {"member_ids": [103, 101]}) == 404
    assert await groups.count(1) == 3


@pytest.mark.group_fact("required")
async def test_the_last_place_in_a_required_type_is_kept(groups):
    assert await groups.status("DELETE", "4/members/104/") == 400
    assert await groups.status("POST", "4/members/remove-bulk/", {"member_ids": [104]}) == 400
    other = await groups.create(member_group_type_id=2)
    await groups.data("POST", f"{other['id']}/members/", {"member_ids": [104]})
    assert await groups.status("DELETE", "4/members/104/") == 200


@pytest.mark.group_fact("move")
async def test_members_move_from_group_to_group(groups):
    moved = {"member_ids": [103], "target_member_group_id": 2}
    assert await groups.call("POST", "3/members/move/", moved) == (200, {"success": True})
    assert (await groups.count(3), await groups.count(2)) == (0, 2)
    assert await groups.status("POST", "3/members/move/", {"member_ids": [103]}) == 400
    assert await groups.status("POST", "2/members/move/", {**moved, "target_member_group_id": 99}) == 404


@pytest.mark.group_fact("move-single")
async def test_a_move_inside_a_single_or_a_required_type_works(groups):
    for source, kind, member in ((5, 3, 103), (4, 2, 104)):
        other = await groups.create(f"Type {kind}", member_group_type_id=kind)
        moved = {"member_ids": [member], "target_member_group_id": other["id"]}
        assert await groups.status("POST", f"{source}/members/move/", moved) == 200
        assert (await groups.count(source), await groups.count(other["id"])) == (0, 1)


@pytest.mark.group_fact("move-whole")
async def test_a_move_that_conflicts_moves_nobody(groups):
    other = await groups.create(member_group_type_id=3)
    moved = {"member_ids": [102, 103], "target_member_group_id": other["id"]}
    assert await groups.status("POST", "1/members/move/", moved) == 400
    assert (await groups.count(1), await groups.count(other["id"])) == (5, 0)


@pytest.mark.group_fact("move-quota")
async def test_a_move_applies_the_targets_limit_when_asked(groups):
    quotas = groups.service.tenant.member_quotas
    moved = {"member_ids": [103], "target_member_group_id": 2}
    await groups.data("POST", "3/members/move/", moved)
    assert quotas == {}
    await groups.data("POST", "2/members/move/", {"member_ids": [103], "target_member_group_id": 3})
    await groups.data("POST", "3/members/move/", {**moved, "apply_quota": True})
    assert quotas == {103: 100}
    assert await groups.status("POST", "2/members/move/", {**moved, "apply_quota": None}) == 400


@pytest.mark.group_fact("addable")
async def test_addable_members_are_searched_by_name_and_address(groups):
    rows = await groups.data("GET", "3/addable-members/?search=ADA")
    ada = {"id": 101, "name": "Ada", "email": "ada@example.org"}
    assert rows == [{**ada, "addable": True, "reason_code": None, "conflict_type": None}]
    assert len(await groups.data("GET", "3/addable-members/?search=example.org")) == 5
    assert len(await groups.data("GET", "3/addable-members/")) == 5


@pytest.mark.group_fact("addable-reasons")
async def test_why_a_member_cannot_be_added_is_said(groups):
    other = await groups.create(member_group_type_id=3)
    (row,) = await groups.data("GET", f"{other['id']}/addable-members/?search=chan")
    assert (row["addable"], row["reason_code"]) == (False, "single_membership_conflict")
    assert row["conflict_type"] == {"id": 3, "name": "course"}
    (row,) = await groups.data("GET", "3/addable-members/?search=chan")
    assert (row["addable"], row["reason_code"], row["conflict_type"]) == (False, "already_member", None)


@pytest.mark.group_fact("admins")
async def test_administrators_are_listed_designated_and_dismissed(groups):
    (row,) = (await groups.data("GET", "2/admins/"))["admins"]
    bora = {"id": 102, "name": "Bora", "email": "bora@example.org"}
    assert row == {**bora, "created_at": "2026-09-21T14:13:20Z", "include_descendants": True}
    assert await groups.call("POST", "3/admins/", {"member_id": 103}) == (200, {"success": True})
    assert (await groups.data("GET", "3/admins/"))["admins"][0]["include_descendants"] is False
    assert await groups.call("DELETE", "3/admins/103/") == (200, {"success": True})
    assert await groups.status("DELETE", "3/admins/103/") == 404


@pytest.mark.group_fact("admins-belong")
async def test_an_administrator_belongs_to_the_group(groups):
    assert await groups.status("POST", "2/admins/", {"member_id": 103}) == 400
    assert await groups.status("POST", "2/admins/", {"member_id": 999}) == 404


@pytest.mark.group_fact("admins-id")
async def test_the_id_of_an_administrator_is_above_0(groups):
    status, value = await groups.call("POST", "2/admins/", {"member_id": 0})
    assert (status, "greater than 0" in value["message"]) == (400, True)


@pytest.mark.group_fact("admins-below")
async def test_only_a_master_administrator_includes_descendants(groups):
    whole = {"member_id": 103, "include_descendants": True}
    assert await groups.status("POST", "3/admins/", whole, token=DELEGATE) == 403
    assert await groups.status("POST", "3/admins/", {**whole, "include_descendants": None}, token=DELEGATE) == 200
    await groups.data("POST", "3/admins/", whole)
    await groups.data("POST", "3/admins/", {"member_id": 103}, token=DELEGATE)
    assert (await groups.data("GET", "3/admins/"))["admins"][0]["include_descendants"] is True


@pytest.mark.group_fact("admins-scope")
async def test_a_group_administrator_designates_in_groups_of_theirs(groups):
    assert await groups.status("POST", "3/admins/", {"member_id": 103}, token=DELEGATE) == 200
    assert await groups.status("POST", "4/admins/", {"member_id": 104}, token=DELEGATE) == 403


@pytest.mark.group_fact("bulk-credit")
async def test_bulk_credit_limits_succeed_in_part(groups):
    await groups.data("PATCH", "3/", {"member_credit_quota": 5})
    body = {"member_group_ids": [2, 3, 99, 4], "group_credit_quota": 70}
    done = await groups.data("PATCH", "bulk/credit-limit/", body, token=DELEGATE)
    assert done == {
        "succeeded": [2, 3],
        "failed": [{"member_group_id": 99, "code": "not_found"}, {"member_group_id": 4, "code": "forbidden"}],
    }
    assert [(await groups.read(ident))["quota_source"]["group_credit_quota"] for ident in (2, 3)] == [70, 70]
    await groups.data("PATCH", "bulk/credit-limit/", {**body, "group_credit_quota": None})
    assert (await groups.read(2))["quota_source"]["group_credit_quota"] is None
    assert await groups.status("PATCH", "bulk/credit-limit/", {"member_group_ids": [2]}) == 400


@pytest.mark.group_fact("bulk-credit-member")
async def test_a_bulk_credit_limit_needs_a_limit_per_member(groups):
    body = {"member_group_ids": [2, 3], "group_credit_quota": 1}
    failed = (await groups.data("PATCH", "bulk/credit-limit/", body))["failed"]
    assert failed == [{"member_group_id": 3, "code": "member_quota_required"}]


@pytest.mark.group_fact("bulk-credit-plan")
async def test_bulk_credit_limits_are_for_the_enterprise_plan(groups):
    body = {"member_group_ids": [2, 3], "group_credit_quota": 1}
    assert (await groups.data("PATCH", "bulk/credit-limit/", body))["succeeded"] == [2]
    async with serving(enterprise=False) as other:
        done = await other.data("PATCH", "bulk/credit-limit/", body)
        assert done["failed"] == [{"member_group_id": ident, "code": "not_enterprise"} for ident in (2, 3)]


@pytest.mark.group_fact("bulk-500")
async def test_a_bulk_request_takes_1_to_500_groups(groups):
    rules = [{"llm_model_id": 5, "is_available": False}]
    for path in ("bulk/credit-limit/", "bulk/model-permissions/"):
        for number, status in ((0, 400), (1, 200), (500, 200), (501, 400)):
            body = {"member_group_ids": list(range(1, number + 1)), "group_credit_quota": 1, "model_permissions": rules}
            assert await groups.status("PATCH", path, body) == status, (path, number)


@pytest.mark.group_fact("bulk-models")
async def test_bulk_model_permissions_change_only_what_they_name(groups):
    async def allowed():
        rows = (await groups.data("GET", "usage-overview/?parent_id=2"))["results"]
        return rows[0]["allowed_model_count"], rows[0]["total_model_count"]

    for model, wanted, left in ((5, False, 19), (6, False, 18), (5, True, 19)):
        rules = [{"llm_model_id": model, "is_available": wanted}]
        body = {"member_group_ids": [3, 4], "model_permissions": rules}
        done = await groups.data("PATCH", "bulk/model-permissions/", body, token=DELEGATE)
        assert done == {"succeeded": [3], "failed": [{"member_group_id": 4, "code": "forbidden"}]}
        assert await allowed() == (left, 20)


@pytest.mark.group_fact("bulk-models-known")
async def test_bulk_model_permissions_take_usable_models_at_least_one(groups):
    for rules in ([], [{"llm_model_id": 999, "is_available": True}], [{"llm_model_id": 5}], ["x"]):
        body = {"member_group_ids": [2], "model_permissions": rules}
        assert await groups.status("PATCH", "bulk/model-permissions/", body) == 400, rules


@pytest.mark.group_fact("agents")
async def test_agents_override_the_default_and_inherit_it_again(groups):
    async def enabled(wanted):
        rows = await groups.data("PATCH", "2/agents/", {"agent_type": "korea_in_data", "is_enabled": wanted})
        assert rows == await groups.data("GET", "2/agents/")
        return next((row["is_enabled"], row["tenant_default"]) for row in rows if row["agent_type"] == "korea_in_data")

    assert [await enabled(wanted) for wanted in (True, False, None)] == [(True, False), (False, False), (False, False)]
    assert {row["agent_type"] for row in await groups.data("GET", "2/agents/")} == {
        "law_in_data", "korea_in_data", "univ_in_data"
    }  # fmt: skip


@pytest.mark.group_fact("agents-known")
async def test_an_agent_is_a_known_key_and_its_switch_is_required(groups):
    assert await groups.status("PATCH", "2/agents/", {"agent_type": "nobody", "is_enabled": True}) == 400
    assert await groups.status("PATCH", "2/agents/", {"agent_type": "law_in_data"}) == 400


@pytest.mark.group_fact("permissions")
async def test_permissions_have_three_states(groups):
    for wanted in (True, False, None):
        body = {"permissions": {"file_upload": wanted}}
        assert (await groups.data("PATCH", "2/permission-set/", body))["permissions"]["file_upload"] is wanted
        assert (await groups.data("GET", "2/permission-set/"))["permissions"]["file_upload"] is wanted
    assert await groups.status("PATCH", "2/permission-set/", {"permissions": {"flying": True}}) == 400


@pytest.mark.group_fact("permissions-master")
async def test_permissions_are_for_master_administrators(groups):
    assert await groups.status("GET", "2/permission-set/") == 200
    assert await groups.status("GET", "2/permission-set/", token=DELEGATE) == 403
    body = {"permissions": {"file_upload": True}}
    assert await groups.status("PATCH", "2/permission-set/", body, token=DELEGATE) == 403


@pytest.mark.group_fact("permissions-or")
async def test_permissions_of_several_groups_combine_with_or(groups):
    async def permitted(**toggles):
        for ident, wanted in toggles.items():
            await groups.data("PATCH", f"{ident[1:]}/permission-set/", {"permissions": {"file_upload": wanted}})
        return groups.service.tenant.permitted(103, "file_upload")

    assert await permitted() is True
    assert await permitted(g3=False) is False
    assert await permitted(g5=True) is True
    assert await permitted(g5=False) is False
    assert await permitted(g3=None, g5=None) is True


@pytest.mark.group_fact("permissions-rank")
async def test_a_groups_permission_ranks_between_the_tenants_and_the_members(groups):
    tenant = groups.service.tenant
    await groups.data("PATCH", "3/permission-set/", {"permissions": {"video_generation": True}})
    assert [tenant.permitted(member, "video_generation") for member in (103, 104)] == [True, False]
    assert tenant.permitted(103, "video_generation", own=False) is False
    assert tenant.permitted(104, "video_generation", own=True) is True
