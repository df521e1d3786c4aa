import json

import pytest

from proxy.cli.main import run_command

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
    assert "traffic.yaml:3:18: calls.0.per_minut: is not known; did you mean per_minute?" in capsys.readouterr().err
    (folder / "log.jsonl").write_text('{"event":"request","asked_at":5,"route":"chat"}\n')
    assert run_command(["simulate", "--traffic", "log.jsonl"]) == 1
    assert "log.jsonl:1: is no request as the proxy logs them: 'team'" in capsys.readouterr().err
    (folder / "log.jsonl").write_text('{"event":"request","stage":"identify"}\nTraceback\n')
    assert run_command(["simulate", "--traffic", "log.jsonl"]) == 1
    assert "log.jsonl: has no request that asked for a turn; give serve --log-format json" in capsys.readouterr().err


def test_lines_that_are_no_requests_are_left_out_and_counted(capsys, folder):
    call = {
        "event": "request",
        "time": "2026-01-01T00:00:05.000Z",
        "asked_at": 1767225600.5,
        "team": "red",
        "route": "chat",
    }
    lines = [{"event": "listening"}, call, {"event": "request", "team": "red", "stage": "recall"}]
    (folder / "log.jsonl").write_text("\n".join(["oops", *map(json.dumps, lines)]))
    assert run_command(["simulate", "--traffic", "log.jsonl", "--policies", "few", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["few"]["teams"]["red"]["started"] == 1
    assert said.err == "Left out: 2 lines that are no requests, 1 requests that asked for no turn.\n"
