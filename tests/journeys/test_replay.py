"""What a proxy logged, played again: the same calls start, in the same order, and the same are refused."""

import hashlib
import json
import threading
from collections import Counter
from pathlib import Path

import httpx2

from proxy.config.policyfile import load_policies
from proxy.config.trafficfile import read_traffic
from proxy.core.simulation import Simulation
from tests.journeys.programs import serving

APART_S = 0.5
"""Starts that are further apart than this were so because a window was over, and not by chance."""

EVERY_S = 0.04

CHAT = {"model": "gpt-4o-mini", "max_tokens": 20, "messages": [{"role": "user", "content": "hello"}]}
TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
RULES = """
gateway_limits: own
rates:
  - { name: chats, match: { route: chat }, requests: 4, within: 2s }
  - { name: tokens, match: { route: chat, team: blue }, tokens: 100, within: 4s }
  - { name: tools, match: { method: tools/call }, requests: 2, within: 3s, each: suite }
budgets: [{ name: blue, match: { team: blue }, credits: 0.05, per: total }]
prices: [{ models: "gpt-*", input_per_million: 100, output_per_million: 1000 }]
cache: [{ match: {}, ttl: 0s }]
teams:
"""


def rules(folder: Path) -> Path:
    folder.mkdir()
    teams = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("red", "blue")}
    lines = [
        f"  {name}: {{ weight: {weight}, wait_max: 9s, keys: [{{ id: {name}, sha256: '{teams[name]}' }}] }}\n"
        for name, weight in (("red", 3), ("blue", 1))
    ]
    (folder / "a.yaml").write_text(RULES + "".join(lines), "utf-8")
    return folder


def crowd(url: str) -> None:
    """Calls of two teams, chats and tools, each with a body of its own, one after another although none is waited for.

    Some wait for a second only. Were all sent at once, chance would say what came first.
    """

    def call(number: int) -> None:
        team = "blue" if number % 3 == 0 else "red"
        headers = {"x-api-key": team} | ({"X-Sluicegate-Wait-Max": "1"} if number % 7 == 0 else {})
        path, body = ("/v1/mcp/calc", {**TOOL, "id": number}) if number % 4 == 1 else ("/v1/chat/completions", CHAT)
        said = (
            {"params": {"name": "add", "arguments": {"a": number, "b": 2}}}
            if number % 4 == 1
            else {"user": f"{number}"}
        )
        httpx2.post(url + path, json={**body, **said}, headers=headers, timeout=60)

    threads = [threading.Timer(number * EVERY_S, call, (number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_recorded_run_played_again_gives_the_same_grants(home, gateway, tmp_path):
    folder = rules(tmp_path / "rules")
    arguments = ("--auth", "keys", "--log-format", "json", "--reconcile-every", "0", "--policies", str(folder))
    with serving(home, gateway.url, *arguments) as program:
        crowd(program.url("listens on"))
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
