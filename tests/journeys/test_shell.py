"""What a person types: the variables of `env`, a command under `run`, the demo; SDKs find the proxy by themselves."""

import json
import shlex
import subprocess
import sys

import pytest

from tests.journeys.programs import GATEWAY_KEY, command, environment

ASKS = {
    "openai": (
        "import openai; c = openai.OpenAI(max_retries=0)\n"
        "m = [{'role': 'user', 'content': 'hi'}]\n"
        "print(c.chat.completions.create(model='gpt-4o-mini', messages=m).choices[0].message.content)\n"
    ),
    "native": (
        "import anthropic; c = anthropic.Anthropic(max_retries=0)\n"
        "m = [{'role': 'user', 'content': 'hi'}]\n"
        "print(c.messages.create(model='claude-opus-x', max_tokens=64, messages=m).content[0].text)\n"
    ),
    "mcp": (
        "import anyio, os, httpx2; from mcp import Client; from mcp.client.streamable_http import streamable_http_client\n"
        "async def main():\n"
        "    headers = {'Authorization': os.environ['MCP_AUTHORIZATION']}\n"
        "    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:\n"
        "        transport = streamable_http_client(os.environ['MCP_BASE_URL'] + '/calc', http_client=http)\n"
        "        async with Client(transport) as client:\n"
        "            print((await client.call_tool('add', {'a': 1, 'b': 2})).content[0].text)\n"
        "anyio.run(main)\n"
    ),
}
CANARY = "gk-canary-0123456789"


def shell(home, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, timeout=60, cwd=home,
        env=environment(home, **environ),
    )  # fmt: skip


def sluicegate(*arguments: str) -> str:
    return shlex.join(command(*arguments))


@pytest.mark.parametrize("family", ASKS)
def test_an_sdk_in_a_shell_that_read_env_comes_here(home, url, gateway, family):
    """`env` also takes away a second credential of the same SDK, with which each call would be refused."""
    ask = shlex.join([sys.executable, "-c", ASKS[family]])
    script = f'eval "$({sluicegate("env", "--for", family, "--url", url)})" && {ask}'
    done = shell(home, script, ANTHROPIC_API_KEY="another")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert gateway.seen()[-1].headers["authorization"] == f"Bearer {GATEWAY_KEY}"


def test_a_command_under_run_comes_here(home, url, gateway):
    done = shell(home, sluicegate("run", "--url", url, "--", sys.executable, "-c", ASKS["openai"]))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert len(gateway.seen()) == 1


def test_a_command_under_run_keeps_its_environment_and_its_exit_code_and_learns_no_secret(home, url):
    show = "import json, os, sys; print(json.dumps(dict(os.environ))); sys.exit(7)"
    secrets = {
        "SLUICEGATE_UPSTREAM_KEY": CANARY,
        "SLUICEGATE_ADMIN_TOKEN": CANARY,
        "SLUICEGATE_TENANT_TOKEN": CANARY,
        "ANTHROPIC_API_KEY": CANARY,
    }
    done = shell(home, sluicegate("run", "--url", url, "--", sys.executable, "-c", show), OWN="kept", **secrets)
    assert done.returncode == 7
    seen = json.loads(done.stdout)
    assert seen["OWN"] == "kept"
    assert seen["OPENAI_BASE_URL"] == f"{url}/v1"
    assert CANARY not in done.stdout + done.stderr


def test_the_demo_needs_nothing(home):
    done = shell(home, sluicegate("demo", "--once", "--port", "0"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "Its first answer: '" in done.stdout
