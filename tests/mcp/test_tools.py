"""Tools under policy: what a team may not use it neither sees nor calls; lists and, where asked for, calls are cached."""

import asyncio
import hashlib
from dataclasses import replace

import orjson
import pytest

from proxy.core.answers import Family
from proxy.core.deterministic import CacheRule
from proxy.core.facts import Facts
from proxy.core.limits import Budget, Match
from proxy.core.policy import DEFAULT_POLICY, CacheScope, KeyRef, McpErrors, Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.usage import Meter
from proxy.core.windows import Sliding
from proxy.mcp.answers import kept
from tests.proxies import NOW, proxied
from tests.suites import call, listing, suites, tool

BOTH = {"Accept": "application/json, text/event-stream"}
RED, BLUE = ({"x-api-key": name, "Accept": "application/json"} for name in ("red-key", "blue-key"))
ADD = CacheRule(Match(tool="calc.add"), ttl_s=3600.0)
CACHED = replace(DEFAULT_POLICY, cache=(ADD,))


def teams(rules=(), scope=CacheScope.TEAM, **blue):
    def team(name, **given):
        return Team(name, (KeyRef("a", hashlib.sha256(f"{name}-key".encode()).digest()),), cache=scope, **given)

    return Policy({"red": team("red"), "blue": team("blue", **blue)}, cache=tuple(rules))


def names(reply):
    return [entry["name"] for entry in reply.json["result"]["tools"]]


async def test_one_list_serves_all_teams_and_each_sees_what_it_may_use():
    async with suites(calc=[tool("add"), tool("wipe")]) as gateway:
        async with proxied(gateway.url, teams(deny_tools=("calc.wi*",)), auth="keys") as front:
            for _ in range(2):
                assert names(await front.post("/mcp/calc", listing(), headers=RED)) == ["add", "wipe"]
                assert names(await front.post("/mcp/calc", listing(), headers=BLUE)) == ["add"]
        assert gateway.methods == ["calc tools/list"]


async def test_what_is_left_out_of_the_list_cannot_be_called_either():
    async with suites(calc=[tool("add"), tool("wipe")]) as gateway:
        async with proxied(gateway.url, teams(deny_tools=("calc.wi*",)), auth="keys") as front:
            refused = (await front.post("/mcp/calc", call("wipe", 0), headers=BLUE)).json
            assert (refused["id"], refused["error"]["code"]) == (0, -32001)
            assert refused["error"]["data"]["reason"] == "tool_not_allowed"
            assert "result" in (await front.post("/mcp/calc", call("add", 0), headers=BLUE)).json
        assert gateway.methods == ["calc tools/call"]


async def test_the_list_of_suites_has_those_the_team_may_use():
    policy = teams(suites=("docs",))
    async with suites(calc=[], docs=[]) as gateway, proxied(gateway.url, policy, auth="keys") as front:
        assert len((await front.get("/mcp", headers=RED)).json["data"]) == 2
        assert [one["name"] for one in (await front.get("/mcp", headers=BLUE)).json["data"]] == ["docs"]


async def test_a_cached_list_has_the_callers_id_and_every_field_as_it_came():
    raw = (
        b'{"jsonrpc": "2.0", "id": 7, "result": {"tools": [{"name":"add","icons":[{"src":"x"}],'
        b'"inputSchema":{"maximum":1.50,"const":123456789012345678901}}], "x": 1}}'
    )
    async with suites(calc=[]) as gateway:
        gateway.raw["calc"] = [b"event: message\ndata: " + raw + b"\n\n"]
        async with proxied(gateway.url) as front:
            for number in (b"0", b'"i-1"', b"null"):
                body = b'{"jsonrpc":"2.0","id":' + number + b',"method":"tools/list"}'
                reply = await front.call("POST", "/mcp/calc", data=body, headers={"Accept": "application/json"})
                assert reply.body == raw.replace(b"7", number, 1)
        assert len(gateway.asked) == 1


async def test_a_list_goes_to_a_caller_of_streams_as_one_event_with_the_suites_bytes(front, gateway):
    for _ in range(2):
        reply = await front.post("/mcp/calc", listing(5), headers=BOTH)
        assert reply.status == 200
    assert len(gateway.journal) == 1
    only = await front.post("/mcp/calc", listing(6), headers={"Accept": "text/event-stream"})
    assert only.headers["Content-Type"] == "text/event-stream"
    assert only.body.startswith(b'event: message\ndata: {"jsonrpc":"2.0","id":6,')


@pytest.mark.parametrize(
    "bad",
    [
        b'data: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n\n',
        b'data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"warming up"}}\n\n',
        b'data: {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","tools":[{"name":"x"}]}}\n\n',
        b"data: no JSON\n\n",
    ],
    ids=["empty", "error", "incomplete", "broken"],
)
async def test_no_list_is_kept_that_says_nothing_or_half_of_it(bad):
    async with suites(calc=[tool("add")]) as gateway:
        gateway.raw["calc"] = [bad]
        async with proxied(gateway.url) as front:
            await front.post("/mcp/calc", listing())
            assert names(await front.post("/mcp/calc", listing())) == ["add"], "what was bad is not remembered"


async def test_pages_are_kept_each_by_its_cursor():
    async with suites(calc=[tool("a"), tool("b"), tool("c")]) as gateway:
        gateway.pages = 2
        async with proxied(gateway.url) as front:
            for _ in range(2):
                assert names(await front.post("/mcp/calc", listing())) == ["a", "b"]
                assert names(await front.post("/mcp/calc", listing(2, cursor="2"))) == ["c"]
        assert len(gateway.asked) == 2


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_list_outlives_a_suite_that_fails(status):
    at_s = [1_800_000_000.0]
    async with (
        suites(calc=[tool("add")]) as gateway,
        proxied(gateway.url, wall=lambda: at_s[0]) as front,
    ):
        await front.post("/mcp/calc", listing())
        gateway.statuses["calc"], at_s[0] = status, at_s[0] + 61
        reply = await front.post("/mcp/calc", listing())
        assert names(reply) == ["add"]
        assert reply.headers["Cache-Status"].startswith("sluicegate; hit; ttl=-")
        assert len(gateway.asked) == 2


async def test_identical_lists_share_one_call_and_each_caller_has_its_own_id():
    async with suites(calc=[tool("add")]) as gateway:
        async with proxied(gateway.url) as front:
            replies = await asyncio.gather(*(front.post("/mcp/calc", listing(n), headers=BOTH) for n in range(8)))
        assert [f'"id":{n},'.encode() in reply.body for n, reply in enumerate(replies)] == [True] * 8
        assert len(gateway.asked) == 1


# --- calls ---


async def listed(front, headers=None):
    await front.post("/mcp/calc", listing(), headers=headers or {})


async def test_a_call_that_a_rule_names_is_answered_again_under_each_callers_own_id():
    async with suites(calc=[tool("add")]) as gateway:
        async with proxied(gateway.url, CACHED) as front:
            await listed(front)
            for number in (0, "i-1", 2):
                body = call("add", number, a=1, b=2)
                body["params"]["_meta"] = {"progressToken": number}
                reply = await front.post("/mcp/calc", body)
                assert reply.json == {"jsonrpc": "2.0", "id": number, "result": gateway.result}
            assert reply.headers["X-Sluicegate-Credits"].startswith("charged=0")
            await front.post("/mcp/calc", call("add", 3, b=2, a=1))
            assert gateway.methods.count("calc tools/call") == 1
            await front.post("/mcp/calc", call("add", 3, a=1, b=3))
        assert gateway.methods.count("calc tools/call") == 2
        assert "_meta" in gateway.asked[1][1]["params"], "it goes up as it came"


async def test_identical_calls_share_one_and_each_caller_has_its_own_id_in_its_stream():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, CACHED) as front:
        await listed(front)
        replies = await asyncio.gather(*(front.post("/mcp/calc", call("add", n), headers=BOTH) for n in range(8)))
        assert [f'"id":{n},'.encode() in reply.body for n, reply in enumerate(replies)] == [True] * 8
        assert gateway.methods.count("calc tools/call") == 1


def test_an_answer_is_kept_under_nobodys_id():
    body = b'{"jsonrpc":"2.0","id":"of somebody","result":{"content":[]}}'
    meter = Meter(Family.MCP, streamed=False)
    meter.feed(body)
    meter.close()
    assert kept(body, meter, "tools/call", streamed=False) == body.replace(b'"of somebody"', b"null")


@pytest.mark.parametrize(
    ("given", "rules", "detail"),
    [
        (tool("add"), (), "mcp"),
        (tool("add"), (CacheRule(Match(suite="calc"), ttl_s=60.0),), "mcp"),
        (tool("add"), (CacheRule(method="tools/call", ttl_s=60.0),), "mcp"),
        (tool("add"), (replace(ADD, ttl_s=0.0),), "policy"),
        (tool("other"), (ADD,), "unlisted"),
        (tool("add", annotations={"readOnlyHint": False}), (ADD,), "not-read-only"),
        (tool("add", annotations={"destructiveHint": True}), (ADD,), "not-read-only"),
        (tool("add", annotations={"readOnlyHint": False, "idempotentHint": True}), (ADD,), "not-read-only"),
    ],
)
async def test_no_call_is_cached_that_is_not_named_listed_and_harmless(given, rules, detail):
    async with suites(calc=[given]) as gateway:
        async with proxied(gateway.url, replace(DEFAULT_POLICY, cache=tuple(rules))) as front:
            await listed(front)
            for _ in range(2):
                reply = await front.post("/mcp/calc", call("add"))
                assert reply.headers["Cache-Status"].startswith(f"sluicegate; fwd=bypass; detail={detail}")
        assert gateway.methods.count("calc tools/call") == 2


async def test_a_tool_that_is_described_anew_is_another_tool():
    async with suites(calc=[tool("add")]) as gateway:
        async with proxied(gateway.url, CACHED) as front:
            for description in ("one", "one", "two", "two"):
                gateway.tools["calc"] = [tool("add", description=description)]
                await front.post("/mcp/calc", listing(), headers={"Cache-Control": "no-cache"})
                await front.post("/mcp/calc", call("add", a=1))
        assert gateway.methods.count("calc tools/call") == 2


@pytest.mark.parametrize(("scope", "calls"), [(CacheScope.TEAM, 2), (CacheScope.SHARED, 1), (CacheScope.OFF, 4)])
async def test_results_stay_with_their_team_unless_teams_share(scope, calls):
    async with suites(calc=[tool("add")]) as gateway:
        async with proxied(gateway.url, teams([ADD], scope), auth="keys") as front:
            await listed(front, RED)
            for headers in (RED, BLUE, RED, BLUE):
                assert "result" in (await front.post("/mcp/calc", call("add"), headers=headers)).json
        assert gateway.methods.count("calc tools/call") == calls


async def test_a_team_that_may_not_use_a_tool_never_gets_its_results():
    async with suites(calc=[tool("add")]) as gateway:
        policy = teams([ADD], CacheScope.SHARED, deny_tools=("calc.add",))
        async with proxied(gateway.url, policy, auth="keys") as front:
            await listed(front, RED)
            assert "result" in (await front.post("/mcp/calc", call("add"), headers=RED)).json
            assert "error" in (await front.post("/mcp/calc", call("add"), headers=BLUE)).json


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"content": [], "isError": True}},
        {"result": {"resultType": "input_required"}},
        {"error": {"code": -32603, "message": "no"}},
    ],
    ids=["tool error", "asks back", "error"],
)
async def test_no_failure_is_given_twice(answer):
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, CACHED) as front:
        await listed(front)
        gateway.raw["calc"] = [b"data: " + orjson.dumps({"jsonrpc": "2.0", "id": 1, **answer}) + b"\n\n"]
        first = (await front.post("/mcp/calc", call("add"))).json
        assert first == {"jsonrpc": "2.0", "id": 1, **answer}
        assert (await front.post("/mcp/calc", call("add"))).json["result"] == gateway.result


async def test_several_events_on_one_answer_arrive_as_they_came_and_the_call_is_counted_once():
    progress = (
        b'event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}\r\n\r\n'
    )
    prime, end = b"id: 1\ndata:\n\n", b': hi\n\ndata: {"jsonrpc":"2.0",\ndata: "id":1,"result":{"content":[]}}\n\n'
    async with suites(calc=[tool("add")]) as gateway:
        stream = prime + progress + progress + end
        gateway.raw["calc"] = [stream, stream]
        async with proxied(gateway.url) as front:
            assert (await front.post("/mcp/calc", call("add"), headers=BOTH)).body == stream
            plain = await front.post("/mcp/calc", call("add", "x"), headers={"Accept": "application/json"})
            assert plain.json == {"jsonrpc": "2.0", "id": "x", "result": {"content": []}}
            assert [entry.charge.calls for entry in front.entries if hasattr(entry, "charge")] == [1, 1]


@pytest.mark.parametrize(
    ("form", "status", "refused"),
    [
        (McpErrors.JSONRPC, 200, lambda body: body["error"]["code"] == -32001),
        (McpErrors.HTTP, 403, lambda body: body["error"]["code"] == -32001),
        (
            McpErrors.TOOL_RESULT,
            200,
            lambda body: body["result"]["isError"] and "add" in body["result"]["content"][0]["text"],
        ),
    ],
)
async def test_a_refusal_has_the_form_that_the_policy_says(form, status, refused):
    team = replace(DEFAULT_POLICY.teams["default"], deny_tools=("calc.*",))
    policy = replace(DEFAULT_POLICY, mcp_errors=form, teams={"default": team})
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, policy) as front:
        reply = await front.post("/mcp/calc", call("add", "me"))
        assert (reply.status, reply.json["id"], reply.headers["X-Sluicegate-Error"]) == (
            status,
            "me",
            "tool_not_allowed",
        )
        assert refused(reply.json)
        assert not gateway.asked


async def test_what_became_of_each_call_is_counted_under_names_that_suites_have_listed():
    team = replace(DEFAULT_POLICY.teams["default"], deny_tools=("calc.wipe",))
    policy = replace(CACHED, teams={"default": team})
    async with suites(calc=[tool("add"), tool("wipe")]) as gateway, proxied(gateway.url, policy) as front:
        await listed(front)
        for name in ("add", "add", "wipe"):
            await front.post("/mcp/calc", call(name))
        for status in (403, 502):
            gateway.statuses["calc"] = status
            await front.post("/mcp/calc", call("sub", status), headers={"X-Sluicegate-Wait-Max": "0"})
        gateway.statuses.clear()
        gateway.raw["calc"] = [b'data: {"jsonrpc":"2.0","id":1,"result":{"isError":true}}\n\n']
        await front.post("/mcp/calc", call("sub", 9))
        shown = await counted(front)
        assert shown == {
            ("add", "executed"): 1,
            ("add", "cached"): 1,
            ("_other", "refused_here"): 1,
            ("_other", "refused"): 1,
            ("_other", "uncertain"): 1,
            ("_other", "tool_error"): 1,
        }


async def counted(front):
    async with front.client.get(f"{front.running.admin_url}/metrics") as answer:
        text = await answer.text()
    lines = [line for line in text.splitlines() if line.startswith("sluicegate_mcp_tool_calls_total{")]
    found = {}
    for line in lines:
        labels, _, value = line.partition("{")[2].rpartition("} ")
        said = dict(pair.split("=", 1) for pair in labels.replace('"', "").split(","))
        found[said["tool"], said["outcome"]] = int(float(value))
    return found


# --- names and lists that mislead ---


async def test_a_tool_whose_own_name_looks_like_another_suites_is_under_none_of_its_rules():
    budget = Budget("sums", 1, Sliding(3600.0), Match(tool="calc.add"))
    policy = replace(CACHED, budgets=(budget,), prices=PriceTable((Rule("suites", "*", Price(per_call=1)),)))
    tools = {"calc": [tool("add")], "docs": [tool("calc.add")]}
    async with suites(**tools) as gateway, proxied(gateway.url, policy) as front:
        for suite in tools:
            await front.post(f"/mcp/{suite}", listing())
        for number in range(3):
            assert "result" in (await front.post("/mcp/docs", call("calc.add", number))).json
        assert gateway.methods.count("docs tools/call") == 3, "no rule says that these are kept"
        assert "result" in (await front.post("/mcp/calc", call("add", a=1))).json
        refused = (await front.post("/mcp/calc", call("add", a=2), headers=NOW)).json
        assert refused["error"]["data"]["reason"] == "budget_exhausted"
        assert "result" in (await front.post("/mcp/docs", call("calc.add"))).json


@pytest.mark.parametrize(
    ("match", "suite", "name", "takes"),
    [
        (Match(tool="add"), "calc", "add", True),
        (Match(tool="calc.add"), "calc", "add", True),
        (Match(tool="calc.*"), "docs", "calc.add", False),
        (Match(tool="*add"), "docs", "calc.add", True),
        (Match(tool="docs.calc.add"), "docs", "calc.add", True),
        (Match(tool="calc.add", suite="docs"), "docs", "calc.add", True),
        (Match(tool="calc.add", suite="calc"), "docs", "calc.add", False),
    ],
)
def test_a_rule_for_a_tool_is_for_that_of_its_suite(match, suite, name, takes):
    assert match.takes(Facts("red", "k", "mcp", suite=suite, tool=name)) is takes


async def test_an_old_list_from_the_cache_does_not_bring_a_tool_back_as_it_was():
    old, new = tool("add", description="old"), tool("add", description="new")
    async with suites(calc=[old]) as gateway:
        at_s = [1_800_000_000.0]
        async with proxied(gateway.url, CACHED, wall=lambda: at_s[0]) as front:
            # Two lists are kept, as they were asked for under two revisions.
            older, younger = ({"MCP-Protocol-Version": version} for version in ("2025-06-18", "2025-11-25"))
            for headers, description in ((older, old), (younger, new)):
                gateway.tools["calc"] = [description]
                await listed(front, headers)
                at_s[0] += 1
            first = await front.post("/mcp/calc", call("add", a=1))
            assert first.headers["Cache-Status"].endswith("stored; fwd-status=200")
            reply = await front.post("/mcp/calc", listing(), headers=older)
            assert reply.json["result"]["tools"] == [old]
            gateway.result = {"content": [{"type": "text", "text": "another"}]}
            kept_one = await front.post("/mcp/calc", call("add", a=1))
            assert kept_one.json["result"] == {"content": []}, "the answer of the tool as it is described now"
            gateway.tools["calc"] = [old]
            await listed(front, {"Cache-Control": "no-cache"})
            assert (await front.post("/mcp/calc", call("add", a=1))).json["result"] == gateway.result


async def test_hints_forbid_also_where_a_tool_is_listed_twice():
    twice = [tool("add"), tool("add", annotations={"destructiveHint": True}), tool("add")]
    async with suites(calc=twice) as gateway, proxied(gateway.url, CACHED) as front:
        await listed(front)
        for _ in range(2):
            assert "not-read-only" in (await front.post("/mcp/calc", call("add"))).headers["Cache-Status"]
        assert gateway.methods.count("calc tools/call") == 2
