import pytest

from tests.emulator.groups.caller import DELEGATE, MEMBER

ITEM = {
    "member_count", "group_credit_quota", "member_credit_quota", "credit_used_month", "credit_used_30d",
    "credit_projected_month", "credit_used_weekly", "ancestors", "allowed_model_count", "total_model_count",
}  # fmt: skip


async def overview(groups, query="", **rest):
    return await groups.data("GET", f"usage-overview/{query}", **rest)


async def ids(groups, query="", **rest):
    return [row["id"] for row in (await overview(groups, query, **rest))["results"]]


@pytest.mark.group_fact("overview")
async def test_an_overview_item_has_the_documented_fields(groups):
    (item,) = (await overview(groups, "?parent_id=2"))["results"]
    assert item.keys() > ITEM
    assert [row["id"] for row in item["ancestors"]] == [2]
    assert all(isinstance(number, int) for number in item["credit_used_weekly"])
    assert (item["member_count"], item["allowed_model_count"], item["total_model_count"]) == (1, 20, 20)


@pytest.mark.group_fact("overview-named")
async def test_an_overview_item_carries_id_names_type_and_parent(groups):
    (item,) = (await overview(groups, "?parent_id=2"))["results"]
    assert [item[name] for name in ("id", "ko_name", "en_name", "member_group_type_id", "parent_id")] == [
        3, "전산과", "Computing", 1, 2
    ]  # fmt: skip


@pytest.mark.group_fact("overview-scope")
async def test_the_overview_of_a_group_administrator_shows_groups_of_theirs(groups):
    assert sorted(await ids(groups)) == [1, 2, 3, 4, 5, 6]
    assert sorted(await ids(groups, token=DELEGATE)) == [2, 3]


@pytest.mark.group_fact("overview-type")
async def test_the_overview_is_filtered_by_type(groups):
    assert sorted(await ids(groups, "?member_group_type_id=1")) == [2, 3]


@pytest.mark.group_fact("overview-parent")
async def test_the_overview_shows_direct_children_of_a_parent(groups):
    await groups.create(member_group_type_id=1, parent_id=3)
    assert await ids(groups, "?parent_id=2") == [3]


@pytest.mark.group_fact("overview-search")
async def test_the_overview_is_searched_by_text(groups):
    assert await ids(groups, "?search_term=SEO") == [4]
    assert await ids(groups, "?search_term=서울") == [4]


@pytest.mark.group_fact("overview-order")
async def test_the_overview_is_ordered_by_three_fields_both_ways(groups):
    await groups.data("PATCH", "1/", {"credit_quota": 100})
    rows = (await overview(groups))["results"]
    used = {row["id"]: row["credit_used_month"] for row in rows}
    limits = {row["id"]: row["group_credit_quota"] for row in rows}
    share = {ident: used[ident] / limits[ident] if limits[ident] else 0 for ident in used}
    names = {row["id"]: row["en_name"] for row in rows}
    for field, figures in (("credit_used_month", used), ("utilization", share), ("name", names)):
        for direction, turned in (("asc", False), ("desc", True)):
            found = [figures[ident] for ident in await ids(groups, f"?order_by={field}.{direction}")]
            assert found == sorted(figures.values(), reverse=turned)
    for order in ("colour.asc", "name", "name.up"):
        assert await groups.status("GET", f"usage-overview/?order_by={order}") == 400


@pytest.mark.group_fact("overview-pages")
async def test_the_overview_comes_in_pages(groups):
    whole = await overview(groups, "?size=4")
    assert whole["pagination"] == {"page": 1, "total_pages": 2, "total_items": 6}
    second = await overview(groups, "?size=4&page=2")
    assert (len(whole["results"]), len(second["results"]), second["pagination"]["page"]) == (4, 2, 2)
    assert not {row["id"] for row in whole["results"]} & {row["id"] for row in second["results"]}
    for query in ("?page=0", "?size=0", "?page=x"):
        assert await groups.status("GET", f"usage-overview/{query}") == 400


@pytest.mark.group_fact("overview-defaults")
async def test_a_page_is_the_first_of_100_unless_asked_otherwise(groups):
    for number in range(100):
        groups.service.tenant.create(ko_name=f"{number} ko", en_name=f"{number}")
    whole = await overview(groups)
    assert (len(whole["results"]), whole["pagination"]) == (100, {"page": 1, "total_pages": 2, "total_items": 106})


@pytest.mark.group_fact("list-all")
async def test_the_list_of_all_groups_is_paged_searched_and_sorted_and_hides_hidden_ones(groups):
    path = "/v1/member-groups/"
    await groups.data("PATCH", "1/", {"is_visible_to_admin_only": True})
    value = await groups.data("GET", f"{path}?size=2&page=2&order_by=name.desc", token=MEMBER)
    assert [row["en_name"] for row in value["results"]] == ["Hydrology", "Engineering"]
    assert value["pagination"] == {"page": 2, "total_pages": 3, "total_items": 5}
    found = await groups.data("GET", f"{path}?search_term=seo", token=MEMBER)
    assert [row["id"] for row in found["results"]] == [4]


@pytest.mark.group_fact("list-managed")
async def test_the_list_of_managed_groups_shows_those_of_the_caller(groups):
    path = "/v1/member-groups/managed/"
    rows = (await groups.data("GET", path, token=DELEGATE))["results"]
    assert [(row["id"], row["en_name"]) for row in rows] == [(3, "Computing"), (2, "Engineering")]
    assert (await groups.data("GET", path, token=MEMBER))["results"] == []
