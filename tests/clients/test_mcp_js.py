"""MCP clients of JavaScript: both lines of the SDK, and bridges that speak pipes to a client and HTTP to the proxy."""

import asyncio
import json
import subprocess
from dataclasses import replace

import pytest

from proxy.core.policy import DEFAULT_POLICY, McpNewer
from tests.clients.roster import JS
from tests.journeys.programs import command
from tests.proxies import proxied
from tests.suites import suites, tool

WELL, SAID = {"text": "gate"}, "GATE"
REFUSALS = {
    "402": (-32002, "Credit balance exhausted"),
    "429": (-32003, "Rate limit exceeded"),
    "502": (-32004, "did not respond"),
    "503": (-32005, "maintenance"),
}
BADLY = [{"text": f"[[fault:{name}]]"} for name in REFUSALS]


def told(answer):
    """What every client has to be told, whichever way it came."""
    assert answer["first"] == SAID
    for at, (code, sentence) in enumerate(REFUSALS.values()):
        refused, again = answer["refused"][2 * at : 2 * at + 2]
        assert refused["code"] == code
        assert sentence in refused["message"]
        assert again == {"text": SAID}


@pytest.mark.parametrize("line", ["sdk", "client", "auto"])
@pytest.mark.parametrize(("suite", "tool", "server"), [("text", "upper", "text"), (None, "text__upper", "sluicegate")])
def test_it_connects_lists_calls_and_outlives_refusals(person, needs, line, suite, tool, server):
    needs("mcp-js")
    answer = person.asks("mcp_sdk", line, suite=suite, tool=tool, well=WELL, badly=BADLY)
    told(answer)
    assert answer["server"] == server
    assert tool in answer["tools"]


def bridge(name, url, suite):
    at = f"{url}/v1/mcp" + (f"/{suite}" if suite else "")
    match name:
        case "sluicegate":
            return command("mcp", "stdio", suite or "all", "--url", url)
        case "mcp-remote":
            return [str(JS / "node_modules" / ".bin" / name), at, "--allow-http", "--transport", "http-only"]
        case "supergateway":
            return [str(JS / "node_modules" / ".bin" / name), "--streamableHttp", at, "--logLevel", "none"]


@pytest.mark.parametrize("name", ["sluicegate", "mcp-remote", "supergateway"])
@pytest.mark.parametrize(("suite", "tool"), [("text", "upper"), (None, "text__upper")])
def test_a_client_that_starts_its_server_outlives_refusals_too(person, needs, name, suite, tool):
    needs("mcp-js")
    if name != "sluicegate":
        needs(name)
    program, *words = bridge(name, person.url, suite)
    answer = person.asks("mcp_sdk", "started", command=program, args=words, tool=tool, well=WELL, badly=BADLY)
    told(answer)
    assert tool in answer["tools"]


@pytest.mark.parametrize(("path", "name"), [("/v1/mcp/calc", "add"), ("/v1/mcp", "calc__add")])
async def test_a_client_of_the_newest_revision_is_told_of_progress_and_repeats_what_a_tool_has_marked(
    needs, path, name
):
    needs("mcp-js")
    marked = {
        kind: {"type": "object", "properties": {"a": {"type": kind, "x-mcp-header": "A"}}}
        for kind in ("string", "array")
    }
    tools = [tool("add", inputSchema=marked["string"]), tool("bad", inputSchema=marked["array"])]
    bridging = replace(DEFAULT_POLICY, mcp_newer=McpNewer.BRIDGE)
    calls = [{"a": "plain"}, {"a": " grün, 水\n"}, {}]
    async with suites(calc=tools) as gateway, proxied(gateway.url, bridging) as front:
        gateway.progress = (1, 2)
        asked = json.dumps({"url": front.url + path, "calls": calls})
        process = await asyncio.create_subprocess_exec(
            "node", "mcp_sdk.mjs", "pinned", asked, cwd=JS, stdout=subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        answer = json.loads(out)
        assert answer == {"value": {"tools": [name], "told": [{"steps": [1, 2], "content": []}] * len(calls)}}
        sent = [body["params"]["arguments"] for _, body in gateway.asked if body["method"] == "tools/call"]
        assert sent == calls
