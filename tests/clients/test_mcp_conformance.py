"""The official conformance runner, against a suite directly and through the proxy: the same verdicts, and one better."""

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import web

from proxy.core.policy import DEFAULT_POLICY, McpNewer
from tests.clients.conformance import app
from tests.clients.roster import NODE, PACKAGES
from tests.proxies import proxied

RUNNER = PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NEXT = PACKAGES / "conformance-next" / "dist" / "index.js"
"""Has a frozen set of what is required for each revision."""
BRIDGE = replace(DEFAULT_POLICY, mcp_newer=McpNewer.BRIDGE)

_ASKS_BACK = "asks the client something within a call, for which there has to be a session"
_NO_RESOURCES = "the gateway's suites have tools and no resources"
_NO_PROMPTS = "the gateway's suites have tools and no prompts"

# fmt: off
BASELINE = {
    "completion-complete":           "the gateway's suites have tools and nothing to complete",
    "tools-call-sampling":           _ASKS_BACK,
    "tools-call-elicitation":        _ASKS_BACK,
    "elicitation-sep1034-defaults":  _ASKS_BACK,
    "elicitation-sep1330-enums":     _ASKS_BACK,
    "resources-list":                _NO_RESOURCES,
    "resources-read-text":           _NO_RESOURCES,
    "resources-read-binary":         _NO_RESOURCES,
    "resources-templates-read":      _NO_RESOURCES,
    "resources-subscribe":           _NO_RESOURCES,
    "resources-unsubscribe":         _NO_RESOURCES,
    "prompts-list":                  _NO_PROMPTS,
    "prompts-get-simple":            _NO_PROMPTS,
    "prompts-get-with-args":         _NO_PROMPTS,
    "prompts-get-embedded-resource": _NO_PROMPTS,
    "prompts-get-with-image":        _NO_PROMPTS,
}
# fmt: on
"""What a stateless server of tools does not pass, and why."""

_ASKS_BACK_NEWER = "has the server ask for input within a result, which suites of the older era never do"
_CAPABLE = "wants a tool that refuses clients by what they can do, of which a suite of the older era is never told"

# fmt: off
BASELINE_NEWER = {
    "server-stateless":              _CAPABLE,
    "caching":                       "the hints of lists of prompts and resources; those of tools pass",
    "completion-complete":           BASELINE["completion-complete"],
    "resources-list":                _NO_RESOURCES,
    "resources-read-text":           _NO_RESOURCES,
    "resources-read-binary":         _NO_RESOURCES,
    "resources-templates-read":      _NO_RESOURCES,
    "prompts-list":                  _NO_PROMPTS,
    "prompts-get-simple":            _NO_PROMPTS,
    "prompts-get-with-args":         _NO_PROMPTS,
    "prompts-get-embedded-resource": _NO_PROMPTS,
    "prompts-get-with-image":        _NO_PROMPTS,
    "input-required-result-basic-elicitation":       _ASKS_BACK_NEWER,
    "input-required-result-basic-sampling":          _ASKS_BACK_NEWER,
    "input-required-result-basic-list-roots":        _ASKS_BACK_NEWER,
    "input-required-result-request-state":           _ASKS_BACK_NEWER,
    "input-required-result-multiple-input-requests": _ASKS_BACK_NEWER,
    "input-required-result-multi-round":             _ASKS_BACK_NEWER,
    "input-required-result-non-tool-request":        _ASKS_BACK_NEWER,
    "input-required-result-result-type":             _ASKS_BACK_NEWER,
    "input-required-result-tampered-state":          _ASKS_BACK_NEWER,
    "input-required-result-capability-check":        _ASKS_BACK_NEWER,
}
# fmt: on
"""What is required for the revision 2026-07-28 and does not pass through the bridge, and why."""

UNTESTED = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}
"""The checks of `server-stateless` that want that tool; all others of it pass."""

NOT_SCORED = {"http-header-validation", "http-custom-header-server-validation"}
"""Not required yet, as the runner's own fixture does not pass them; through the bridge they pass."""

ALREADY_OURS = "dns-rebinding-protection"
"""The suite does not look at Host and Origin; the proxy does."""


@asynccontextmanager
async def fixture_suite() -> AsyncIterator[str]:
    runner = web.AppRunner(app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site.port}"
    finally:
        await runner.cleanup()


async def verdicts(url, folder, runner=RUNNER, requirements=None, besides=frozenset()):
    """Passed and failed checks by scenario, of those that are required and some besides."""
    of = () if requirements is None else ("--requirements", requirements)
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(runner), "server", "--url", url, *of, "-o", str(folder),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 90)
    said = out.decode()
    found = re.findall(r"^\S (\S+): (\d+) passed, (\d+) failed$", said, re.MULTILINE)
    assert found, said[-2000:]
    extra = set(re.findall(r"^  \S (\S+) \(\S+\)$", said.partition("Not scored for")[2], re.MULTILINE))
    return {name: (int(passed), int(failed)) for name, passed, failed in found if name not in extra - besides}


def failing(found):
    return {name for name, (_, failed) in found.items() if failed}


@pytest.mark.parametrize(
    ("client", "runner", "requirements"),
    [("mcp-conformance", RUNNER, None), ("mcp-conformance-next", NEXT, "2025-11-25")],
    ids=["released", "frozen"],
)
async def test_each_check_has_the_same_verdict_through_the_proxy_as_without_it(
    needs, tmp_path, client, runner, requirements
):
    needs(client)
    async with fixture_suite() as direct, proxied(direct) as front:
        without = await verdicts(f"{direct}/v1/gateway/mcp/fixture/", tmp_path / "without", runner, requirements)
        through = await verdicts(f"{front.url}/v1/mcp/fixture", tmp_path / "through", runner, requirements)
    assert without.pop(ALREADY_OURS)[1]
    assert through.pop(ALREADY_OURS) == (2, 0)
    assert through == without
    assert failing(through) == set(BASELINE)


async def test_the_bridge_passes_what_is_required_of_a_stateless_server_of_tools(needs, tmp_path):
    needs("mcp-conformance-next")
    async with fixture_suite() as direct, proxied(direct, BRIDGE) as front:
        found = await verdicts(f"{front.url}/v1/mcp/fixture", tmp_path, NEXT, "2026-07-28", NOT_SCORED)
    assert all(found[name][0] > 9 for name in NOT_SCORED)
    assert failing(found) == set(BASELINE_NEWER)
    assert found["server-stateless"][1] == len(UNTESTED)
    (checks,) = tmp_path.glob("server-server-stateless-*/checks.json")
    assert {check["id"] for check in json.loads(checks.read_text()) if check["status"] == "FAILURE"} == UNTESTED
