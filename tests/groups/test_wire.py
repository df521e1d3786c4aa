import logging

import pytest

from proxy.config.secret import Secret
from proxy.config.values import base_url
from proxy.emulator.groups.accounts import access_token
from proxy.emulator.groups.service import Failure
from proxy.groups.client import group_client
from proxy.groups.faults import (
    Busy,
    Failing,
    NotFound,
    NotLoggedIn,
    NotSent,
    Refused,
    RuleBroken,
    Unanswered,
    Unreadable,
)
from tests.groups.services import at_once, client_of, targets

HTML = Failure(502, b"<html>\n<h1>Bad gateway</h1></html>", "text/html")


async def test_reads_are_tried_again_and_writes_are_not(service, client):
    service.failing += [Failure(503), HTML, Failure(500)]
    assert (await client.read(1)).id == 1
    assert targets(service) == ["GET 1/"] * 4
    service.failing += [Failure(503)]
    with pytest.raises(Failing):
        await client.delete(3)
    assert targets(service)[4:] == ["DELETE 3/"]


async def test_trying_again_ends(service, client):
    service.failing += [Failure(503)] * 9
    with pytest.raises(Failing, match="503"):
        await client.read(1)
    assert len(service.journal) == 4


async def test_pauses_grow_and_a_retry_after_is_kept_to_a_bound(service):
    paused = []

    async def pause(seconds):
        paused.append(seconds)

    async with client_of(service, pause=pause) as client:
        service.failing += [Failure(503)] * 3
        await client.read(1)
        service.failing += [Failure(503, headers={"Retry-After": "7"}), Failure(429, headers={"Retry-After": "9999"})]
        await client.read(1)
        service.failing += [Failure(429, headers={"Retry-After": "soon"})]
        await client.delete(3)
    assert paused == [0.5, 1.0, 2.0, 7.0, 60.0, 0.5]


async def test_a_write_without_an_answer_may_have_happened_and_is_not_repeated(service, client):
    service.break_after(0, acted=True)
    with pytest.raises(Unanswered, match="DELETE"):
        await client.delete(3)
    assert len(service.journal) == 1
    service.outage = None
    with pytest.raises(NotFound):
        await client.read(3)


async def test_a_service_that_is_not_there_was_sent_nothing(service):
    async with client_of(service) as client:
        await service.stop()
        with pytest.raises(NotSent, match="cannot be reached"):
            await client.delete(3)
        assert client.wire.calls == 4


@pytest.mark.parametrize(
    ("failure", "fault", "says"),
    [
        (Failure(401), NotLoggedIn, "get a new one from the login"),
        (Failure(418, b"short and stout", "text/plain"), Refused, "short and stout"),
        (Failure(400, b'{"detail":"no"}'), RuleBroken, "no"),
        (Failure(400, b""), RuleBroken, "no reason given"),
        (Failure(429), Busy, "429"),
        (Failure(200, b"<html>login</html>", "text/html"), Unreadable, "--tenant-url"),
        (Failure(200, b'{"success":false}'), Unreadable, "envelope"),
        (Failure(302), Unreadable, "redirect"),
        (HTML, Failing, "<html> <h1>Bad gateway</h1></html>"),
    ],
)
async def test_whatever_comes_instead_of_an_answer_is_a_typed_error(service, client, failure, fault, says):
    service.failing += [failure] * 4
    with pytest.raises(fault, match=says):
        await client.delete(3)


async def test_a_redirect_is_not_followed_as_the_token_would_go_along(service, client):
    service.failing.append(Failure(302, headers={"Location": f"{service.url}/v1/admin/member-groups/1/"}))
    with pytest.raises(Unreadable, match="redirect"):
        await client.read(2)
    assert targets(service) == ["GET 2/"]


async def test_fields_that_are_missing_or_of_another_kind_are_named(service, client):
    for body, says in ((b'{"success":true,"data":{"id":"7"}}', "quota_source"), (b'{"success":true}', "quota_source")):
        service.failing.append(Failure(200, body))
        with pytest.raises(Unreadable, match=says):
            await client.read(7)


async def test_the_token_is_in_no_error_and_in_no_log(service, caplog):
    caplog.set_level(logging.DEBUG)
    token = access_token("inactive")
    async with group_client(base_url(service.url), Secret(token), at_once) as client:
        with pytest.raises(Refused) as caught:
            await client.read(1)
        await service.stop()
        with pytest.raises(NotSent) as lost:
            await client.read(1)
    assert service.journal[0].header("x-access-token") == token
    assert token not in f"{caught.value!r} {lost.value!r} {client.wire._token} {caplog.text}"
