"""The official conformance runner, against a suite directly and through the proxy: the same verdicts, and one better."""

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.clients.conformance import app
from tests.clients.roster import PACKAGES
from tests.proxies import proxied

NODE = PACKAGES / ".bin" / "node"
RUNNER = PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

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


async def verdicts(url, folder):
    """Passed and failed checks by scenario."""
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(RUNNER), "server", "--url", url, "-o", str(folder),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 90)
    found = re.findall(r"^\S (\S+): (\d+) passed, (\d+) failed$", out.decode(), re.MULTILINE)
    assert found, out.decode()[-2000:]
    return {name: (int(passed), int(failed)) for name, passed, failed in found}


async def test_each_check_has_the_same_verdict_through_the_proxy_as_without_it(needs, tmp_path):
    needs("mcp-conformance")
    async with fixture_suite() as direct, proxied(direct) as front:
        without = await verdicts(f"{direct}/v1/gateway/mcp/fixture/", tmp_path / "without")
        through = await verdicts(f"{front.url}/v1/mcp/fixture", tmp_path / "through")
    assert without.pop(ALREADY_OURS)[1]
    assert through.pop(ALREADY_OURS) == (2, 0)
    assert through == without
    assert {name for name, (_, failed) in through.items() if failed} == set(BASELINE)
