"""`sluicegate mcp`: what it lists, what clients are told, and the bridge, driven by pipes and by a real client."""

import asyncio
import json
import subprocess
import tomllib
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.cli.mcpclients import CLIENTS
from proxy.core.deterministic import CacheRule
from proxy.core.limits import Counts, Match, Rate
from proxy.core.newer import VERSION
from proxy.core.policy import DEFAULT_POLICY, McpNewer
from tests.journeys.programs import command, emulating, environment, serving
from tests.ports import held_port
from tests.proxies import proxied
from tests.suites import call, listing, suites, tool

INITIALIZE = {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}


def run(home, *words, **environ):
    return subprocess.run(
        command("mcp", *words),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=home,
        env=environment(home, **environ),
    )


# --- list ---


async def test_it_lists_what_the_key_may_use_and_says_which_suite_has_no_list(tmp_path):
    team = replace(DEFAULT_POLICY.teams["default"], deny_tools=("calc.wipe",))
    policy = replace(DEFAULT_POLICY, teams={"default": team})
    tools = {"calc": [tool("add", description="Add\ntwo"), tool("wipe")], "docs": [tool("find")]}
    async with suites(**tools) as gateway, proxied(gateway.url, policy) as front:
        gateway.statuses["docs"] = 502
        done = await asyncio.to_thread(run, tmp_path, "list", "--url", front.url)
        assert done.returncode == 1
        assert done.stdout.splitlines()[1].split() == ["calc", "add", "Add"]
        assert "wipe" not in done.stdout
        assert done.stderr.startswith("docs: ")
        gateway.statuses.clear()
        done = await asyncio.to_thread(run, tmp_path, "list", "--url", front.url, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        assert [[one["suite"], len(one["tools"])] for one in json.loads(done.stdout)] == [["calc", 1], ["docs", 1]]


def test_a_proxy_that_is_away_is_said_so(tmp_path):
    done = run(tmp_path, "list", "--url", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert "no answer from a proxy at http://127.0.0.1:1" in done.stderr


# --- config ---


@pytest.mark.parametrize("client", [row.name for row in CLIENTS])
@pytest.mark.parametrize("suite", [None, "calc", "calc.v2"])
def test_an_entry_can_be_read_by_its_client_and_leads_to_the_proxy(tmp_path, client, suite):
    words = ["config", "--client", client, "--port", "9", *([suite] if suite else [])]
    done = run(tmp_path, *words, SLUICEGATE_KEY="sg-team")
    assert done.returncode == 0, done.stderr
    tree = tomllib.loads(done.stdout) if client == "codex" else json.loads(done.stdout)
    ((_, servers),) = tree.items()
    ((name, entry),) = servers.items()
    assert name == (suite or "sluicegate")
    if "command" in entry:
        assert entry["env"] == {"SLUICEGATE_KEY": "sg-team"}
        assert not [word for word in (entry["command"], *entry["args"]) if "sg-team" in word], "others could read it"
        assert entry["args"][-4:] == ["stdio", suite or "all", "--url", "http://127.0.0.1:9"]
        assert Path(entry["command"]).is_absolute()
    else:
        (address,) = [value for value in entry.values() if isinstance(value, str) and value.startswith("http://")]
        assert address == "http://127.0.0.1:9/v1/mcp" + (f"/{suite}" if suite else "")
        assert {"Authorization": "Bearer sg-team"} in entry.values()


# --- stdio ---


class Bridge:
    """The command on pipes."""

    def __init__(self, process):
        self.process = process

    async def say(self, *messages):
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def hear(self):
        line = await asyncio.wait_for(self.process.stdout.readline(), 60)
        assert line.endswith(b"\n"), line
        return json.loads(line)

    async def asked(self, message):
        await self.say(message)
        return await self.hear()

    def resident_kb(self):
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@asynccontextmanager
async def bridged(home, url, suite="calc"):
    process = await asyncio.create_subprocess_exec(
        *command("mcp", "stdio", suite, "--url", url),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=64 * 1024 * 1024,
        env=environment(home),
    )
    try:
        yield Bridge(process)
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 60) == 0
        assert await process.stdout.read() == b"", "nothing but messages, each once"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def behind(home, policy=DEFAULT_POLICY, suite="calc", **flags):
    """A gateway with one tool, a proxy in front of it, and the bridge."""
    async with (
        suites(calc=[tool("add")]) as gateway,
        proxied(gateway.url, policy, **flags) as front,
        bridged(home, front.url, suite) as bridge,
    ):
        yield gateway, front, bridge


async def test_each_line_is_answered_with_one_line_under_its_id(tmp_path):
    async with behind(tmp_path) as (gateway, _front, bridge):
        assert (await bridge.asked({"jsonrpc": "2.0", "id": 0, "method": "ping"}))["result"] == {}
        await bridge.say({"jsonrpc": "2.0", "method": "notifications/initialized"}, b"", b"nonsense")
        assert (await bridge.hear())["error"]["code"] == -32700
        assert (await bridge.asked(listing("l")))["result"]["tools"] == gateway.tools["calc"]
        assert (await bridge.asked(call("add", 1)))["result"] == gateway.result
        assert (await bridge.asked([call("add", 2)]))["error"]["code"] == -32600
        assert (await bridge.asked({"jsonrpc": "2.0", "id": 3, "method": "server/discover"}))["id"] == 3


async def test_an_id_that_no_number_of_a_decoder_holds_comes_back_as_it_was_written(tmp_path):
    endless = 123456789012345678901234
    async with behind(tmp_path) as (_gateway, _front, bridge):
        told = await bridge.asked({"jsonrpc": "2.0", "id": endless, "method": "ping"})
        assert told["id"] == endless
        assert "digits" in told["error"]["message"]


async def test_progress_and_long_answers_pass_as_they_came(tmp_path):
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    long = {"content": [{"type": "text", "text": "x" * 1_000_000}]}
    async with behind(tmp_path) as (gateway, _front, bridge):
        answer = {"jsonrpc": "2.0", "id": 1, "result": long}
        gateway.raw["calc"] = [b"".join(b"data: %s\n\n" % json.dumps(one).encode() for one in (progress, answer))]
        await bridge.say(call("add", 1))
        assert [await bridge.hear(), await bridge.hear()] == [progress, answer]


async def test_a_refusal_is_told_and_the_next_call_works(tmp_path):
    team = replace(DEFAULT_POLICY.teams["default"], deny_tools=("calc.wipe",))
    policy = replace(DEFAULT_POLICY, teams={"default": team})
    async with behind(tmp_path, policy, suite="all") as (gateway, _front, bridge):
        assert (await bridge.asked(INITIALIZE))["result"]["serverInfo"]["name"] == "sluicegate"
        assert [one["name"] for one in (await bridge.asked(listing()))["result"]["tools"]] == ["calc__add"]
        assert (await bridge.asked(call("calc__nothing", 1)))["error"]["code"] == -32602
        assert (await bridge.asked(call("calc__add", 2)))["result"] == gateway.result


async def test_a_key_that_is_refused_is_told_on_every_line(tmp_path):
    async with behind(tmp_path, auth="keys") as (_gateway, _front, bridge):
        for number in (0, "x"):
            told = await bridge.asked(call("add", number))
            assert told["id"] == number
            assert "virtual key" in told["error"]["message"]


async def test_a_call_that_is_cancelled_while_it_waits_is_never_sent(tmp_path):
    rate = Rate("one", Counts.REQUESTS, 1, 600.0)
    policy = replace(
        DEFAULT_POLICY, rates=(rate,), teams={"default": replace(DEFAULT_POLICY.teams["default"], wait_max_s=3600.0)}
    )
    async with behind(tmp_path, policy) as (gateway, front, bridge):
        assert "result" in await bridge.asked(call("add", 1))
        await bridge.say(call("add", 2), call("add", 3))
        await front.until(lambda: len(front.running.parts.queue.scheduler) == 2)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        wrong = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "3"}}
        await bridge.say(cancel, wrong)
        await front.until(lambda: len(front.running.parts.queue.scheduler) == 1)
        await bridge.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})
        await front.until(lambda: len(front.running.parts.queue.scheduler) == 0)
        assert "result" in await bridge.asked({"jsonrpc": "2.0", "id": 4, "method": "ping"})
        assert len(gateway.asked) == 1


@pytest.fixture
def port():
    with held_port() as held:
        yield held


def test_a_proxy_killed_in_the_middle_of_a_call_is_one_error_and_the_next_call_works(tmp_path, port):
    listen = ("--auth", "open", "--listen", f"127.0.0.1:{port}")
    with emulating(tmp_path) as gateway, serving(tmp_path, gateway.url, *listen) as first:
        url = first.url("listens on")

        async def story():
            async with bridged(tmp_path, url) as bridge:
                assert "result" in await bridge.asked(call("add", 1, a=1, b=2))
                gateway.arm("slow", gate="never", at=0, times=1)
                await bridge.say(call("add", 2, a=1, b=2))
                gateway.wait_for_gate("never")
                first.process.kill()
                # The system closes a dying program's sockets in an order of its own: one that still listened would
                # take the next line, and lose it.
                first.process.wait()
                told = await bridge.hear()
                assert (told["id"], told["error"]["code"]) == (2, -32004)
                assert "may have been charged" in told["error"]["message"]
                # The next one is asked while nothing listens: it is kept until somebody does.
                await bridge.say(call("add", 3, a=1, b=2))
                with serving(tmp_path, gateway.url, *listen) as second:
                    assert (await bridge.hear())["result"]["content"][0]["text"] == "3"
                    assert second.stop() == 0

        asyncio.run(story())


async def test_ten_thousand_calls_leave_nothing_behind(tmp_path):
    policy = replace(DEFAULT_POLICY, cache=(CacheRule(Match(tool="calc.add"), ttl_s=3600.0),))
    async with behind(tmp_path, policy) as (gateway, _front, bridge):
        await bridge.asked(listing("l"))

        async def ask(numbers):
            for at in range(0, len(numbers), 50):
                some = numbers[at : at + 50]
                await bridge.say(*(call("add", number) for number in some))
                told = [await bridge.hear() for _ in some]
                assert sorted(one["id"] for one in told) == list(some)
                assert all("result" in one for one in told)

        await ask(range(2_000))
        settled_kb = bridge.resident_kb()
        await ask(range(2_000, 10_000))
        grown_kb = bridge.resident_kb() - settled_kb
        assert grown_kb < 4_000, f"{grown_kb} kB more after 8,000 calls"
        assert len(gateway.asked) == 2


async def test_a_real_client_connects_lists_and_calls(tmp_path, front):
    from mcp import Client, StdioServerParameters

    words = command("mcp", "stdio", "all", "--url", front.url)
    server = StdioServerParameters(command=words[0], args=words[1:], env=environment(tmp_path))
    async with Client(server) as client:
        assert "calc__add" in {listed.name for listed in (await client.list_tools()).tools}
        for a in range(20):
            result = await client.call_tool("calc__add", {"a": a, "b": 1})
            assert result.content[0].text == str(a + 1)


async def test_a_client_of_the_newer_revision_is_given_the_header_that_it_cannot_send(tmp_path):
    from mcp import Client, StdioServerParameters

    seen = []

    async def progressed(progress, _total, _message):
        seen.append(progress)

    marked = {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "of": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
    }
    bridging = replace(DEFAULT_POLICY, mcp_newer=McpNewer.BRIDGE)
    tools = [tool("add", inputSchema={"type": "object", "properties": marked})]
    async with suites(calc=tools) as gateway, proxied(gateway.url, bridging) as front:
        words = command("mcp", "stdio", "all", "--url", front.url)
        server = StdioServerParameters(command=words[0], args=words[1:], env=environment(tmp_path))
        async with Client(server, mode=VERSION) as client:
            (listed,) = (await client.list_tools()).tools
            for arguments in (
                {"region": "eu", "of": {"count": 42}},
                {"region": " grün\n"},
                {"of": {"count": None}},
                {},
            ):
                gateway.progress = (1, 2)
                result = await client.call_tool(listed.name, arguments, progress_callback=progressed)
                assert result.result_type == "complete"
                assert gateway.asked[-1][1]["params"]["arguments"] == arguments
    assert seen == [1, 2] * 4
