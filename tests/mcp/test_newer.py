"""Clients of the revision 2026-07-28: bridged to suites of the older era where the policy says so, else sent back."""

from dataclasses import replace

import pytest
from mcp import Client, MCPError

from proxy.core.deterministic import CacheRule
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
