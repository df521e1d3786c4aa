"""The MCP inspector's command line through the proxy; each command is a session of its own."""

import json

import pytest

from tests.clients.roster import NODE, PACKAGES

INSPECTOR = PACKAGES / ".bin" / "inspector"


@pytest.fixture(params=[("/text", "upper"), ("", "text__upper")], ids=["one suite", "all suites"])
def inspector(request, person, needs):
    """One command of the inspector, and what it printed."""
    needs("inspector")
    suite, tool = request.param

    def run(method, *words):
        named = ("--tool-name", tool, *words) if method == "tools/call" else words
        at = f"{person.url}/v1/mcp{suite}"
        return person.starts(str(NODE), str(INSPECTOR), "--cli", at, "--transport", "http", "--method", method, *named)

    run.tool = tool
    return run


def test_it_lists_and_calls(inspector):
    turn = inspector("tools/list")
    assert turn.code == 0, turn.err
    assert inspector.tool in {tool["name"] for tool in json.loads(turn.out)["tools"]}
    turn = inspector("tools/call", "--tool-arg", "text=gate")
    assert json.loads(turn.out)["content"][0]["text"] == "GATE"


def test_a_refusal_is_told_with_its_sentence_and_the_next_call_works(inspector, gateway):
    for fault, sentence in (
        ("402", "Credit balance exhausted"),
        ("429", "Rate limit exceeded"),
        ("503", "maintenance"),
    ):
        turn = inspector("tools/call", "--tool-arg", f"text=[[fault:{fault}]]")
        assert turn.code != 0
        assert sentence in turn.out + turn.err
        assert inspector("tools/call", "--tool-arg", "text=gate").code == 0
