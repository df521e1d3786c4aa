from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from yarl import URL

from proxy.emulator.groups.accounts import access_token
from proxy.emulator.groups.service import Failure, running_groups
from tests.proxies import proxied

MASTER, DELEGATE = access_token("master"), access_token("delegate")


@dataclass
class Desk:
    """A caller of the admin listener in front of a member-group service."""

    front: Any
    service: Any

    async def call(self, method, path, body=None, *, token=MASTER, headers=None):
        given = {**({"x-access-token": token} if token else {}), **(headers or {})}
        url = URL(self.front.running.admin_url + path, encoded=True)
        async with self.front.client.request(method, url, json=body, headers=given, allow_redirects=False) as response:
            return response.status, await response.json(), response.headers

    async def status(self, *args, **rest):
        return (await self.call(*args, **rest))[0]

    @property
    def audit(self):
        return [event for event in self.front.events if event["event"] == "audit"]


@asynccontextmanager
async def desk_of(**flags):
    async with (
        running_groups() as service,
        proxied("http://127.0.0.1:9", **{"tenant_url": service.url, **flags}) as front,
    ):
        yield Desk(front, service)


@pytest.fixture
async def desk():
    async with desk_of() as made:
        yield made


async def test_answers_are_those_of_the_service(desk):
    status, value, _ = await desk.call("GET", "/v1/admin/member-groups/2/")
    assert (status, value["success"], value["data"]["en_name"]) == (200, True, "Engineering")
    assert await desk.status("GET", "/v1/admin/member-groups/99/") == 404
    status, value, _ = await desk.call("PATCH", "/v1/admin/member-groups/2/", {"credit_quota": 7})
    assert (status, value["data"]["quota_source"]["group_credit_quota"]) == (200, 7)
    _, value, _ = await desk.call("GET", "/v1/admin/member-groups/usage-overview/?search_term=%EC%84%9C%EC%9A%B8")
    assert [row["id"] for row in value["data"]["results"]] == [4]
    assert await desk.status("GET", "/v1/member-groups/managed/") == 200


async def test_rights_are_the_callers_own_and_never_ours(desk):
    assert await desk.status("GET", "/v1/admin/member-groups/4/", token=DELEGATE) == 403
    assert await desk.status("GET", "/v1/admin/member-groups/4/", token=None) == 401
    assert len(desk.service.journal) == 1
    async with desk_of(tenant_token_file=None) as other:
        assert await other.status("GET", "/v1/member-groups/", token=None) == 401


async def test_the_services_token_of_this_process_stays_here(tmp_path):
    file = tmp_path / "token"
    file.write_text(MASTER)
    file.chmod(0o600)
    async with desk_of(tenant_token_file=str(file)) as desk:
        assert await desk.status("GET", "/v1/admin/member-groups/4/", token=DELEGATE) == 403
        assert await desk.status("GET", "/v1/admin/member-groups/4/", token=None) == 401
        assert [seen.header("x-access-token") for seen in desk.service.journal] == [DELEGATE]


async def test_a_session_comes_with_the_services_own_origin(desk):
    cookie = {"Cookie": "other=1; sessionId=emu-session-master"}
    assert await desk.status("PATCH", "/v1/admin/member-groups/2/", {}, token=None, headers=cookie) == 200
    seen = desk.service.journal[-1]
    assert (seen.header("Origin"), seen.header("Cookie")) == (desk.service.url, "sessionId=emu-session-master")


async def test_pages_of_others_are_refused(desk):
    cookie = {"Cookie": "sessionId=emu-session-master"}
    for origin in ("https://evil.example", "null"):
        headers = {**cookie, "Origin": origin}
        assert await desk.status("PATCH", "/v1/admin/member-groups/2/", {}, token=None, headers=headers) == 403
    own = {**cookie, "Origin": desk.front.running.admin_url}
    assert await desk.status("PATCH", "/v1/admin/member-groups/2/", {}, token=None, headers=own) == 200
    assert len(desk.service.journal) == 1


async def test_only_what_the_service_needs_of_the_head_goes_there(desk):
    headers = {"Authorization": "Bearer admin", "X-Forwarded-For": "1.2.3.4", "Accept": "text/html"}
    await desk.call("GET", "/v1/member-groups/", headers=headers)
    names = {name.lower() for name, _ in desk.service.journal[0].headers}
    assert names == {"host", "x-access-token", "accept", "accept-encoding", "user-agent", "via"}


@pytest.mark.parametrize("path", ["/v1/admin/member-groups/2", "/v1/admin/member-groups/2/"])
async def test_a_last_slash_that_is_missing_is_added(desk, path):
    assert await desk.status("GET", path) == 200
    assert desk.service.journal[0].target == "/v1/admin/member-groups/2/"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/admin/member-groups/%2e%2e/",
        "/v1/admin/member-groups/2%2Fmembers/",
        "/v1/admin/member-groups//2/",
        "/v1/member-groupsx/",
        "/v1/admin/member-groups/a.b/",
    ],
)
async def test_no_path_leads_out_of_the_service(desk, path):
    assert await desk.status("GET", path) == 404
    assert len(desk.service.journal) == 0


@pytest.mark.parametrize(
    ("failure", "status", "says"),
    [
        (Failure(502, b"<html>\n<h1>Bad gateway</h1>", "text/html"), 502, "<html> <h1>Bad gateway</h1>"),
        (Failure(403, b"error code: 1010", "text/plain"), 403, "error code: 1010"),
        (Failure(500, b""), 500, "no reason given"),
        (Failure(200, b"<html>login</html>", "text/html"), 502, "something else than JSON"),
        (Failure(302), 502, "redirect"),
    ],
)
async def test_what_is_no_json_becomes_json(desk, failure, status, says):
    desk.service.failing.append(failure)
    told, value, _ = await desk.call("GET", "/v1/member-groups/")
    assert (told, value["success"], says in value["message"]) == (status, False, True)


async def test_a_redirect_is_not_followed(desk):
    desk.service.failing.append(Failure(302, headers={"Location": f"{desk.service.url}/v1/member-groups/"}))
    assert await desk.status("GET", "/v1/member-groups/managed/") == 502
    assert len(desk.service.journal) == 1


async def test_only_the_body_and_retry_after_come_back(desk):
    headers = {"Retry-After": "9", "Set-Cookie": "a=b", "Access-Control-Allow-Origin": "*"}
    desk.service.failing.append(Failure(429, headers=headers))
    status, _, told = await desk.call("GET", "/v1/member-groups/")
    assert (status, told["Retry-After"]) == (429, "9")
    assert not {"Set-Cookie", "Access-Control-Allow-Origin"} & told.keys()


async def test_every_change_is_on_record_with_who_what_and_status(desk):
    await desk.call("PATCH", "/v1/admin/member-groups/2/", {"credit_quota": 7})
    await desk.call("DELETE", "/v1/admin/member-groups/4/")
    await desk.call("DELETE", "/v1/admin/member-groups/4/", token=DELEGATE)
    await desk.call("GET", "/v1/admin/member-groups/4/")
    first, second, third = desk.audit
    assert {name: first[name] for name in ("what", "status", "body")} == {
        "what": "PATCH /v1/admin/member-groups/2/", "status": 200, "body": '{"credit_quota": 7}',
    }  # fmt: skip
    assert (second["status"], third["status"]) == (400, 403)
    assert first["who"] == second["who"] != third["who"]
    assert MASTER not in str(desk.front.events)


async def test_a_refused_change_is_on_record_too(desk):
    await desk.call("DELETE", "/v1/admin/member-groups/2/", token=None)
    assert [(event["who"], event["status"]) for event in desk.audit] == [("nobody", 401)]


async def test_a_change_without_an_answer_is_on_record_and_not_repeated(desk):
    desk.service.break_after(0, acted=True)
    status, value, _ = await desk.call("DELETE", "/v1/admin/member-groups/3/")
    assert (status, "may have been made" in value["message"]) == (502, True)
    assert (len(desk.service.journal), desk.audit[0]["status"]) == (1, 502)


async def test_a_service_that_is_not_there_is_502(desk):
    await desk.service.stop()
    status, value, _ = await desk.call("GET", "/v1/member-groups/")
    assert (status, "cannot be reached" in value["message"]) == (502, True)


async def test_a_relay_for_reading_changes_nothing():
    async with desk_of(tenant_relay="read") as reading:
        assert await reading.status("GET", "/v1/admin/member-groups/2/") == 200
        assert await reading.status("PATCH", "/v1/admin/member-groups/2/", {"credit_quota": 7}) == 403
        assert len(reading.service.journal) == 1
        assert reading.audit[0]["status"] == 403


@pytest.mark.parametrize("flags", [{"tenant_relay": "off"}, {"tenant_url": None}])
async def test_without_an_address_or_switched_off_there_is_no_relay(flags):
    async with desk_of(**flags) as desk:
        assert await desk.status("GET", "/v1/member-groups/") == 404
        assert len(desk.service.journal) == 0


async def test_methods_of_no_use_are_405(desk):
    assert await desk.status("PUT", "/v1/admin/member-groups/2/", {}) == 405
    assert len(desk.service.journal) == 0


async def test_a_relay_that_points_at_itself_ends(desk):
    via = {"Via": f"1.1 {desk.front.running.parts.instance}"}
    assert await desk.status("GET", "/v1/member-groups/", headers=via) == 508


async def test_the_guard_of_the_listener_holds_for_the_relay(tmp_path):
    file = tmp_path / "admin"
    file.write_text("admin-token-123")
    file.chmod(0o600)
    async with desk_of(admin_token_file=str(file)) as desk:
        assert await desk.status("GET", "/v1/member-groups/") == 401
        admin = {"Authorization": "Bearer admin-token-123"}
        assert await desk.status("GET", "/v1/member-groups/", headers=admin) == 200
        assert await desk.status("GET", "/v1/member-groups/", headers={**admin, "Host": "evil.example"}) == 403
