import aiohttp
import pytest

from proxy.emulator.groups.accounts import access_token
from proxy.emulator.groups.service import Failure
from tests.emulator.groups.caller import DELEGATE, INACTIVE, MASTER, MEMBER, NEW, SOUTH, serving

LISTS = ("/v1/member-groups/", "/v1/member-groups/managed/")


@pytest.mark.group_fact("envelope")
async def test_answers_come_in_the_success_envelope(groups):
    status, value = await groups.call("GET", "1/")
    assert (status, value.keys(), value["success"]) == (200, {"success", "data"}, True)
    assert await groups.call("DELETE", "3/") == (200, {"success": True})


@pytest.mark.group_fact("path")
async def test_paths_are_those_of_the_table_with_their_last_slash(groups):
    assert await groups.status("GET", "1/") == 200
    assert await groups.status("GET", "1") == 404
    assert await groups.status("GET", "/v1/gateway/member-groups/1/") == 404
    assert await groups.status("PUT", "1/", {}) == 405


@pytest.mark.group_fact("body")
async def test_a_body_that_fits_no_endpoint_is_400(groups):
    for body in (["a"], None, {"ko_name": 1}):
        assert await groups.status("PATCH", "1/", body) == 400


@pytest.mark.group_fact("no-gateway-key")
async def test_the_gateway_key_is_not_accepted(groups):
    bearer = {"Authorization": "Bearer sk-emu-alpha-1"}
    assert await groups.status("GET", "1/", token=None, headers=bearer) == 401
    assert await groups.status("GET", "1/", token=None) == 401


@pytest.mark.group_fact("token")
async def test_an_access_token_is_a_signed_one_that_is_not_over(groups):
    head, claims, signature = MASTER.split(".")
    assert await groups.status("GET", "1/", token=f"{head}.{claims}.{signature}") == 200
    for token in ("anything", f"{head}.{claims}.{signature[::-1]}", "emu-session-master"):
        assert await groups.status("GET", "1/", token=token) == 401, token


@pytest.mark.group_fact("token-expired")
async def test_a_token_that_is_over_is_401(groups):
    async with serving(wall=lambda: 1000.0) as early:
        assert await early.status("GET", "1/", token=access_token("master", expires_s=1001)) == 200
        assert await early.status("GET", "1/", token=access_token("master", expires_s=1000)) == 401
    assert await groups.status("GET", "1/", token=access_token("master", expires_s=1001)) == 401


@pytest.mark.group_fact("session")
async def test_a_session_is_believed_from_its_own_origin_only(groups):
    cookie = {"Cookie": "sessionId=emu-session-master"}
    own = {**cookie, "Origin": groups.service.url}
    assert await groups.status("GET", "1/", token=None, headers=cookie) == 200
    assert await groups.status("PATCH", "1/", {}, token=None, headers=cookie) == 403
    assert await groups.status("PATCH", "1/", {}, token=None, headers={**cookie, "Origin": "https://evil"}) == 403
    assert await groups.status("PATCH", "1/", {}, token=None, headers=own) == 200
    assert await groups.status("GET", "1/", token=None, headers={"Cookie": f"sessionId={MASTER}"}) == 401


@pytest.mark.group_fact("active")
async def test_an_inactive_account_is_403(groups):
    assert await groups.status("GET", "1/", token=INACTIVE) == 403


@pytest.mark.group_fact("administrator")
async def test_an_account_without_administrator_rights_is_403(groups):
    groups.service.tenant.groups[3].admins[103] = True
    assert await groups.status("GET", "3/", token=MEMBER) == 403


@pytest.mark.group_fact("delegate")
async def test_a_group_administrator_manages_delegated_groups_only(groups):
    await groups.data("POST", "2/admins/", {"member_id": 102, "include_descendants": False})
    assert [await groups.status("GET", f"{ident}/", token=DELEGATE) for ident in (2, 3, 4)] == [200, 403, 403]


@pytest.mark.group_fact("delegate-below")
async def test_included_descendants_are_managed_too(groups):
    assert [await groups.status("GET", f"{ident}/", token=DELEGATE) for ident in (2, 3, 4)] == [200, 200, 403]
    assert await groups.status("POST", "", NEW, token=DELEGATE) == 403
    below = {**NEW, "member_group_type_id": 1, "parent_id": 2}
    assert await groups.status("POST", "", below, token=DELEGATE) == 200
    assert await groups.status("PATCH", "3/parent/", {"parent_id": None}, token=DELEGATE) == 403


@pytest.mark.group_fact("tenants")
async def test_tenants_know_nothing_of_each_other(groups):
    assert [await groups.status("GET", f"{ident}/") for ident in (1, 101)] == [200, 404]
    assert [await groups.status("GET", f"{ident}/", token=SOUTH) for ident in (1, 101)] == [404, 200]
    assert await groups.status("POST", "1/members/", {"member_ids": [201]}) == 404
    assert await groups.status("PATCH", "2/parent/", {"parent_id": 101}) == 400
    rows = (await groups.data("GET", "usage-overview/", token=SOUTH))["results"]
    assert [row["id"] for row in rows] == [101]


@pytest.mark.group_fact("lists")
async def test_everybody_with_a_login_may_list_groups(groups):
    assert [await groups.status("GET", path, token=MEMBER) for path in LISTS] == [200, 200]
    assert [await groups.status("GET", path, token=None) for path in LISTS] == [401, 401]
    assert [await groups.status("GET", path, token=INACTIVE) for path in LISTS] == [403, 403]


async def test_failures_and_outages_can_be_asked_for_and_everything_is_remembered(groups):
    groups.service.failing.append(Failure(503))
    assert [await groups.status("GET", "1/") for _ in range(2)] == [503, 200]
    assert [seen.status for seen in groups.service.journal] == [503, 200]
    groups.service.break_after(1, acted=True)
    await groups.data("PATCH", "1/", {"ko_name": "다른"})
    for _ in range(2):
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await groups.call("DELETE", "3/")
    groups.service.outage = None
    assert (await groups.call("GET", "3/"))[0] == 404
    groups.service.reset()
    assert (await groups.read(1))["ko_name"] == "기본"
    assert len(groups.service.journal) == 1


async def test_the_first_of_an_outage_is_carried_out_only_when_asked(groups):
    groups.service.break_after(0)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await groups.call("DELETE", "3/")
    groups.service.outage = None
    assert (await groups.call("GET", "3/"))[0] == 200
