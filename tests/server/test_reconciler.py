"""The balance beside the ledger, on real sockets; a foreign spender on the same member moves no account."""

import aiohttp
import orjson
import pytest

from proxy.cli.ledger import doubts_text
from proxy.core.limits import Budget
from proxy.core.policy import Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.windows import Calendar, Per
from proxy.server.reconciler import BalanceUnknown, look
from tests.proxies import CHAT, proxied

CREDIT = 10**8
BUDGET = Budget("day", 5000 * CREDIT, Calendar(Per.DAY))
# What the emulated gateway charges for it.
PRICES = PriceTable(
    (
        Rule("models", "image-lab-large", Price(per_image=53 * CREDIT)),
        Rule("models", "gpt-*", Price(output_per_million=2 * 10**6 * CREDIT)),
    )
)
POLICY = Policy({"red": Team("red")}, open_team="red", budgets=(BUDGET,), prices=PRICES)
IMAGE = {"model": "image-lab-large", "prompt": "A hill."}


@pytest.fixture
async def front(gateway, tmp_path):
    gateway.set_credits("alpha", 10**4 * CREDIT)
    async with proxied(gateway.url, POLICY, data=str(tmp_path)) as running:
        yield running


async def compared(front, **body):
    status, said = await front.admin("POST", "/api/reconcile", body)
    assert status == 200, said
    return said


async def spent(front):
    await front.running.parts.books.written()
    _, said = await front.admin("GET", "/api/budgets/day")
    return said["accounts"][0]["spent"]


async def shown(front):
    async with front.client.get(f"{front.running.admin_url}/metrics") as answer:
        return await answer.text()


async def test_a_foreign_spender_is_reported_and_no_account_changes(front, gateway):
    # A balance that nobody asked for yet is not shown as nothing.
    assert "\nsluicegate_upstream_balance_credits " not in await shown(front)
    await compared(front)
    assert (await front.post("/v1/images/generate", IMAGE)).status == 200
    said = await compared(front)
    assert (said["fell"], said["settled"], said["drift"], said["verdict"]) == ("53", "53", "0", "agrees")

    # Another key of the same member, past the proxy.
    headers = {"Authorization": "Bearer sk-emu-alpha-2", "User-Agent": "somebody/1"}
    async with aiohttp.ClientSession() as other:
        url = f"{gateway.url}/v1/gateway/images/generate/"
        async with other.post(url, json=IMAGE, headers=headers) as answer:
            assert answer.status == 200
    before = await spent(front)
    said = await compared(front)
    assert (said["drift"], said["foreign"], said["verdict"]) == ("53", "53", "foreign")
    assert await spent(front) == before == "53"
    (told,) = [event for event in front.events if event["event"] == "ledger_drift"]
    assert (told["verdict"], told["drift"]) == ("foreign", "53")
    assert "sluicegate_ledger_drift_credits 53.0" in await shown(front)
    assert "sluicegate_upstream_balance_credits 9894.0" in await shown(front)

    assert (await compared(front, anew=True))["drift"] == "0"


async def test_a_correction_by_hand_is_no_drift(front):
    await compared(front)
    for amount in ("50", "-20"):
        asked = {"credits": amount, "team": "red", "reason": "goodwill"}
        status, said = await front.admin("POST", "/api/budgets/adjust", asked)
        assert status == 200, said
        assert (await compared(front))["drift"] == "0"
    assert (await front.post("/v1/images/generate", IMAGE)).status == 200
    said = await compared(front)
    assert (said["settled"], said["verdict"]) == ("53", "agrees")


async def test_what_is_put_on_the_balance_is_no_drift(front, gateway):
    await compared(front)
    gateway.set_credits("alpha", 2 * 10**4 * CREDIT)
    said = await compared(front)
    assert (said["put_on"], said["drift"], said["verdict"]) == ("10000", "0", "agrees")


async def test_a_span_goes_on_over_restarts(front, gateway, tmp_path):
    said = await compared(front)
    async with proxied(gateway.url, POLICY, data=str(tmp_path)) as again:
        _, kept = await again.admin("GET", "/api/reconcile")
        assert (kept["since"], kept["balance"]) == (said["since"], "10000")
    assert (tmp_path / "reconciliation.json").stat().st_mode & 0o777 == 0o600


async def test_a_gateway_that_does_not_tell_is_an_error_and_changes_nothing(front, gateway, tmp_path):
    _, said = await front.admin("GET", "/api/reconcile")
    assert said == {"compared": False, "unknown": [], "uncertain": []}
    async with proxied(gateway.url, POLICY, data=str(tmp_path), balance_field="left.credits") as other:
        status, said = await other.admin("POST", "/api/reconcile", {})
        assert status == 502
        assert "has no balance in 'left.credits'; see --balance-field" in said["error"]
    async with proxied("http://127.0.0.1:1", POLICY, data=str(tmp_path)) as other:
        with pytest.raises(BalanceUnknown):
            await look(other.running.parts)


async def test_callers_that_bring_their_own_keys_have_their_own_balances(gateway, tmp_path):
    flags = {"auth": "keys", "credential": "caller", "data": str(tmp_path)}
    async with proxied(gateway.url, POLICY, key=None, **flags) as front:
        status, said = await front.admin("POST", "/api/reconcile", {})
        assert status == 502
        assert "callers bring their own gateway keys" in said["error"]
        assert not gateway.journal


async def test_a_call_in_doubt_is_listed_and_resolved_by_hand(front, gateway):
    """The gateway failed and may have charged: nothing is booked until somebody says so."""
    gateway.set_fault("500")
    assert (await front.post("/v1/images/generate", IMAGE)).status == 500
    await front.running.parts.books.written()
    _, said = await front.admin("GET", "/api/ledger/doubts")
    (doubt,) = said["uncertain"]
    assert (doubt["team"], doubt["model"], doubt["held"], doubt["charged"]) == ("red", "image-lab-large", "53", "0")
    asked = {"hold": doubt["hold"], "credits": "53", "reason": "on the gateway's bill"}
    status, said = await front.admin("POST", "/api/ledger/resolve", asked)
    assert (status, said["credits"], said["was"]) == (200, "53", "0")
    assert await spent(front) == "53"
    assert (await front.admin("GET", "/api/ledger/doubts"))[1]["uncertain"] == []
    assert (await front.admin("POST", "/api/ledger/resolve", asked))[0] == 409
    assert (await front.admin("POST", "/api/ledger/resolve", {**asked, "hold": "none"}))[0] == 404
    assert (await front.admin("POST", "/api/ledger/resolve", {**asked, "credits": "-1"}))[0] == 400


async def test_what_somebody_has_to_decide_is_listed_before_what_the_gateway_failed(front, gateway):
    gateway.set_fault("500")
    assert (await front.post("/v1/images/generate", IMAGE)).status == 500
    gateway.set_fault("reset-before-head")
    assert (await front.post("/v1/chat/completions", {**CHAT, "max_tokens": 10})).status == 502
    await front.running.parts.books.written()
    _, said = await front.admin("GET", "/api/ledger/doubts")
    told = [(doubt["charged"], doubt["to_decide"]) for doubt in said["uncertain"]]
    assert told == [("20", True), ("0", False)]
    _, page = await front.admin("GET", "/upstream.json")
    assert (page["doubts"], page["doubts_at_nothing"]) == (1, 1)

    guessed, failed = (doubt["hold"] for doubt in said["uncertain"])
    short, long = (doubts_text(said, whole=whole) for whole in (False, True))
    assert guessed in short
    assert failed not in short
    assert "1 call ended in doubt at 0 credits" in short
    assert long.index(guessed) < long.index(failed)
    assert "Besides" not in long


async def test_more_than_a_call_held_is_booked_only_by_force(front, gateway):
    gateway.set_fault("500")
    assert (await front.post("/v1/images/generate", IMAGE)).status == 500
    await front.running.parts.books.written()
    (doubt,) = (await front.admin("GET", "/api/ledger/doubts"))[1]["uncertain"]
    asked = {"hold": doubt["hold"], "credits": "53.00000001", "reason": "on the gateway's bill"}
    status, said = await front.admin("POST", "/api/ledger/resolve", asked)
    assert status == 409
    assert "the call of team red held 53" in said["error"]
    assert "--force" in said["error"]
    assert await spent(front) == "0"
    for never in ({"credits": "-1"}, {"reason": " "}):
        assert (await front.admin("POST", "/api/ledger/resolve", {**asked, **never, "force": "yes"}))[0] == 400
    assert (await front.admin("POST", "/api/ledger/resolve", {**asked, "force": "yes"}))[0] == 200
    assert await spent(front) == "53.00000001"


def test_the_answer_is_read_exactly():
    from proxy.server.reconciler import _read

    assert _read(orjson.dumps({"a": {"b": "0.1"}}), "a.b") == 10_000_000
    assert _read(b'{"credits": 0.1}', "credits") == 10_000_000
    for body in (b"[]", b"{}", b'{"credits": null}', b'{"credits": -1}', b"<html>", b'{"credits": true}'):
        with pytest.raises(BalanceUnknown):
            _read(body, "credits")
