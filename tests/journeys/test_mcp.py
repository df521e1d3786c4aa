"""The newer MCP client line, in both its modes: it connects, lists and calls, and a refusal does not end its session."""

import pytest
from mcp import Client, MCPError

SUITES = {
    "calc": ("add", {"a": 1, "b": 2}, "3"),
    "docs": ("search", {"query": "herons wait"}, "herons"),
    "text": ("upper", {"text": "gate"}, "GATE"),
}
# fmt: off
REFUSALS = [
    # fault      code    the sentence
    ("402",     -32002, "Credit balance exhausted"),
    ("429",     -32003, "Rate limit exceeded: 30 tools/call per minute for this API key"),
    ("500",     -32004, "Internal server error"),
    ("502",     -32004, "MCP suite 'calc' did not respond. Try again shortly"),
    ("503",     -32005, "Service is temporarily stopped for maintenance"),
    ("paused",  -32005, "MCP suite 'calc' is paused after repeated upstream failures. Retry in 30 seconds"),
]
# fmt: on
CLOSED = {
    "mailbox": "MCP suite 'mailbox' is disabled by your organization's connector settings",
    "desktop": "MCP suite 'desktop' is not available through the API. See GET /v1/gateway/mcp/",
    "nowhere": "Unknown MCP suite 'nowhere'. See GET /v1/gateway/mcp/",
}
BROKEN = ["reset-before-head", "close-before-head", "html", "html200", "empty-body", "redirect", "bad-headers"]

pytestmark = pytest.mark.parametrize("mode", ["auto", "legacy"])


async def added(client: Client) -> str:
    return (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("prefix", ["/v1/mcp/", "/v1/gateway/mcp/"])
async def test_every_suite_is_connected_listed_and_called(url, gateway, mode, prefix, suite):
    tool, arguments, said = SUITES[suite]
    async with Client(f"{url}{prefix}{suite}", mode=mode) as client:
        assert client.server_info.name == suite
        assert tool in {listed.name for listed in (await client.list_tools()).tools}
        result = await client.call_tool(tool, arguments)
        assert (result.is_error, result.content[0].text) == (False, said)
    # Neither the probe of the newer revision nor the notification that follows `initialize` went up.
    assert gateway.targets() == [f"POST /v1/gateway/mcp/{suite}/"] * 3


async def test_all_suites_are_one_server(url, gateway, mode):
    async with Client(f"{url}/v1/mcp", mode=mode) as client:
        assert client.server_info.name == "sluicegate"
        assert {f"{suite}__{tool}" for suite, (tool, _, _) in SUITES.items()} <= {
            listed.name for listed in (await client.list_tools()).tools
        }
        gateway.arm("503", times=1)
        with pytest.raises(MCPError) as raised:
            await client.call_tool("calc__add", {"a": 1, "b": 2})
        assert raised.value.code == -32005
        for suite, (tool, arguments, said) in SUITES.items():
            assert (await client.call_tool(f"{suite}__{tool}", arguments)).content[0].text == said


async def test_a_tool_that_fails_is_a_result(url, mode):
    async with Client(f"{url}/v1/mcp/calc/", mode=mode) as client:
        result = await client.call_tool("divide", {"a": 1, "b": 0})
        assert (result.is_error, result.content[0].text) == (True, "division by zero")


async def test_a_refused_call_is_told_and_the_next_one_works(url, gateway, mode):
    async with Client(f"{url}/v1/mcp/calc", mode=mode) as client:
        for fault, code, sentence in REFUSALS:
            gateway.arm(fault, times=1)
            with pytest.raises(MCPError) as raised:
                await added(client)
            assert (raised.value.code, str(raised.value)) == (code, sentence)
            assert raised.value.data["reason"] == "gateway"
            assert await added(client) == "3"


async def test_a_gateway_that_fails_is_told_and_the_next_call_works(url, gateway, mode):
    async with Client(f"{url}/v1/mcp/calc", mode=mode) as client:
        for fault in BROKEN:
            gateway.arm(fault, times=1)
            with pytest.raises(MCPError) as raised:
                await added(client)
            assert raised.value.code == -32004, fault
            assert "gateway" in str(raised.value) or "tool suite" in str(raised.value), fault
            assert await added(client) == "3"


@pytest.mark.parametrize("suite", CLOSED)
async def test_a_suite_that_is_closed_says_why(url, mode, suite):
    with pytest.RaisesGroup(pytest.RaisesExc(MCPError), flatten_subgroups=True) as raised:
        async with Client(f"{url}/v1/mcp/{suite}", mode=mode):
            raise AssertionError("connected")
    told = raised.value
    while isinstance(told, BaseExceptionGroup):
        (told,) = told.exceptions
    assert str(told) == CLOSED[suite]
