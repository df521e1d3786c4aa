"""fastmcp, which asks `server/discover` first, through the proxy: one suite, and the server of all suites."""

import json

import pytest

from tests.clients.roster import FASTMCP_HOME, HERE
from tests.clients.test_mcp_js import BADLY, WELL, told


@pytest.mark.parametrize(("suite", "tool"), [("/text", "upper"), ("", "text__upper")])
def test_it_connects_lists_calls_and_outlives_refusals(person, needs, suite, tool):
    needs("fastmcp")
    given = {"url": f"{person.url}/v1/mcp{suite}", "tool": tool, "well": WELL, "badly": BADLY}
    turn = person.starts(str(FASTMCP_HOME / "bin" / "python"), str(HERE / "fastmcp_client.py"), json.dumps(given))
    assert turn.code == 0, turn.err
    answer = json.loads(turn.out.splitlines()[-1])
    told(answer)
    assert tool in answer["tools"]
