"""MCP clients of JavaScript: both lines of the SDK, and bridges that speak pipes to a client and HTTP to the proxy."""

import pytest

from tests.clients.roster import JS
from tests.journeys.programs import command

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
