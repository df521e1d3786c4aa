"""One MCP server for all suites: named through a table, each call one of its suite, a suite that is down holds up none."""

import asyncio
import hashlib
from dataclasses import replace

import pytest

from proxy.core.deterministic import CacheRule
from proxy.core.limits import Match
from proxy.core.policy import DEFAULT_POLICY, KeyRef, Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.toollist import NAME_MAX, public_name
from proxy.units import CREDIT
from tests.proxies import proxied
from tests.suites import call, listing, suites, tool

RED, BLUE = ({"x-api-key": name} for name in ("red-key", "blue-key"))
TWO = {"calc": [tool("add", title="Add"), tool("sub")], "docs": [tool("find")]}


def teams(**blue):
    def team(name, **given):
        return Team(name, (KeyRef("a", hashlib.sha256(f"{name}-key".encode()).digest()),), **given)

    return Policy({"red": team("red"), "blue": team("blue", **blue)})


async def listed(front, **options):
    reply = await front.post("/mcp", listing(), **options)
    return [entry["name"] for entry in reply.json["result"]["tools"]]


@pytest.mark.parametrize("path", ["/mcp", "/v1/mcp/", "/v1/gateway/mcp"])
async def test_it_is_found_where_the_suites_are(front, path):
    asks = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    reply = await front.post(path, asks)
    assert (reply.json["id"], reply.json["result"]["protocolVersion"]) == (0, "2025-06-18")
    assert reply.json["result"]["capabilities"] == {"tools": {"listChanged": False}}
    assert (await front.post(path, {"jsonrpc": "2.0", "method": "notifications/initialized"})).status == 202
    assert (await front.post(path, {"jsonrpc": "2.0", "id": "p", "method": "ping"})).json["result"] == {}
    unknown = (await front.post(path, {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"})).json
    assert unknown["error"]["code"] == -32601
    assert (await front.call("DELETE", path)).status == 405


async def test_all_tools_are_listed_and_each_is_called_at_its_suite():
    async with suites(**TWO) as gateway, proxied(gateway.url) as front:
        reply = await front.post("/mcp", listing("x"))
        assert reply.json["id"] == "x"
        assert [one["name"] for one in reply.json["result"]["tools"]] == ["calc__add", "calc__sub", "docs__find"]
        assert reply.json["result"]["tools"][0] == {**tool("add", title="Add"), "name": "calc__add"}
        said = (await front.post("/mcp", call("docs__find", 0, q="a"))).json
        assert said == {"jsonrpc": "2.0", "id": 0, "result": gateway.result}
        assert gateway.asked[-1] == ("docs", call("find", 0, q="a"))
        assert await listed(front) == ["calc__add", "calc__sub", "docs__find"]
        assert sorted(gateway.methods) == ["calc tools/list", "docs tools/call", "docs tools/list"]


async def test_a_call_goes_on_as_one_of_its_suite():
    prices = PriceTable((Rule("suites", "docs", Price(per_call=2 * CREDIT)),))
    rule = CacheRule(Match(tool="calc.add"), ttl_s=60.0)
    policy = replace(DEFAULT_POLICY, prices=prices, cache=(rule,))
    async with suites(**TWO) as gateway, proxied(gateway.url, policy) as front:
        assert await listed(front)
        reply = await front.post("/mcp", call("docs__find"))
        assert reply.headers["X-Sluicegate-Credits"] == "charged=2, saved=0"
        (entry,) = [entry for entry in front.entries if hasattr(entry, "charge")]
        assert (entry.charge.calls, entry.charge.credits) == (1, 2 * CREDIT)
        for path, name in (("/mcp", "calc__add"), ("/mcp/calc", "add"), ("/mcp", "calc__add")):
            assert "result" in (await front.post(path, call(name))).json
        assert gateway.methods.count("calc tools/call") == 1, "both ways lead to one cached answer"
        assert {event["route"] for event in front.requests if event["stage"] == "relay"} == {"mcp", "suites"}


async def test_a_team_sees_and_calls_what_it_may_use():
    policy = teams(suites=("calc",), deny_tools=("calc.sub",))
    async with suites(**TWO) as gateway, proxied(gateway.url, policy, auth="keys") as front:
        assert await listed(front, headers=RED) == ["calc__add", "calc__sub", "docs__find"]
        assert await listed(front, headers=BLUE) == ["calc__add"]
        for name, reason in (("docs__find", "suite_not_allowed"), ("calc__sub", "tool_not_allowed")):
            refused = (await front.post("/mcp", call(name), headers=BLUE)).json["error"]
            assert (refused["code"], refused["data"]["reason"]) == (-32001, reason)
        assert not [method for method in gateway.methods if method.endswith("call")]
        assert (await front.post("/mcp", call("docs__find"))).status == 401


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_suite_that_is_down_leaves_the_rest_working_and_is_told(status):
    async with suites(**TWO) as gateway, proxied(gateway.url) as front:
        gateway.statuses["calc"] = status
        reply = await front.post("/mcp", listing(), headers={"X-Sluicegate-Wait-Max": "0"})
        assert [one["name"] for one in reply.json["result"]["tools"]] == ["docs__find"]
        (down,) = reply.json["result"]["_meta"]["sluicegate/unavailable"]
        assert (down["suite"], bool(down["reason"])) == ("calc", True)
        (noted,) = [event for event in front.events if event["event"] == "suite_unavailable"]
        assert (noted["suite"], noted["reason"]) == ("calc", down["reason"])
        gateway.statuses.clear()
        assert "result" in (await front.post("/mcp", call("docs__find"))).json


async def test_names_stay_when_suites_come_and_go():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url) as front:
        fresh = {"Cache-Control": "no-cache"}
        assert await listed(front, headers=fresh) == ["calc__add"]
        gateway.tools |= {"a__b": [tool("c")], "a": [tool("b__c"), tool("add")], "a_": [tool("x")]}
        names = await listed(front, headers=fresh)
        assert "calc__add" in names
        assert len(set(names)) == len(names)
        for name in names:
            assert "result" in (await front.post("/mcp", call(name))).json
        told = [(suite, body["params"]["name"]) for suite, body in gateway.asked if body["method"] == "tools/call"]
        assert sorted(told) == [("a", "add"), ("a", "b__c"), ("a_", "x"), ("a__b", "c"), ("calc", "add")]


async def test_a_tool_is_found_although_nobody_has_listed_since_the_start():
    async with suites(**TWO) as gateway, proxied(gateway.url) as front:
        assert "result" in (await front.post("/mcp", call("calc__add"))).json
        unknown = (await front.post("/mcp", call("calc__nothing", "n"))).json
        assert (unknown["id"], unknown["error"]["code"]) == ("n", -32602)
        assert gateway.methods.count("calc tools/call") == 1


async def test_an_alias_of_the_policy_takes_the_place_of_the_name():
    policy = replace(DEFAULT_POLICY, tool_aliases={"sum": "calc.add"})
    async with suites(**TWO) as gateway, proxied(gateway.url, policy) as front:
        assert await listed(front) == ["sum", "calc__sub", "docs__find"]
        assert "result" in (await front.post("/mcp", call("sum", 1, a=1))).json
        assert gateway.asked[-1] == ("calc", call("add", 1, a=1))


async def test_every_page_of_a_suite_is_in_the_list():
    tools = [tool(f"t{number}") for number in range(7)]
    async with suites(calc=tools) as gateway, proxied(gateway.url) as front:
        gateway.pages = 3
        assert await listed(front) == [f"calc__t{number}" for number in range(7)]


async def test_many_who_list_at_once_ask_each_suite_once():
    many = {f"s{number}": [tool(f"t{n}") for n in range(40)] for number in range(10)}
    async with suites(**many) as gateway, proxied(gateway.url) as front:
        lists = await asyncio.gather(*(listed(front) for _ in range(5)))
        assert {len(names) for names in lists} == {400}
        assert len(gateway.asked) == 10


def test_a_public_name_can_be_read_in_one_way_and_every_client_takes_it():
    pairs = [("a", "b"), ("a_", "b"), ("a", "_b"), ("a__b", "c"), ("a", "b__c"), ("a.b", "c"), ("a", "b.c"), ("a-b", "c"),
             ("x" * 60, "y" * 60), ("x" * 60, "y" * 61), ("수문", "물"), ("", "b"), ("a", "")]  # fmt: skip
    names = [public_name(*pair) for pair in pairs]
    assert len(set(names)) == len(pairs)
    assert all(len(name) <= NAME_MAX and name.isascii() and " " not in name and "." not in name for name in names)
    assert names[0] == "a__b"
