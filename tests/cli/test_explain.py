import io
import json

import pytest

from proxy.cli.main import run_command
from proxy.cli.requests import SAMPLES, Wanted, request_for
from proxy.server.routes import Unmatched, match
from tests.cli.servers import serving

RULES = """\
teams: { red: { models: ["gpt-*", "video-*"] } }
prices:
  - { models: "gpt-*", input_per_million: 10, output_per_million: 100 }
  - { models: "video-*", per_video: 600 }
  - { suites: "*", per_call: 2 }
budgets:
  - { name: day, credits: 500, per: day }
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICEGATE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", "127.0.0.1:1")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text(RULES)
    return tmp_path


def shown(capsys, *arguments, code=0):
    assert run_command(["explain", *arguments]) == code, capsys.readouterr()
    return capsys.readouterr().out


def test_a_chat_is_explained_without_a_proxy_a_key_or_a_ledger(capsys, folder):
    lines = shown(capsys, "--team", "red", "--model", "gpt-4o", "--max-tokens", "2000").splitlines()
    assert "team      red  (policies/a.yaml:1:10)" in lines
    assert "price     gpt-4o  (policies/a.yaml:3:5)" in lines
    assert "          2,000 output tokens at 100 per 1,000,000 = 0.2" in lines
    assert any(line.startswith("limit     day: 500 of 500 left") and line.endswith("- binding") for line in lines)
    assert "verdict   would be sent" in lines
    assert [path.name for path in folder.iterdir()] == ["policies"]


def test_a_video_that_can_never_fit_and_a_model_that_is_not_allowed_are_refused(capsys):
    shown_ = shown(capsys, "--team", "red", "--route", "videos", "--model", "video-x", code=1)
    assert "verdict   refused at admit with 402 request_over_budget" in shown_
    assert "does not fit" in shown_
    assert "403 model_not_allowed" in shown(capsys, "--team", "red", "--model", "claude-x", code=1)


def test_a_tool_call_from_flags(capsys):
    said = json.loads(shown(capsys, "--team", "red", "--route", "mcp", "--suite", "calc", "--tool", "add", "--json"))
    assert (said["ceiling"]["credits"], said["binding"]["name"]) == ("2", "day")


def test_a_request_may_come_from_a_file_or_standard_input(capsys, folder, monkeypatch):
    request = {"path": "/v1/chat/completions", "team": "red", "body": {"model": "gpt-x", "messages": []}}
    (folder / "request.json").write_text(json.dumps(request))
    assert json.loads(shown(capsys, "-f", "request.json", "--json"))["request"]["route"] == "chat"
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(request["body"])))
    said = json.loads(shown(capsys, "--team", "red", "--path", "/v1/messages", "--body", "-", "--json"))
    assert (said["request"]["route"], json.loads(said["upstream"]["body"])) == ("native", request["body"])
    assert run_command(["explain", "-f", "policies/a.yaml"]) == 1
    assert run_command(["explain", "-f", "nowhere.json"]) == 1


def test_the_running_proxy_is_asked_about_its_own_policy(capsys, folder):
    with serving("policies", auth="open") as admin:
        (folder / "policies" / "b.yaml").write_text("budgest: []")
        assert "would be sent" in shown(capsys, "--team", "red", "--model", "gpt-x", "--admin-listen", admin)
        # The ledger is locked, and nobody answers where the settings say.
        (folder / "policies" / "b.yaml").unlink()
        assert run_command(["explain", "--team", "red", "--model", "gpt-x"]) == 1
        assert "is in use by another process" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--team", "red"], ["--route", "mcp"], ["--route", "models", "--max-tokens", "5"], ["-H", "nonsense"]],
)
def test_what_cannot_be_imagined_is_wrong_usage(arguments, capsys):
    code = run_command(["explain", *arguments])
    assert code == (64 if arguments != ["--route", "models", "--max-tokens", "5"] else 1), capsys.readouterr()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_leads_to_its_route(name):
    asked = request_for(name, Wanted(model="m", target="7", tool="add"), None)
    found = match(asked["method"], asked["path"], segment="partner", native_header=False)
    assert not isinstance(found, Unmatched)
    assert found.route.name == name


@pytest.mark.parametrize(
    "beside", [("--route", "mcp"), ("--tool", "add"), ("--suite", "calc"), ("--model", "m"), ("--max-tokens", "5")]
)
def test_what_a_path_would_pass_over_is_refused(capsys, beside):
    assert run_command(["explain", "--path", "/v1/mcp", *beside]) == 64
    assert f"{beside[0]} says nothing beside --path" in capsys.readouterr().err
