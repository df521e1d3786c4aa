"""One MCP server for all suites: named through a table, each call one of its suite, a suite that is down holds up none."""

import asyncio
import hashlib
from dataclasses import replace

import orjson
import pytest

from proxy.core.deterministic import CacheRule
from proxy.core.limits import Match
from proxy.core.policy import DEFAULT_POLICY, KeyRef, Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.toollist import NAME_MAX, public_name
from proxy.mcp.toolbox import FAILED_S
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


async def test_a_list_is_made_once_and_given_again_under_each_callers_id():
    async with suites(**TWO) as gateway, proxied(gateway.url) as front:
        first = await front.post("/mcp", listing(1))
        made = [await front.post("/mcp", listing(number)) for number in (2, "x", 0)]
        assert [reply.json["id"] for reply in made] == [2, "x", 0]
        assert all(reply.json["result"] == first.json["result"] for reply in made)
        assert all(reply.headers["Cache-Status"].startswith("sluicegate; hit; ttl=") for reply in made[1:])
        assert len(gateway.asked) == 2
        asked = [event["route"] for event in front.requests]
        assert asked[-2:] == ["merged", "merged"], "no suite's list is looked at for them"
        assert await listed(front, headers={"Cache-Control": "no-cache"})
        assert len(gateway.asked) == 4, "who wants news gets it"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.at_s = 1_800_000_000.0

    def __call__(self):
        return self.at_s


async def settled(front, **options):
    """A list that is given again by now."""
    for _ in range(3):
        names = await listed(front, **options)
    return names


async def test_a_list_that_was_made_holds_no_longer_than_each_suites_own():
    clock = Clock()
    async with suites(**TWO) as gateway, proxied(gateway.url, wall=clock) as front:
        assert await settled(front) == ["calc__add", "calc__sub", "docs__find"]
        clock.at_s += 30
        gateway.tools["calc"] = [tool("mul")]
        assert await settled(front) == ["calc__add", "calc__sub", "docs__find"]
        # Somebody else wants to know, and from then on everybody does.
        await front.post("/mcp/calc", listing(), headers={"Cache-Control": "no-cache"})
        assert await settled(front) == ["calc__mul", "docs__find"]
        del gateway.tools["docs"]
        gateway.tools["new"] = [tool("one")]
        clock.at_s += 31
        assert await settled(front) == ["calc__mul", "new__one"]
        assert (await front.admin("POST", "/api/cache/purge", {"all": True}))[0] == 200
        gateway.tools["new"] = [tool("two")]
        assert await settled(front) == ["calc__mul", "new__two"]


async def test_a_list_that_was_made_ends_with_the_policy_it_was_made_under():
    async with suites(**TWO) as gateway, proxied(gateway.url, teams(), auth="keys") as front:
        assert await settled(front, headers=BLUE) == ["calc__add", "calc__sub", "docs__find"]
        narrow = teams(suites=("calc",), deny_tools=("calc.sub",))
        front.running.parts.state.policy = replace(narrow, tool_aliases={"sum": "calc.add"})
        assert await settled(front, headers=BLUE) == ["sum"]
        assert await settled(front, headers=RED) == ["sum", "calc__sub", "docs__find"]
        front.running.parts.state.policy = teams()
        assert await settled(front, headers=BLUE) == ["calc__add", "calc__sub", "docs__find"]


async def test_no_caller_is_given_the_list_of_another_gateway_key():
    one, other = ({"Authorization": f"Bearer sk-{name}"} for name in ("one", "other"))
    async with suites(**TWO) as gateway, proxied(gateway.url, credential="caller", key=None) as front:
        assert await settled(front, headers=one) == ["calc__add", "calc__sub", "docs__find"]
        gateway.tools = {"docs": [tool("else")]}
        assert await settled(front, headers=other) == ["docs__else"]
        assert await settled(front, headers=one) == ["calc__add", "calc__sub", "docs__find"]


async def test_a_list_in_which_a_suite_is_missing_is_not_given_again():
    async with suites(**TWO) as gateway, proxied(gateway.url) as front:
        gateway.statuses["calc"] = 500
        assert await settled(front) == ["docs__find"]
        gateway.statuses.clear()
        assert await settled(front) == ["calc__add", "calc__sub", "docs__find"]
        gateway.statuses["calc"] = 500
        assert await settled(front) == ["calc__add", "calc__sub", "docs__find"]


async def test_nobody_is_given_a_list_that_may_not_be_kept():
    policy = replace(DEFAULT_POLICY, cache=(CacheRule(Match(suite="calc"), method="tools/list", ttl_s=0.0),))
    async with suites(**TWO) as gateway, proxied(gateway.url, policy) as front:
        await settled(front)
        assert gateway.methods.count("calc tools/list") == 3
        assert gateway.methods.count("docs tools/list") == 1
        await listed(front, headers={"Cache-Control": "no-cache"})
        assert gateway.methods.count("docs tools/list") == 2


# --- what others do to it ---


async def test_suites_that_hang_are_waited_for_together():
    names = [f"s{number}" for number in range(10)]
    async with suites(**{name: [tool("t")] for name in names}) as gateway, proxied(gateway.url) as front:
        all_asked = asyncio.Event()
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool("t")]}}
        gateway.slow = {name: [[all_asked, b"data: " + orjson.dumps(answer) + b"\n\n"]] for name in names}
        listing_all = asyncio.ensure_future(listed(front))
        await front.until(lambda: len(gateway.asked) == 10)
        all_asked.set()
        assert await listing_all == [f"{name}__t" for name in names]


async def test_a_suite_that_a_team_may_not_use_is_not_told_to_be_missing():
    async with suites(**TWO) as gateway, proxied(gateway.url, teams(suites=("calc",)), auth="keys") as front:
        gateway.statuses["docs"] = 500
        for headers, told in ((RED, True), (BLUE, False)):
            reply = await front.post("/mcp", listing(), headers=headers)
            assert ("docs" in reply.body.decode()) is told
        assert gateway.methods.count("docs tools/list") == 1


async def test_an_alias_leads_no_team_to_what_it_may_not_use():
    policy = replace(teams(deny_tools=("calc.add",)), tool_aliases={"sum": "calc.add"})
    async with suites(**TWO) as gateway, proxied(gateway.url, policy, auth="keys") as front:
        assert await settled(front, headers=RED) == ["sum", "calc__sub", "docs__find"]
        assert await settled(front, headers=BLUE) == ["calc__sub", "docs__find"]
        for name in ("sum", "calc__add"):
            refused = (await front.post("/mcp", call(name), headers=BLUE)).json["error"]
            assert refused["data"]["reason"] == "tool_not_allowed"
        assert not [method for method in gateway.methods if method.endswith("call")]


async def test_a_tool_that_its_suite_lists_twice_is_there_once():
    twice = [tool("add", title="one"), tool("add", title="two")]
    async with suites(calc=twice) as gateway, proxied(gateway.url) as front:
        for _ in range(3):
            (entry,) = (await front.post("/mcp", listing())).json["result"]["tools"]
            assert (entry["name"], entry["title"]) == ("calc__add", "one")
        assert "result" in (await front.post("/mcp", call("calc__add"))).json
        assert gateway.asked[-1][1]["params"]["name"] == "add"


async def test_an_alias_stands_for_one_tool_where_the_names_of_two_would_be_written_alike():
    policy = replace(DEFAULT_POLICY, tool_aliases={"sum": "a.b.c"})
    tools = {"a": [tool("b.c")], "a.b": [tool("c")]}
    async with suites(**tools) as gateway, proxied(gateway.url, policy) as front:
        other = public_name("a.b", "c")
        assert await settled(front) == ["sum", other]
        for name, suite, own in (("sum", "a", "b.c"), (other, "a.b", "c")):
            assert "result" in (await front.post("/mcp", call(name))).json
            assert gateway.asked[-1] == (suite, call(own))


async def test_of_a_suite_that_hangs_the_last_list_is_given_and_it_is_back_when_it_answers_again():
    clock, never = Clock(), asyncio.Event()
    hanging = {"old": [tool("t")], "new": [tool("t")], "well": [tool("t")]}
    async with suites(**hanging) as gateway, proxied(gateway.url, wall=clock) as front:
        await front.post("/mcp/old", listing())
        clock.at_s += 61
        gateway.slow = {"old": [[never]], "new": [[never], [never]]}
        # Somebody who waits for the suite itself, and goes on waiting.
        patient = asyncio.create_task(front.post("/mcp/new", listing()))
        await front.until(lambda: ("new", listing()) in gateway.asked)
        reply = await front.post("/mcp", listing())
        assert [one["name"] for one in reply.json["result"]["tools"]] == ["old__t", "well__t"]
        (missing,) = reply.json["result"]["_meta"]["sluicegate/unavailable"]
        assert missing == {"suite": "new", "reason": "no answer within 10 s"}
        # Nobody waits for a list that costs nothing to learn what it used.
        await front.until(lambda: "old" in gateway.left)
        reply = await front.post("/mcp", listing())
        assert [one["name"] for one in reply.json["result"]["tools"]] == ["old__t", "well__t"]
        (missing,) = reply.json["result"]["_meta"]["sluicegate/unavailable"]
        assert missing == {"suite": "new", "reason": "no answer within 1 s"}, "it was waited for before"
        assert await listed(front) == ["new__t", "old__t", "well__t"]
        never.set()
        assert (await patient).status == 200


@pytest.mark.parametrize("broken", ["500", "no list", "closed"])
async def test_a_suite_that_gave_no_list_a_moment_ago_is_not_asked_for_every_unknown_name(broken):
    clock = Clock()
    async with (
        suites(**TWO) as gateway,
        proxied(gateway.url, teams(), auth="keys", wall=clock, drain="0s") as front,
    ):
        gateway.raw = {"calc": [b"data: {}\n\n" if broken == "no list" else b""] * 99} if broken != "500" else {}
        gateway.statuses = {"calc": 500} if broken == "500" else {}
        for number in range(20):
            message = (await front.post("/mcp", call(f"calc__{number}"), headers=RED)).json["error"]["message"]
            assert message.startswith(f"Unknown tool: calc__{number}; no list of calc: ")
        assert gateway.methods.count("calc tools/list") == 1
        assert "result" in (await front.post("/mcp", call("docs__find"), headers=RED)).json
        await front.post("/mcp", call("calc__add"), headers=BLUE)
        assert gateway.methods.count("calc tools/list") == 2, "what one team was told says nothing of another"
        gateway.raw, gateway.statuses = {}, {}
        assert "error" in (await front.post("/mcp", call("calc__add"), headers=RED)).json
        clock.at_s += FAILED_S
        assert "result" in (await front.post("/mcp", call("calc__add"), headers=RED)).json


async def test_nor_is_one_whose_last_list_is_given_while_it_fails():
    clock = Clock()
    async with suites(**TWO) as gateway, proxied(gateway.url, wall=clock) as front:
        await listed(front)
        clock.at_s += 61
        gateway.statuses = {"calc": 500}
        for number in range(4):
            assert "error" in (await front.post("/mcp", call(f"calc__{number}"))).json
        assert gateway.methods.count("calc tools/list") == 2
        assert "calc__add" in await listed(front)


async def test_a_list_that_anybody_gets_ends_the_memory_of_a_failure():
    async with suites(**TWO) as gateway, proxied(gateway.url) as front:
        gateway.statuses = {"calc": 500}
        assert "error" in (await front.post("/mcp", call("calc__add"))).json
        gateway.statuses = {}
        assert await listed(front) == ["calc__add", "calc__sub", "docs__find"]
        assert "result" in (await front.post("/mcp", call("calc__add"))).json
        unknown = (await front.post("/mcp", call("calc__other"))).json["error"]["message"]
        assert unknown == "Unknown tool: calc__other"
        assert gateway.methods.count("calc tools/list") == 2


async def test_a_name_that_no_suite_has_is_looked_for_where_it_could_be():
    async with suites(**TWO) as gateway, proxied(gateway.url) as front:
        for name in ("nope__x", "nowhere", "calc__nothing"):
            assert "Unknown tool" in (await front.post("/mcp", call(name))).json["error"]["message"]
        assert gateway.methods == ["calc tools/list"]
        # A name with a mark at its end may be anybody's.
        await front.post("/mcp", call("some-0123456789"))
        assert sorted(gateway.methods) == ["calc tools/list", "docs tools/list"]
