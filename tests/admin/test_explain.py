"""What explain tells is what then happens: each request is explained, then made, on one running proxy."""

import hashlib

import orjson
import pytest

from proxy.admin.explain import NO_KEY
from proxy.cli.live import request_line
from proxy.config.policyfile import load_policies
from proxy.core.ledger import Hold
from proxy.core.policy import Policy, Team
from proxy.emulator.money import units_of
from proxy.units import credits_of
from tests.proxies import proxied

RULES = """\
teams:
  red: { keys: [{ id: ci, sha256: "%s" }], models: ["gpt-*", "video-*"], wait_max: 0s }
aliases: { fast: gpt-4o-mini }
prices:
  - { models: "gpt-4o*", input_per_million: 250, output_per_million: 1000 }
  - { models: "video-*", per_video: 600 }
  - { suites: calc, per_call: 2 }
budgets:
  - { name: all, credits: 5000, per: month }
  - { name: person, match: { team: red }, each: key, credits: 700, per: day, amounts: { ci: 650 } }
"""

CHAT = {"model": "fast", "messages": [{"role": "user", "content": "안녕하세요"}], "max_tokens": 100}
VIDEO = {"model": "video-770", "prompt": "A river."}
TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
MCP = {"Accept": "application/json, text/event-stream"}
KEY = {"Authorization": "Bearer k"}


@pytest.fixture
async def desk(gateway, tmp_path):
    gateway.set_credits("alpha", units_of(10**6))
    (tmp_path / "a.yaml").write_text(RULES % hashlib.sha256(b"k").hexdigest())
    async with proxied(gateway.url, load_policies(tmp_path), auth="keys", policies=str(tmp_path)) as front:
        yield Desk(front, gateway, tmp_path)


class Desk:
    def __init__(self, front, gateway, folder):
        self.front, self.gateway, self.folder = front, gateway, folder

    async def explain(self, status=200, **asked):
        url = f"{self.front.running.admin_url}/api/explain"
        async with self.front.client.post(url, json=asked) as answer:
            assert answer.status == status
            return await answer.json()

    async def explained(self, path, body, headers=KEY):
        return await self.explain(path=path, headers=headers, body=orjson.dumps(body).decode())

    def line(self, number, column):
        return f"{self.folder}/a.yaml:{number}:{column}"

    async def real(self, path, body, headers=KEY):
        given = {"Content-Type": "application/json", **headers}
        reply = await self.front.call("POST", path, data=orjson.dumps(body), headers=given)
        await self.front.running.parts.exchanges.finished()
        await self.front.running.parts.books.written()
        return reply


async def test_a_chat_is_told_as_it_is_then_held_and_sent(desk):
    told = await desk.explained("/v1/chat/completions", CHAT)
    assert (told["team"], told["key"], told["refused"]) == ("red", "ci", None)
    assert [(rule["kind"], rule["source"]) for rule in told["rules"]] == [
        ("team", desk.line(2, 3)),
        ("alias", desk.line(3, 12)),
        ("price", desk.line(5, 5)),
        ("budget", desk.line(9, 5)),
        ("budget", desk.line(10, 5)),
    ]
    assert told["binding"] == {"name": "person", "group": ["red", "ci"], "source": desk.line(10, 5)}
    assert [limit["left"] for limit in told["limits"]] == ["5000", "650"]
    assert not desk.gateway.journal
    assert not desk.front.entries

    assert (await desk.real("/v1/chat/completions", CHAT)).status == 200
    (hold,) = [entry for entry in desk.front.entries if isinstance(entry, Hold)]
    assert credits_of(told["ceiling"]["credits"]) == hold.credits
    assert sum(credits_of(term["credits"]) for term in told["ceiling"]["terms"]) == hold.credits
    (seen,) = desk.gateway.journal
    assert told["upstream"]["url"] == desk.gateway.url + seen.target
    assert told["upstream"]["body"].encode() == seen.body
    assert told["upstream"]["headers"]["accept"] == seen.header("accept")
    assert told["upstream"]["headers"]["authorization"] == "Bearer ***"


async def test_a_tool_call_is_told_with_its_price(desk):
    told = await desk.explained("/v1/mcp/calc", TOOL, {**KEY, **MCP})
    assert told["ceiling"]["terms"] == [{"what": "calls", "count": 1, "price": "2", "per": 1, "credits": "2"}]
    assert told["ceiling"]["price"] == desk.line(7, 5)
    assert (await desk.real("/v1/mcp/calc", TOOL, {**KEY, **MCP})).status == 200
    assert [entry.credits for entry in desk.front.entries if isinstance(entry, Hold)] == [credits_of(2)]


async def test_the_books_the_log_and_the_page_say_afterwards_which_price_a_call_was_charged_by(desk):
    told = await desk.explained("/v1/chat/completions", CHAT)
    assert (await desk.real("/v1/chat/completions", CHAT)).status == 200
    assert (await desk.real("/v1/mcp/calc", TOOL, {**KEY, **MCP})).status == 200
    priced = [desk.line(5, 5), desk.line(7, 5)]
    assert told["ceiling"]["price"] == priced[0]
    _, said = await desk.front.admin("GET", "/api/ledger/entries")
    assert [(one["kind"], one["place"]) for one in said["entries"]] == [
        (kind, place) for place in priced for kind in ("hold", "settle")
    ]
    assert [request["place"] for request in desk.front.requests] == priced
    _, page = await desk.front.admin("GET", "/requests.json")
    tool, chat = page["requests"]
    assert [chat["place"], tool["place"]] == priced
    assert "(usage, a.yaml:5:5)" in request_line(chat)
    async with desk.front.client.get(f"{desk.front.running.admin_url}/requests") as answer:
        assert 'title="usage, a.yaml:5:5"' in await answer.text()


async def test_a_tool_of_the_server_of_all_suites_is_told_as_one_of_its_suite(desk):
    named = TOOL | {"params": TOOL["params"] | {"name": f"calc__{TOOL['params']['name']}"}}
    told = await desk.explained("/v1/mcp", named, {**KEY, **MCP})
    assert "tools/list" in told["refused"]["message"]
    await desk.real("/v1/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {**KEY, **MCP})
    told = await desk.explained("/v1/mcp", named, {**KEY, **MCP})
    alone = await desk.explained("/v1/mcp/calc", TOOL, {**KEY, **MCP})
    assert told["refused"] is None
    for part in ("ceiling", "rules", "limits", "binding"):
        assert told[part] == alone[part]
    assert (await desk.real("/v1/mcp", named, {**KEY, **MCP})).status == 200


async def test_a_video_that_does_not_fit_is_refused_word_for_word(desk):
    told = await desk.explained("/v1/video/generation", VIDEO)
    assert (told["ceiling"]["credits"], told["refused"]) == ("600", None)
    assert (await desk.real("/v1/video/generation", VIDEO)).status == 200

    told = await desk.explained("/v1/video/generation", VIDEO)
    assert [(one["name"], one["fits"], one["held"]) for one in told["limits"]] == [
        ("all", True, "600"),
        ("person", False, "600"),
    ]
    assert told["binding"]["name"] == "person"
    reply = await desk.real("/v1/video/generation", VIDEO)
    refused = told["refused"]
    assert (refused["status"], refused["reason"]) == (402, "budget_exhausted")
    assert (reply.status, reply.error["reason"], reply.error["message"]) == (402, refused["reason"], refused["message"])
    assert reply.error["resets_at"] == refused["resets_at"]


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/chat/completions", {**CHAT, "model": "claude-x"}, KEY),
        ("/v1/chat/completions", CHAT, {}),
        ("/v1/chat/completions", CHAT, {"Authorization": "Bearer other"}),
        ("/v1/chat/completions", {**CHAT, "max_tokens": 10**7}, KEY),
        ("/v1/nowhere", CHAT, KEY),
        ("/v1/chat/completions", [], KEY),
        ("/v1/chat/completions", CHAT, {**KEY, "Origin": "https://elsewhere.example"}),
    ],
)
async def test_every_refusal_is_the_one_the_real_call_gets(desk, path, body, headers):
    told = await desk.explained(path, body, headers)
    reply = await desk.real(path, body, headers)
    assert (told["refused"]["status"], told["refused"]["reason"]) == (reply.status, reply.error["reason"])
    assert told["refused"]["message"] == reply.error["message"]
    assert not desk.gateway.journal


async def test_somebody_else_may_be_imagined_to_call(desk):
    for who in ({"team": "red", "key": "ci"}, {"key": "ci"}):
        told = await desk.explain(path="/v1/chat/completions", body=CHAT, **who)
        assert (told["team"], told["key"], told["refused"]) == ("red", "ci", None)
    told = await desk.explain(path="/v1/chat/completions", body=CHAT, team="red")
    assert told["key"] == "ci", "a team with one key is that key"
    await desk.front.admin("POST", "/api/keys", {"team": "red", "id": "second"})
    told = await desk.explain(path="/v1/chat/completions", body=CHAT, team="red")
    assert told["key"] == NO_KEY
    assert (await desk.explain(404, path="/v1/models", team="rde"))["error"].startswith("there is no team 'rde'")
    assert "no team has a key" in (await desk.explain(404, path="/v1/models", key="cd"))["error"]
    assert (await desk.explain(400))["error"] == "path is missing: expected text"


async def test_what_is_answered_here_is_said_to_be(desk):
    told = await desk.explain(path="/-/budget", method="GET", headers=KEY)
    assert (told["answered_here"], told["upstream"]) == (200, None)


async def test_a_web_page_may_not_ask(desk):
    url = f"{desk.front.running.admin_url}/api/explain"
    async with desk.front.client.post(url, json={}, headers={"Origin": "https://elsewhere.example"}) as answer:
        assert answer.status == 403


async def test_a_deterministic_call_is_told_to_be_cacheable_and_then_stored(desk):
    body = {**CHAT, "temperature": 0}
    told = await desk.explained("/v1/chat/completions", body)
    assert told["cacheable"] == {
        "may": True,
        "why": "deterministic",
        "source": "built in",
        "fresh_s": 86400.0,
        "stored": False,
    }
    assert (await desk.real("/v1/chat/completions", body)).status == 200
    told = await desk.explained("/v1/chat/completions", body)
    assert (told["cacheable"]["stored"], told["refused"]) == (True, None)
    assert (await desk.real("/v1/chat/completions", body)).headers["Cache-Status"].startswith("sluicegate; hit")
    assert len(desk.gateway.journal) == 1
    told = await desk.explained("/v1/chat/completions", CHAT)
    assert (told["cacheable"]["may"], told["cacheable"]["why"]) == (False, "temperature")


async def test_a_model_that_is_only_talked_of_has_no_account_that_anybody_sees(gateway, tmp_path):
    (tmp_path / "a.yaml").write_text("""\
teams: { red: {} }
open_team: red
prices: [{ models: "*", input_per_million: 250, output_per_million: 1000, output_tokens_max: 100 }]
budgets: [{ name: apart, each: model, credits: 50, per: month }]
""")
    async with proxied(gateway.url, load_policies(tmp_path)) as front:
        desk = Desk(front, gateway, tmp_path)
        told = await desk.explained("/v1/chat/completions", CHAT | {"model": "invented-1"}, {})
        assert [(one["group"], one["left"]) for one in told["limits"]] == [(["invented-1"], "50")]
        assert (await desk.real("/v1/chat/completions", CHAT | {"model": "invented-2"}, {})).status == 404
        refused = await desk.real("/v1/chat/completions", CHAT | {"model": "invented-3", "max_tokens": 10**6}, {})
        assert refused.status == 402
        assert (await desk.real("/v1/chat/completions", CHAT | {"model": "gpt-4o-mini"}, {})).status == 200
        assert [one["group"] for one in (await front.admin("GET", "/api/budgets/apart"))[1]["accounts"]] == [
            ["gpt-4o-mini"]
        ]
        assert [one["group"] for one in (await front.get("/-/budget")).json["limits"]] == ["gpt-4o-mini"]


async def test_callers_that_bring_their_own_keys_are_imagined_with_one(gateway, tmp_path):
    flags = {"auth": "keys", "credential": "caller", "data": str(tmp_path)}
    policy = Policy({"red": Team("red")}, open_team="red")
    async with proxied(gateway.url, policy, key=None, **flags) as front:
        status, told = await front.admin("POST", "/api/explain", {"path": "/v1/models", "method": "GET", "team": "red"})
        assert (status, told["refused"], told["upstream"]["headers"]["authorization"]) == (200, None, "Bearer ***")


async def test_every_rate_is_told_and_when_the_turn_would_be(desk):
    for _ in range(2):
        await desk.real("/v1/mcp/calc", TOOL, {**KEY, **MCP})
    turn = (await desk.explained("/v1/mcp/calc", TOOL, {**KEY, **MCP}))["turn"]
    rates = {rate["name"]: (rate["used"], rate["amount"], rate["asked"]) for rate in turn["rates"]}
    assert rates["member"] == (2, 120, 1)
    assert rates["tool-minute"] == (2, 30, 1)
    assert {"suite-day", "org-day"} < set(rates)
    assert (turn["starts_in_s"], turn["at_most_s"]) == (0.0, 0.0)
    assert turn["rates"][0]["source"].startswith("gateway.yaml (built in):")
