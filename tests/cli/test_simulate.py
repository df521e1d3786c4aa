import asyncio
import json

import orjson
import pytest

from proxy.cli.main import run_command
from proxy.core.limits import Counts, Rate
from proxy.core.policy import Policy, Team
from proxy.core.simulation import Simulation
from tests.proxies import CHAT, proxied

TRAFFIC = """
for: 10m
calls:
  - { team: red, per_minute: 120, takes: 2s, held: 0.5, charged: 0.25 }
  - { team: blue, per_minute: 60, from: 1m, to: 5m, tokens: 100 }
  - { team: red, route: mcp, suite: calc, tool: add, per_minute: 10 }
"""
FEW = "rates: [{ name: few, requests: 10, within: 60s }]\nteams: { red: { weight: 2 }, blue: {} }\n"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traffic.yaml").write_text(TRAFFIC)
    for name, text in (("few", FEW), ("none", "gateway_limits: own\nteams: { red: {}, blue: {} }\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text(text)
    return tmp_path


def test_two_policies_stand_side_by_side(capsys):
    assert run_command(["simulate", "--traffic", "traffic.yaml", "--policies", "few", "--against", "none"]) == 0
    out = capsys.readouterr().out
    assert "few" in out.splitlines()[0]
    assert "none" in out.splitlines()[0]
    assert "turn_too_far" in out
    assert "allowance used" in out


def test_the_figures_are_there_for_programs_and_the_seed_decides_them(capsys):
    found = []
    for seed in ("1", "1", "2"):
        arguments = ["simulate", "--traffic", "traffic.yaml", "--policies", "few", "--json", "--seed", seed]
        assert run_command(arguments) == 0
        found.append(json.loads(capsys.readouterr().out)["few"])
    assert found[0] == found[1]
    assert found[0] != found[2]
    red = found[0]["teams"]["red"]
    assert red["calls"] == red["started"] + sum(red["refused"].values())
    assert 0.9 < found[0]["allowance_used"]["few"] <= 1.2


def test_what_is_wrong_in_traffic_is_said_with_its_place(capsys, folder):
    (folder / "traffic.yaml").write_text("for: 1m\ncalls:\n  - { team: red, per_minut: 3 }\n")
    assert run_command(["simulate", "--traffic", "traffic.yaml"]) == 1
    assert "traffic.yaml:3:" in capsys.readouterr().err
    (folder / "log.jsonl").write_text('{"event":"request","stage":"relay"}\n')
    assert run_command(["simulate", "--traffic", "log.jsonl"]) == 1
    assert "log.jsonl:1: is not a line of the proxy's log in JSON" in capsys.readouterr().err


async def test_the_log_of_a_live_run_replayed_gives_the_same_grants(gateway, folder):
    from proxy.config.trafficfile import read_traffic

    rules = Policy(teams={"red": Team("red")}, open_team="red", rates=(Rate("member", Counts.REQUESTS, 3, 1.0),))
    async with proxied(gateway.url, rules) as front:
        replies = await asyncio.gather(*(front.post("/v1/chat/completions", CHAT) for _ in range(8)))
        assert {reply.status for reply in replies} == {200}
        await front.until(lambda: len(front.requests) == 8)
        log = b"".join(orjson.dumps(event) + b"\n" for event in front.events)
    (folder / "log.jsonl").write_bytes(log)
    outcome = Simulation(rules, 0.0).run(read_traffic(folder / "log.jsonl", 1))
    waited = sorted(outcome.teams["red"].waits_s)
    assert len(outcome.grants) == 8
    assert sum(wait_s > 0 for wait_s in waited) == sum("waited_s" in e and e["waited_s"] > 0.5 for e in front.requests)
