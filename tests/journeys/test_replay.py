"""What a proxy logged, played again: the same calls start, in the same order, and the same are refused."""

import asyncio
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp

from proxy.config.policyfile import load_policies
from proxy.config.trafficfile import read_traffic
from proxy.core.simulation import Simulation
from tests.journeys.programs import serving

APART_S = 3.0
"""Starts that are further apart than this were so because a window was over, and not by chance."""

IMPATIENT = (10, 11, 13)
"""Calls that come when all places are taken, and would wait for a second only."""

CHAT = {"model": "gpt-4o-mini", "max_tokens": 20, "messages": [{"role": "user", "content": "hello"}]}
TOOL = {"jsonrpc": "2.0", "method": "tools/call"}
RULES = """
gateway_limits: own
rates:
  - { name: chats, match: { route: chat }, requests: 4, within: 6s }
  - { name: tokens, match: { route: chat, team: blue }, tokens: 100, within: 12s }
  - { name: tools, match: { method: tools/call }, requests: 2, within: 6s, each: suite }
budgets: [{ name: blue, match: { team: blue }, credits: 0.05, per: total }]
prices: [{ models: "gpt-*", input_per_million: 100, output_per_million: 1000 }]
cache: [{ match: {}, ttl: 0s }]
teams:
"""


def rules(folder: Path) -> Path:
    folder.mkdir()
    teams = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("red", "blue")}
    lines = [
        f"  {name}: {{ weight: {weight}, wait_max: 60s, keys: [{{ id: {name}, sha256: '{teams[name]}' }}] }}\n"
        for name, weight in (("red", 3), ("blue", 1))
    ]
    (folder / "a.yaml").write_text(RULES + "".join(lines), "utf-8")
    return folder


async def crowd(url: str, admin: str) -> None:
    """Calls of two teams, chats and tools, each with a body of its own, most of which wait for a window or two.

    Each comes when the one before is answered and paid for, or waits. So what a call hears does not hang on how quick the
    machine is: who waits has seconds more patience than it takes, and who is refused would have had to wait for seconds.
    """
    connector, patience = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(100)
    async with aiohttp.ClientSession(connector=connector, timeout=patience) as client:

        async def call(number: int) -> None:
            team = "blue" if number % 3 == 0 else "red"
            headers = {"x-api-key": team} | ({"X-Sluicegate-Wait-Max": "1"} if number in IMPATIENT else {})
            path, body = "/v1/chat/completions", {**CHAT, "user": f"{number}"}
            if number % 4 == 1:
                params = {"name": "add", "arguments": {"a": number, "b": 2}}
                path, body = "/v1/mcp/calc", {**TOOL, "id": number, "params": params}
            async with client.post(url + path, json=body, headers=headers) as reply:
                await reply.read()

        async def told(path: str) -> Any:
            async with client.get(admin + path) as reply:
                return await reply.json()

        async def settled() -> bool:
            """Whether all calls that are not over wait for their turn."""
            running, waiting = sum(not one.done() for one in calls), (await told("/api/queue"))["waiting"]
            accounts = (await told("/api/budgets/blue"))["accounts"]
            return running == waiting and all(one["held"] == "0" for one in accounts)

        calls: list[asyncio.Future[None]] = []
        for number in range(24):
            calls.append(asyncio.ensure_future(call(number)))
            while not await settled():
                pass
        await asyncio.gather(*calls)


def test_a_recorded_run_played_again_gives_the_same_grants(home, gateway, tmp_path):
    folder = rules(tmp_path / "rules")
    arguments = ("--auth", "keys", "--log-format", "json", "--reconcile-every", "0", "--policies", str(folder))
    with serving(home, gateway.url, *arguments) as program:
        asyncio.run(crowd(program.url("listens on"), program.url("admin")))
        assert program.stop() == 0
        events = [event for event in program.events if "asked_at" in event]
    assert len(events) == 24
    events.sort(key=lambda event: event["asked_at"])
    begins_s = events[0]["asked_at"]
    started = {
        number: event["asked_at"] - begins_s + event.get("waited_s", 0.0)
        for number, event in enumerate(events)
        if "head_s" in event
    }
    refused = Counter(event["reason"] for event in events if "head_s" not in event)
    assert {"turn_too_far", "budget_exhausted"} <= set(refused), "or else this proves little"

    traffic = read_traffic(program.log, 1)
    assert traffic.skipped > 0
    calls = list(traffic.calls)
    outcome = Simulation(load_policies(folder), begins_s).run(calls)
    numbers = {id(call): number for number, call in enumerate(calls)}
    again = {numbers[id(call)]: at_s for at_s, call in outcome.grants}
    assert set(again) == set(started), json.dumps(events)
    for one, at_s in started.items():
        later = [other for other, other_s in started.items() if at_s + APART_S < other_s]
        assert all(again[one] < again[other] for other in later), one
    told = sum((Counter(team.refused) for team in outcome.teams.values()), Counter())
    # Which of two reasons a call hears that is in the way of both a rate and a budget is a matter of milliseconds.
    assert (told.total(), set(told)) == (refused.total(), set(refused))
    charged = sum(float(event.get("charged", 0)) for event in events)
    assert sum(team.charged for team in outcome.teams.values()) == round(charged * 10**8)
