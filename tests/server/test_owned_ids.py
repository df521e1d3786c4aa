"""Another team's response cannot be polled, cancelled or chained: 404 here, and the gateway sees nothing."""

import asyncio
import hashlib

import pytest

from proxy.core.policy import KeyRef, Policy, Team, UnknownIds
from proxy.core.prices import FLAT
from proxy.core.riders import Own
from proxy.server import books as books_room
from proxy.stores.ledger.commit import LedgerUnavailable
from proxy.stores.ledger.sqlite import SqliteLedger
from proxy.units import credits_of, share_up
from tests.held import Late
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


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
@pytest.mark.parametrize(("unknown", "asked"), [(None, 0), (UnknownIds.PASS, 1)])
async def test_a_conversation_that_no_team_was_given_is_refused_unless_the_policy_passes_it(
    gateway, conversation, unknown, asked
):
    async with proxied(gateway.url, policy(unknown), auth="keys") as front:
        body = {**RESPONSE, "conversation": conversation}
        reply = await front.post("/v1/responses", body, headers=bearer("red"))
        assert len(gateway.journal) == asked
        if not asked:
            assert (reply.status, reply.error["reason"]) == (404, "not_yours")
        odd = await front.post("/v1/responses", {**RESPONSE, "conversation": {"id": [1]}}, headers=bearer("red"))
        assert (odd.status, odd.error["reason"]) == (400, "bad_request")


async def test_an_id_is_owned_before_its_first_byte_is_sent(gateway):
    gateway.set_fault("slow", gate="rest", at=2)
    async with proxied(gateway.url) as front:
        response = await front.client.post(front.url + "/v1/responses", json={**RESPONSE, "stream": True})
        await response.content.readany()
        assert len(front.running.parts.owners) == 1
        gateway.open_gate("rest")
        await response.read()


class Gated(Late):
    """A home whose commits of owners wait for a gate, or fail."""

    def __init__(self):
        super().__init__()
        self.asked, self.gate, self.away = asyncio.Event(), asyncio.Event(), False

    def submit(self, steps, *, soon=True):
        if any(isinstance(step, Own) for step in steps):
            return self.late(steps, soon=soon)
        return super().submit(steps, soon=soon)

    async def let_in(self, steps):
        self.asked.set()
        await self.gate.wait()
        if self.away:
            raise LedgerUnavailable("away")


@pytest.mark.parametrize("stream", [False, True])
async def test_no_byte_goes_out_before_the_owner_is_committed(gateway, stream):
    ledger = Gated()
    async with proxied(gateway.url, ledger=ledger) as front:
        head = asyncio.ensure_future(
            front.client.post(front.url + "/v1/responses", json={**RESPONSE, "stream": stream})
        )
        await ledger.asked.wait()
        body = asyncio.ensure_future(first_bytes(head))
        # Whatever the proxy wrote before this answer of it is here when the answer is.
        await front.get("/v1/-/health")
        seen = body.done(), await ledger.owners(0.0)
        ledger.gate.set()
        assert seen == (False, [])
        assert b"resp_" in await body
        assert len(await ledger.owners(0.0)) == 1


async def first_bytes(head):
    response = await head
    return await response.content.readany()


async def test_an_answer_that_is_paid_for_goes_out_although_the_ledger_is_away(gateway, monkeypatch):
    monkeypatch.setattr(books_room, "RETRY_S", 0.0)
    ledger = Gated()
    ledger.away = True
    ledger.gate.set()
    async with proxied(gateway.url, ledger=ledger) as front:
        reply = await front.post("/v1/responses", RESPONSE)
        assert reply.status == 200
        assert reply.json["id"] in front.running.parts.owners.all
        ledger.away = False
    assert len(await ledger.owners(0.0)) == 1, "it is kept until the ledger takes it"


async def test_a_restart_knows_whose_an_id_is(gateway, tmp_path):
    async def opened():
        return await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0)

    async with proxied(gateway.url, policy(), auth="keys", ledger=await opened()) as front:
        made = await front.post("/v1/responses", {**RESPONSE, "store": True}, headers=bearer("red"))
    async with proxied(gateway.url, policy(), auth="keys", ledger=await opened()) as front:
        path = f"/v1/responses/{made.json['id']}"
        assert (await front.get(path, headers=bearer("red"))).status == 200
        assert (await front.get(path, headers=bearer("blue"))).error["reason"] == "not_yours"


async def test_a_call_chained_to_an_answer_of_unknown_usage_holds_for_all_that_answer_could_be(front, gateway):
    """A caller chooses whether the usage of an answer is ever known here: by never polling, cancelling, or leaving."""
    asked = {**RESPONSE, "max_output_tokens": 2000, "store": True}
    alone = await front.post("/v1/responses", {**asked, "background": True})
    first = await front.request()
    child = await front.post("/v1/responses", {**asked, "background": True, "previous_response_id": alone.json["id"]})
    second = await front.request()
    await front.post("/v1/responses", {**asked, "previous_response_id": child.json["id"]})
    third = await front.request()
    tokens = share_up(FLAT.input_per_million, 2000, 1_000_000)
    held = [credits_of(event["held"]) for event in (first, second, third)]
    assert held[1] >= held[0] + tokens
    assert held[2] >= held[1] + tokens, "and for what that was chained to"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chained_call_holds_for_what_its_parent_used(gateway, tmp_path, stream):
    """The gateway reads the whole conversation again, and bills it."""
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0)
    chained = {**RESPONSE, "stream": stream, "store": True}
    async with proxied(gateway.url, ledger=ledger) as front:
        first = await front.post("/v1/responses", {**chained, "stream": False})
        alone = await front.request()
    usage = first.json["usage"]
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0)
    async with proxied(gateway.url, ledger=ledger) as front:
        await front.post("/v1/responses", {**chained, "previous_response_id": first.json["id"]})
        event = await front.request()
        await front.running.parts.books.written()
        _, child = await ledger.owners(0.0)
        assert child.input_tokens > usage["input_tokens"], "it is known for the next one in the chain"
    more = share_up(FLAT.input_per_million, usage["input_tokens"] + usage["output_tokens"], 1_000_000)
    assert credits_of(event["held"]) >= credits_of(alone["held"]) + more
