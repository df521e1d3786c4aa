"""Keys issued by command, on a running proxy: known to the next call, and refused by the next call."""

import asyncio
import hashlib
import re
from dataclasses import replace

import pytest

from proxy.config.policyfile import load_policies
from proxy.core.keyring import Keyring
from proxy.core.policy import KeyRef, Policy, Team
from proxy.server.keys import FILE, Keys, KeyTaken
from proxy.stores.ledger.contract import CannotOpen
from proxy.stores.ledger.memory import MemoryLedger
from proxy.stores.ledger.sqlite import SqliteLedger
from tests.proxies import proxied

POLICY = Policy(
    {"red": Team("red", (KeyRef("ci", hashlib.sha256(b"sk-ci").digest()),)), "blue": Team("blue")}, open_team=None
)


@pytest.fixture
async def front(gateway, tmp_path):
    async with proxied(gateway.url, POLICY, auth="keys", data=str(tmp_path)) as running:
        yield running


async def issue(front, status=200, **asked):
    found, said = await front.admin("POST", "/api/keys", asked)
    assert found == status, said
    return said


async def called(front, key):
    reply = await front.get("/-/budget", headers={"Authorization": f"Bearer {key}"})
    return (reply.json["team"], reply.json["key"]) if reply.status == 200 else reply.status


async def test_a_key_is_taken_by_the_next_call_and_refused_by_the_next(front):
    said = await issue(front, team="blue", id="anna", note="a laptop")
    assert re.fullmatch(r"sg-[0-9a-f]{48}", said["key"])
    assert await called(front, said["key"]) == ("blue", "anna")
    assert await called(front, "sk-ci") == ("red", "ci")
    assert await called(front, said["key"][:-1] + "x") == 401
    assert (await front.admin("DELETE", "/api/keys/anna"))[1]["state"] == "revoked"
    assert await called(front, said["key"]) == 401
    assert (await front.admin("DELETE", "/api/keys/anna"))[0] == 409


async def test_a_key_is_shown_once_and_stands_nowhere(front, tmp_path):
    said = await issue(front, team="blue", id="anna")
    secret = said["key"].removeprefix("sg-")
    assert await called(front, said["key"]) == ("blue", "anna")
    _, shown = await front.admin("GET", "/api/keys")
    assert [(key["id"], key["team"], key["state"]) for key in shown["keys"]] == [
        ("ci", "red", "active"),
        ("anna", "blue", "active"),
    ]
    for text in (str(shown), str(front.events), str(front.ledger.shelves.keys)):
        assert secret not in text
        assert hashlib.sha256(said["key"].encode()).hexdigest() not in text
    assert [event["what"] for event in front.audits] == ["POST /api/keys"]
    file = tmp_path / FILE
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_key_that_takes_over_leaves_the_other_its_overlap(front):
    first = await issue(front, team="blue", id="anna")
    second = await issue(front, replaces="anna", id="anna2", overlap="1d")
    assert second["replaces"]["ends_at"] is not None
    assert await called(front, first["key"]) == ("blue", "anna")
    assert await called(front, second["key"]) == ("blue", "anna2")
    refused = await issue(front, 409, replaces="anna", id="anna4")
    assert "replaced already" in str(refused)
    assert await called(front, first["key"]) == ("blue", "anna"), "the day it was promised holds"
    third = await issue(front, replaces="anna2", id="anna3")
    assert await called(front, second["key"]) == 401
    assert await called(front, third["key"]) == ("blue", "anna3")
    await issue(front, 409, replaces="anna2")


async def test_a_key_ends_by_itself(front):
    said = await issue(front, team="blue", expires="1h")
    found = front.running.parts.keys.ring
    assert found.find(said["key"], front.running.parts.wall()) is not None
    assert found.find(said["key"], front.running.parts.wall() + 3601) is None


async def test_a_team_that_leaves_the_policy_takes_its_keys_along(front):
    said = await issue(front, team="blue", id="anna")
    front.running.parts.state.policy = Policy({"red": POLICY.teams["red"]})
    assert await called(front, said["key"]) == 401
    _, shown = await front.admin("GET", "/api/keys")
    assert shown["keys"][-1]["state"] == "no such team"


async def test_refused_keys_are_not_told_apart_by_their_answer(front, tmp_path):
    revoked = (await issue(front, team="blue", id="anna"))["key"]
    await front.admin("DELETE", "/api/keys/anna")
    expired = (await issue(front, team="blue", id="bo", expires="1h"))["key"]
    ring = front.running.parts.keys.ring
    ended = [replace(one, expires_s=1.0) if one.id == "bo" else one for one in ring.issued.values()]
    front.running.parts.keys.ring = Keyring(bytes.fromhex((tmp_path / FILE).read_text()), ended)
    answers = set()
    for key in (revoked, expired, "sg-" + "0" * 48, "sk-other", "x"):
        reply = await front.get("/-/budget", headers={"x-api-key": key})
        answers.add((reply.status, reply.body.replace(reply.json["request_id"].encode(), b"")))
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, 400),
        ({"team": "green"}, 404),
        ({"team": "red", "id": "ci"}, 409),
        ({"team": "red", "id": "a b"}, 400),
        ({"team": "red", "expires": "2020-01-01"}, 400),
        ({"team": "red", "expires": "soon"}, 400),
        ({"team": "red", "overlap": "1d"}, 400),
        ({"team": "red", "note": "x" * 201}, 400),
        ({"replaces": "nobody"}, 404),
        ({"replaces": "ci"}, 409),
    ],
)
async def test_what_cannot_be_issued_is_refused(front, asked, status):
    await issue(front, status, **asked)
    assert front.running.parts.keys.ring.issued == {}


async def test_of_two_at_once_with_one_id_one_gets_it(tmp_path):
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0)
    keys = Keys(ledger, tmp_path, lambda: 0.0)
    both = (keys.issue("x", "red", expires_s=None, note="") for _ in range(2))
    found = await asyncio.gather(*both, return_exceptions=True)
    (text,) = [one[0] for one in found if not isinstance(one, KeyTaken)]
    assert keys.ring.find(text, 0.0).id == "x"
    await ledger.close()


async def test_keys_are_known_after_a_restart_and_useless_without_the_secret(tmp_path):
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0)
    keys = Keys(ledger, tmp_path, lambda: 0.0)
    await keys.load()
    text, _ = await keys.issue("anna", "red", expires_s=None, note="")
    await keys.revoke("anna", 50.0)
    await ledger.close()
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0)
    again = Keys(ledger, tmp_path, lambda: 0.0)
    await again.load()
    assert again.ring.find(text, 49.0).id == "anna"
    assert again.ring.find(text, 50.0) is None
    (tmp_path / FILE).unlink()
    with pytest.raises(CannotOpen, match="is not there, and virtual keys were issued with it"):
        await Keys(ledger, tmp_path, lambda: 0.0).load()
    (tmp_path / FILE).write_text("")
    anew = Keys(ledger, tmp_path, lambda: 0.0)
    await anew.load()
    assert anew.ring.find(text, 0.0) is None
    await ledger.close()


async def test_where_no_key_was_issued_no_secret_is_made(tmp_path):
    await Keys(MemoryLedger(), tmp_path, lambda: 0.0).load()
    assert list(tmp_path.iterdir()) == []


EACH_KEY = """\
teams: { blue: {} }
prices: [{ models: "*", per_image: 50 }]
budgets: [{ name: person, each: key, credits: 60, per: month, amounts: { anna: 120 } }]
"""


async def test_a_key_that_takes_over_goes_on_with_the_account_and_the_amount_of_the_first(gateway, tmp_path):
    """Else a new key would open every budget again; so it does after a restart, and after a second replacement."""
    gateway.set_credits("alpha", 10**6 * 10**8)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.yaml").write_text(EACH_KEY)
    rules = load_policies(tmp_path / "rules")
    image = {"model": "image-lab-large", "prompt": "x"}

    async def books():
        return await SqliteLedger.open(tmp_path / "ledger.db", rules.budgets, now_s=0.0)

    async def drawn(front, text):
        async with front.client.post(f"{front.url}/v1/images/generate", json=image, headers={"x-api-key": text}) as got:
            await got.read()
        await front.running.parts.books.written()
        said = (await front.get("/-/budget", headers={"x-api-key": text})).json
        (limit,) = said["limits"]
        return got.status, said["key"], float(limit["credits"]), float(limit["spent"])

    flags = {"auth": "keys", "data": str(tmp_path)}
    async with proxied(gateway.url, rules, ledger=await books(), **flags) as front:
        first = await issue(front, team="blue", id="anna")
        assert await drawn(front, first["key"]) == (200, "anna", 120, 50)
        second = await issue(front, replaces="anna", id="anna2")
        assert second["account"] == "anna"
        assert await drawn(front, second["key"]) == (200, "anna2", 120, 100)
    async with proxied(gateway.url, rules, ledger=await books(), **flags) as front:
        assert await drawn(front, second["key"]) == (402, "anna2", 120, 100)
        third = await issue(front, replaces="anna2", id="anna3")
        assert await drawn(front, third["key"]) == (402, "anna3", 120, 100)
        asked = {"team": "blue", "key": "anna3", "credits": "-50", "reason": "by hand"}
        assert (await front.admin("POST", "/api/budgets/adjust", asked))[0] == 200
        assert await drawn(front, third["key"]) == (200, "anna3", 120, 100)
