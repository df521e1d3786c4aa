"""Clients of the revision 2026-07-28: bridged to suites of the older era where the policy says so, else sent back."""

import asyncio
from dataclasses import replace

import orjson
import pytest
from mcp import Client, MCPError

from proxy.core.charges import Ending
from proxy.core.deterministic import CacheRule
from proxy.core.limits import Match
from proxy.core.newer import SERVER_INFO, SUPPORTED, VERSION
from proxy.core.policy import DEFAULT_POLICY, McpNewer
from tests.proxies import proxied
from tests.suites import suites, tool

BRIDGE = replace(DEFAULT_POLICY, mcp_newer=McpNewer.BRIDGE)
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "a client", "version": "1"},
}

REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
WRONG = {"type": "object", "properties": {"region": {"type": "number", "x-mcp-header": "Region"}}}


def asks(method, number=1, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}


def said(body, **instead):
    """The header that repeats a body."""
    name = body["params"].get("name")
    lines = {"MCP-Protocol-Version": VERSION, "Mcp-Method": body["method"], **({"Mcp-Name": name} if name else {})}
    lines["Accept"] = "application/json, text/event-stream"
    return {name: value for name, value in {**lines, **instead}.items() if value is not None}


async def told(front, body, path="/mcp/calc", **instead):
    reply = await front.post(path, body, headers=said(body, **instead))
    return reply.status, reply.json


# --- a real client ---


@pytest.mark.parametrize("mode", [VERSION, "auto"])
@pytest.mark.parametrize(("path", "name"), [("/v1/mcp/calc", "add"), ("/v1/mcp", "calc__add")])
async def test_a_client_of_the_newer_revision_lists_calls_and_outlives_a_refusal(gateway, mode, path, name):
    async with proxied(gateway.url, BRIDGE) as front, Client(front.url + path, mode=mode) as client:
        assert name in {listed.name for listed in (await client.list_tools()).tools}
        result = await client.call_tool(name, {"a": 1, "b": 2})
        assert (result.content[0].text, result.result_type) == ("3", "complete")
        gateway.set_fault("503", times=1)
        with pytest.raises(MCPError) as raised:
            await client.call_tool(name, {"a": 2, "b": 2})
        assert raised.value.code == -32005
        gateway.clear_faults()
        with pytest.raises(MCPError):
            await client.call_tool(name + "x", {})
    methods = [request.target for request in gateway.journal]
    assert methods
    assert not any(b"initialize" in request.body for request in gateway.journal if hasattr(request, "body"))


@pytest.mark.parametrize(("path", "name"), [("/v1/mcp/calc", "add"), ("/v1/mcp", "calc__add")])
async def test_a_client_of_the_newer_revision_is_told_of_progress_and_repeats_what_a_tool_has_marked(path, name):
    seen = []

    async def progressed(progress, total, message):
        seen.append((progress, total, message))

    tools = [tool("add", inputSchema=REGION), tool("bad", inputSchema=WRONG)]
    async with (
        suites(calc=tools) as gateway,
        proxied(gateway.url, BRIDGE) as front,
        Client(front.url + path, mode=VERSION) as client,
    ):
        assert [listed.name for listed in (await client.list_tools()).tools] == [name]
        for region in ("eu", "日本", " padded "):
            gateway.progress = (1, 2)
            result = await client.call_tool(name, {"region": region}, progress_callback=progressed)
            assert result.result_type == "complete"
            assert gateway.asked[-1][1]["params"]["arguments"] == {"region": region}
    assert [progress for progress, _, _ in seen] == [1, 2] * 3


async def test_a_client_that_finds_no_bridge_goes_on_with_an_older_revision(gateway):
    async with proxied(gateway.url) as front, Client(f"{front.url}/v1/mcp/calc", mode="auto") as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"


# --- what is said ---


async def test_it_is_discovered_without_a_suite_being_asked():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        for path, name in (("/mcp/calc", "calc"), ("/mcp", "sluicegate")):
            status, answer = await told(front, asks("server/discover", "d"), path)
            assert (status, answer["id"]) == (200, "d")
            result = answer["result"]
            assert result["supportedVersions"] == [*SUPPORTED]
            assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
            assert result["_meta"][SERVER_INFO]["name"] == name
        assert not gateway.asked


async def test_a_list_says_how_long_it_is_kept_and_a_call_says_nothing_of_it():
    at_s = [1_800_000_000.0]
    policy = replace(BRIDGE, cache=(CacheRule(method="tools/list", ttl_s=300.0),))
    async with (
        suites(calc=[tool("add")]) as gateway,
        proxied(gateway.url, policy, wall=lambda: at_s[0]) as front,
    ):
        for age_s in (0, 100):
            at_s[0] += age_s
            _, answer = await told(front, asks("tools/list"))
            kept = {name: answer["result"][name] for name in ("resultType", "ttlMs", "cacheScope")}
            assert kept == {"resultType": "complete", "ttlMs": (300 - age_s) * 1000, "cacheScope": "private"}
        _, answer = await told(front, asks("tools/call", name="add", arguments={}))
        assert answer["result"] == {**gateway.result, "resultType": "complete"}
        assert gateway.methods == ["calc tools/list", "calc tools/call"]
        assert "mcp-protocol-version" not in gateway.headers[-1], "the suite would refuse a version it does not know"


WRAPPED = "=?base64?" + "YWRk" + "?="


@pytest.mark.parametrize(
    ("body", "instead", "status", "code"),
    [
        (asks("tools/list"), {"MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
        (asks("tools/list"), {"MCP-Protocol-Version": None}, 400, -32020),
        (asks("tools/list"), {"Mcp-Method": "tools/call"}, 400, -32020),
        (asks("tools/list"), {"Mcp-Method": None}, 400, -32020),
        (asks("tools/call", name="add"), {"Mcp-Name": "wipe"}, 400, -32020),
        (asks("tools/call", name="add"), {"Mcp-Name": None}, 400, -32020),
        (asks("tools/call", name="add"), {"Mcp-Name": "=?base64?!?="}, 400, -32020),
        (asks("tools/call", name="add"), {"Mcp-Name": WRAPPED}, 200, None),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, {}, 400, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}}}, {"MCP-Protocol-Version": "2027-01-01"}, 400, -32022),
        (asks("initialize"), {}, 404, -32601),
        (asks("ping"), {}, 404, -32601),
        (asks("subscriptions/listen"), {}, 404, -32601),
    ],
)  # fmt: skip
async def test_a_request_that_contradicts_itself_or_asks_for_what_is_gone_is_refused(body, instead, status, code):
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        found, answer = await told(front, body, **instead)
        assert (found, answer.get("error", {}).get("code"), answer["id"]) == (status, code, 1)
        assert len(gateway.asked) == (code is None)


async def test_a_method_that_a_suite_does_not_have_is_not_found(front, gateway):
    async with proxied(gateway.url, BRIDGE) as bridged:
        status, answer = await told(bridged, asks("prompts/list"))
    assert (status, answer["error"]["code"]) == (404, -32601)


async def test_without_the_bridge_every_such_request_is_told_which_versions_there_are(front, gateway):
    for body in (asks("server/discover"), asks("tools/list"), asks("tools/call", name="add", arguments={})):
        status, answer = await told(front, body)
        assert (status, answer["error"]["code"]) == (400, -32022)
        assert VERSION not in answer["error"]["data"]["supported"]
    assert not gateway.journal


async def test_clients_of_both_eras_are_served_side_by_side():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        older = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert "resultType" not in (await front.post("/mcp/calc", older)).json["result"]
        assert (await told(front, asks("tools/list")))[1]["result"]["resultType"] == "complete"
        assert "resultType" not in (await front.post("/mcp/calc", older)).json["result"]
        assert (await front.post("/mcp/calc", {"jsonrpc": "2.0", "id": 2, "method": "ping"})).json["result"] == {}
        assert len(gateway.asked) == 1


# --- within a call ---


def step(number, token="t"):
    params = {"progressToken": token, "progress": number}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def event(message):
    return b"data: " + orjson.dumps(message) + b"\n\n"


def calls(number=1, arguments=None, **meta):
    body = asks("tools/call", number, name="add", arguments=arguments or {})
    body["params"]["_meta"] = {**META, **meta}
    return body


def messages(body):
    return [orjson.loads(part.partition(b"data: ")[2]) for part in body.split(b"\n\n") if part]


ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
LIFTED = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "resultType": "complete"}}


async def test_progress_is_with_the_caller_before_the_answer_exists():
    go_on = asyncio.Event()
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        gateway.slow["calc"] = [[event(step(1)), go_on, event(step(2)), event(ANSWER)]]
        body = calls(progressToken="t")
        async with front.client.post(front.url + "/mcp/calc", json=body, headers=said(body)) as reply:
            assert (reply.status, reply.headers["Content-Type"]) == (200, "text/event-stream")
            assert reply.headers["X-Accel-Buffering"] == "no"
            first = await reply.content.readuntil(b"\n\n")
            assert messages(first) == [step(1)]
            go_on.set()
            assert messages(await reply.content.read()) == [step(2), LIFTED]
        (entry,) = [entry for entry in front.entries if hasattr(entry, "charge")]
        assert (entry.ending, entry.charge.calls) == (Ending.ANSWERED, 1)


@pytest.mark.parametrize(
    ("meta", "instead"),
    [({}, {}), ({"progressToken": "u"}, {}), ({"progressToken": "t"}, {"Accept": "application/json"})],
)
async def test_who_asked_for_no_progress_or_takes_no_stream_has_the_answer_alone(meta, instead):
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        gateway.raw["calc"] = [event(step(1)) + event(ANSWER)]
        assert await told(front, calls(**meta), **instead) == (200, LIFTED)


async def test_an_error_has_its_status_unless_progress_came_first():
    wrong = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no such tool"}}
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        gateway.raw["calc"] = [event(wrong), event(step(1)) + event(wrong)]
        body = calls(progressToken="t")
        assert await told(front, body) == (400, wrong)
        reply = await front.post("/mcp/calc", body, headers=said(body))
        assert (reply.status, messages(reply.body)) == (200, [step(1), wrong])


async def test_a_stream_that_breaks_off_after_progress_ends_in_an_error():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        gateway.slow["calc"] = [[event(step(1))]]
        body = calls(progressToken="t")
        first, last = messages((await front.post("/mcp/calc", body, headers=said(body))).body)
        assert (first, last["id"], last["error"]["code"]) == (step(1), 1, -32004)


async def test_one_of_many_callers_of_one_answer_is_told_of_no_progress():
    rule = CacheRule(Match(tool="calc.add"), ttl_s=60.0)
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, replace(BRIDGE, cache=(rule,))) as front:
        await told(front, asks("tools/list"))
        gateway.raw["calc"] = [event(step(1)) + event(ANSWER)]
        for _ in range(2):
            assert await told(front, calls(progressToken="t")) == (200, LIFTED)
        assert gateway.methods == ["calc tools/list", "calc tools/call"]


@pytest.mark.parametrize("begun", [(event(step(1)),), ()])
async def test_to_close_the_connection_takes_the_call_back_and_it_stays_counted(begun):
    never = asyncio.Event()
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        gateway.slow["calc"] = [[*begun, never]]
        body = calls(progressToken="t")
        running = asyncio.ensure_future(front.post("/mcp/calc", body, headers=said(body)))
        await front.until(lambda: any(e.head_s is not None for e in front.running.parts.exchanges.open))
        running.cancel()
        await front.until(lambda: gateway.left == ["calc"])
        await front.until(lambda: any(hasattr(entry, "charge") for entry in front.entries))
        (entry,) = [entry for entry in front.entries if hasattr(entry, "charge")]
        assert (entry.ending, entry.charge.calls) == (Ending.CALLER_LEFT, 1)


@pytest.mark.parametrize("level", ["loud", 3, None])
async def test_a_level_of_log_messages_that_does_not_exist_is_refused(level):
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        status, answer = await told(front, calls(**{"io.modelcontextprotocol/logLevel": level}))
        assert (status, answer["error"]["code"]) == (400, -32602)
        assert not gateway.asked


# --- arguments in the header ---


@pytest.mark.parametrize(
    ("arguments", "lines", "status"),
    [
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}, 200),
        ({"region": "eu"}, {"mcp-param-region": "=?base64?ZXU=?="}, 200),
        ({"other": "eu"}, {"Mcp-Param-Other": "us"}, 200),
        ({"region": None}, {}, 200),
        ({"region": "eu"}, {}, 400),
        ({"region": "eu"}, {"Mcp-Param-Region": "us"}, 400),
        ({}, {"Mcp-Param-Region": "eu"}, 400),
        ({"region": "eu"}, {"Mcp-Param-Region": "=?base64?ZXU?="}, 400),
    ],
)
@pytest.mark.parametrize(("path", "name"), [("/mcp/calc", "add"), ("/mcp", "calc__add"), ("/mcp", "sum")])
async def test_a_header_must_say_what_the_arguments_say(path, name, arguments, lines, status):
    policy = replace(BRIDGE, tool_aliases={"sum": "calc.add"} if name == "sum" else {})
    async with suites(calc=[tool("add", inputSchema=REGION)]) as gateway, proxied(gateway.url, policy) as front:
        body = asks("tools/call", name=name, arguments=arguments)
        for _ in range(2):
            found, answer = await told(front, body, path, **lines)
            assert (found, answer.get("error", {}).get("code")) == (status, None if status == 200 else -32020)
        calls_made = gateway.methods.count("calc tools/call")
        assert calls_made == (2 if status == 200 else 0)
        assert gateway.methods.count("calc tools/list") == 1, "a tool that nobody has listed is looked for, once"
        older = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        assert "result" in (await front.post(path, older)).json, "older revisions know no such lines"


async def test_a_tool_with_a_wrong_mark_is_left_out_for_clients_of_the_revision_and_told_to_whoever_runs_the_proxy():
    tools = [tool("add"), tool("bad", inputSchema=WRONG)]
    async with suites(calc=tools) as gateway, proxied(gateway.url, BRIDGE) as front:
        older = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        for path, before in (("/mcp/calc", ""), ("/mcp", "calc__")):
            for _ in range(2):
                _, answer = await told(front, asks("tools/list"), path)
                assert [one["name"] for one in answer["result"]["tools"]] == [before + "add"]
                both = (await front.post(path, older)).json["result"]["tools"]
                assert [one["name"] for one in both] == [before + "add", before + "bad"]
        (noted,) = [one for one in front.events if one["event"] == "tool_left_out"]
        assert (noted["suite"], noted["tool"]) == ("calc", "bad")
        assert "region" in noted["why"]


async def test_a_line_that_came_twice_or_cannot_be_a_header_is_refused():
    async with suites(calc=[tool("add"), tool("größer")]) as gateway, proxied(gateway.url, BRIDGE) as front:
        body = asks("tools/list")
        for twice in ("Mcp-Method", "MCP-Protocol-Version"):
            lines = [*said(body).items(), (twice, said(body)[twice])]
            reply = await front.post("/mcp/calc", body, headers=lines)
            assert (reply.status, reply.json["error"]["code"]) == (400, -32020)
        named = asks("tools/call", name="größer", arguments={})
        assert (await told(front, named))[0] == 400
        status, _ = await told(front, named, **{"Mcp-Name": "=?base64?Z3LDtsOfZXI=?="})
        assert status == 200
