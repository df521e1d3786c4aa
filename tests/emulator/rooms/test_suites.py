import pytest

from proxy.emulator.tools import PAGES

BOTH = "application/json, text/event-stream"


async def result(reply):
    assert reply.status == 200
    return reply.events[0]["result"]


@pytest.mark.fact("mcp-list")
async def test_the_list_shows_the_suites_this_key_can_use(api):
    entries = (await api.get("mcp/")).json["data"]
    assert [entry["name"] for entry in entries] == ["calc", "docs", "text"]


@pytest.mark.fact("mcp-one-event")
async def test_the_answer_is_one_event_named_message(api):
    reply = await api.add(2, 3)
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    assert reply.body.startswith(b"event: message\ndata: {")
    assert reply.body.count(b"event:") == reply.body.count(b"\n\n") == 1
    assert reply.events[0]["result"] == {"content": [{"type": "text", "text": "5"}], "isError": False}


@pytest.mark.fact("mcp-ids")
async def test_the_answer_carries_the_id_of_the_request(api):
    for ident in (0, 7, "i-1", ""):
        assert (await api.rpc("calc", "ping", ident=ident)).events[0] == {"jsonrpc": "2.0", "id": ident, "result": {}}


@pytest.mark.fact("mcp-405")
async def test_get_and_delete_are_told_to_post(api):
    for method in ("GET", "DELETE"):
        reply = await api.call(method, "mcp/calc/", headers={"Accept": "text/event-stream"})
        assert reply.refusal == (405, "Use POST; this endpoint is stateless streamable-HTTP"), method


@pytest.mark.fact("mcp-session")
async def test_no_session_is_minted(api):
    reply = await api.rpc("calc", "initialize", {"protocolVersion": "2025-06-18"})
    assert "Mcp-Session-Id" not in reply.headers
    assert (await api.rpc("calc", "ping", headers={"Mcp-Session-Id": "x"})).status == 200


@pytest.mark.fact("mcp-406")
async def test_accept_must_name_both_formats(api):
    for accept in ("application/json", "text/event-stream", "*/*", "", "application/*, text/*"):
        reply = await api.rpc("calc", "ping", headers={"Accept": accept})
        assert reply.refusal == (
            406,
            "Not Acceptable: Client must accept both application/json and text/event-stream",
        ), accept
    for accept in (BOTH, "text/event-stream;q=0.5,application/json, */*"):
        assert (await api.rpc("calc", "ping", headers={"Accept": accept})).status == 200, accept


@pytest.mark.fact("mcp-accept-absent")
async def test_without_accept_both_formats_are_assumed(api):
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    reply = await api.call("POST", "mcp/calc/", data=body, skip_auto_headers=["Accept"])
    assert reply.status == 200


@pytest.mark.fact("mcp-400")
async def test_what_is_not_one_json_rpc_request_is_400(api):
    for data in (
        b"",
        b"{",
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    ):
        reply = await api.call("POST", "mcp/calc/", data=data, headers={"Accept": BOTH})
        assert reply.status == 400, data
        assert reply.detail.startswith("Invalid JSON-RPC request: "), data


@pytest.mark.fact("mcp-404-unknown")
async def test_an_unknown_suite_is_404(api):
    assert (await api.rpc("nope", "ping")).refusal == (404, "Unknown MCP suite 'nope'. See GET /v1/gateway/mcp/")


@pytest.mark.fact("mcp-404-app")
async def test_a_suite_of_the_app_is_404(api):
    sentence = "MCP suite 'desktop' is not available through the API. See GET /v1/gateway/mcp/"
    assert (await api.rpc("desktop", "ping")).refusal == (404, sentence)


@pytest.mark.fact("mcp-403")
async def test_a_suite_the_organization_switched_off_is_403(api):
    sentence = "MCP suite 'mailbox' is disabled by your organization's connector settings"
    assert (await api.rpc("mailbox", "ping")).refusal == (403, sentence)


@pytest.mark.fact("mcp-502")
async def test_a_suite_that_fails_is_502(api):
    reply = await api.add(headers={"x-emulator-fault": "502"})
    assert reply.refusal == (502, "MCP suite 'calc' did not respond. Try again shortly")


@pytest.mark.fact("mcp-503")
async def test_a_suite_that_failed_again_and_again_is_paused_for_a_while(api):
    for _ in range(3):
        await api.add(headers={"x-emulator-fault": "502"})
    reply = await api.add()
    sentence = "MCP suite 'calc' is paused after repeated upstream failures. Retry in 30 seconds"
    assert reply.refusal == (503, sentence)
    assert reply.headers["Retry-After"] == "30"
    assert (await api.rpc("docs", "ping")).status == 200
    api.clock.forward(30)
    assert (await api.add()).status == 200


async def test_failures_that_are_not_in_a_row_pause_nothing(api):
    for _ in range(2):
        for _ in range(2):
            await api.add(headers={"x-emulator-fault": "502"})
        assert (await api.add()).status == 200


@pytest.mark.fact("mcp-initialize")
async def test_initialize_agrees_on_a_version(api):
    for asked, agreed in (("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")):
        value = await result(await api.rpc("calc", "initialize", {"protocolVersion": asked}))
        assert value["protocolVersion"] == agreed
        assert value["capabilities"] == {"tools": {"listChanged": False}}


@pytest.mark.fact("mcp-tools-list")
async def test_tools_are_listed_with_their_arguments(api):
    tools = (await result(await api.rpc("docs", "tools/list")))["tools"]
    assert [tool["name"] for tool in tools] == ["search", "fetch", "delete_page"]
    assert tools[0]["inputSchema"] == {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
        "additionalProperties": False,
    }


@pytest.mark.fact("mcp-tools-call")
async def test_tools_do_what_they_say(api):
    for suite, tool, arguments, said in (
        ("calc", "subtract", {"a": 5, "b": 7}, "-2"),
        ("calc", "multiply", {"a": 1.5, "b": 4}, "6"),
        ("calc", "divide", {"a": 1, "b": 4}, "0.25"),
        ("docs", "search", {"query": "gate"}, "gates\nmills"),
        ("docs", "search", {"query": "gate", "limit": 1}, "gates"),
        ("docs", "fetch", {"page": "herons"}, PAGES["herons"]),
        ("docs", "delete_page", {"page": "herons"}, "deleted herons"),
        ("text", "reverse", {"text": "abc"}, "cba"),
        ("text", "upper", {"text": "abc"}, "ABC"),
        ("text", "count_words", {"text": "a b  c"}, "3"),
    ):
        value = await result(await api.rpc(suite, "tools/call", {"name": tool, "arguments": arguments}))
        assert value == {"content": [{"type": "text", "text": said}], "isError": False}, tool


@pytest.mark.fact("mcp-tool-errors")
async def test_arguments_that_do_not_fit_and_tools_that_fail_are_errors_in_the_result(api):
    for arguments in ({"a": 1}, {"a": "1", "b": 2}, {"a": True, "b": 2}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 0}):
        value = await result(await api.rpc("calc", "tools/call", {"name": "divide", "arguments": arguments}))
        assert value["isError"] is True, arguments


@pytest.mark.fact("mcp-unknown-tool")
async def test_an_unknown_tool_is_a_json_rpc_error(api):
    reply = await api.rpc("calc", "tools/call", {"name": "integrate", "arguments": {}})
    assert reply.status == 200
    assert reply.events[0]["error"] == {"code": -32602, "message": "Unknown tool: integrate"}


@pytest.mark.fact("mcp-unknown-method")
async def test_an_unknown_method_is_a_json_rpc_error(api):
    for method in ("resources/list", "server/discover", "TOOLS/CALL"):
        reply = await api.rpc("calc", method)
        assert (reply.status, reply.events[0]["error"]["code"]) == (200, -32601), method


async def test_an_unknown_protocol_version_header_is_400(api):
    assert (await api.rpc("calc", "ping", headers={"MCP-Protocol-Version": "2026-07-28"})).status == 400
    assert (await api.rpc("calc", "ping", headers={"MCP-Protocol-Version": "2025-11-25"})).status == 200


@pytest.mark.fact("mcp-free")
async def test_only_tools_call_is_counted(api):
    await api.rpc("calc", "initialize", {})
    await api.rpc("calc", "tools/list")
    await api.rpc("calc", "ping")
    assert not api.gateway.world.tool_calls
    await api.add()
    assert api.gateway.world.tool_calls == {"mcp:calc": 1}


@pytest.mark.fact("mcp-counted")
async def test_a_call_that_ran_counts_even_when_its_result_is_an_error(api):
    await api.rpc("calc", "tools/call", {"name": "divide", "arguments": {"a": 1, "b": 0}})
    await api.rpc("calc", "tools/call", {"name": "unknown"})
    assert api.gateway.world.tool_calls == {"mcp:calc": 2}


@pytest.mark.fact("mcp-not-counted")
async def test_a_refused_or_failed_call_is_not_counted(api):
    await api.add(headers={"Accept": "application/json"})
    await api.add(headers={"x-emulator-fault": "502"})
    assert not api.gateway.world.tool_calls


@pytest.mark.fact("mcp-price")
async def test_a_call_costs_nothing_today(api):
    await api.add()
    assert api.gateway.journal[-1].charged == 0
    api.gateway.set_credits("alpha", 0)
    assert (await api.add()).status == 200
