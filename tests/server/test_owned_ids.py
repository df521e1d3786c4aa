"""Another team's response cannot be polled, cancelled or chained: 404 here, and the gateway sees nothing."""

import hashlib

import pytest

from proxy.core.policy import KeyRef, Policy, Team, UnknownIds
from tests.proxies import RESPONSE, proxied


def team(name):
    return Team(name, (KeyRef(f"{name}-key", hashlib.sha256(name.encode()).digest()),))


def policy(unknown=None):
    return Policy(teams={name: team(name) for name in ("red", "blue")}, unknown_ids=unknown)


def bearer(name):
    return {"Authorization": f"Bearer {name}"}


@pytest.mark.parametrize("stream", [False, True])
async def test_another_teams_response_is_not_there(gateway, stream):
    async with proxied(gateway.url, policy(), auth="keys") as front:
        made = await front.post("/v1/responses", {**RESPONSE, "stream": stream, "store": True}, headers=bearer("red"))
        identifier = next(iter(front.running.parts.owners.all)) if stream else made.json["id"]
        before = len(gateway.journal)
        for method, path, body in (
            ("GET", f"/v1/responses/{identifier}", None),
            ("GET", f"/v1/responses/%72{identifier[1:]}", None),
            ("POST", f"/v1/responses/{identifier}/cancel", {}),
            ("POST", "/v1/responses", {**RESPONSE, "previous_response_id": identifier}),
        ):
            reply = await front.call(method, path, json=body, headers=bearer("blue"))
            assert (reply.status, reply.error["reason"]) == (404, "not_yours"), path
        assert len(gateway.journal) == before
        chained = await front.post(
            "/v1/responses", {**RESPONSE, "previous_response_id": identifier}, headers=bearer("red")
        )
        assert chained.status == 200


@pytest.mark.parametrize(
    ("unknown", "auth", "asked"), [(None, "keys", 0), (UnknownIds.PASS, "keys", 1), (None, "open", 1)]
)
async def test_an_id_nobody_was_given_is_refused_unless_the_policy_passes_it(gateway, unknown, auth, asked):
    rules = Policy(teams={"red": team("red")}, open_team="red", unknown_ids=unknown)
    async with proxied(gateway.url, rules, auth=auth) as front:
        reply = await front.get("/v1/responses/resp_nobody", headers=bearer("red"))
        assert reply.status == 404
        assert len(gateway.journal) == asked


async def test_an_id_is_owned_before_its_first_byte_is_sent(gateway):
    gateway.set_fault("slow", gate="rest", at=2)
    async with proxied(gateway.url) as front:
        response = await front.client.post(front.url + "/v1/responses", json={**RESPONSE, "stream": True})
        await response.content.readany()
        assert len(front.running.parts.owners) == 1
        gateway.open_gate("rest")
        await response.read()
