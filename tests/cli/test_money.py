"""Budgets, usage, ledger and keys by command: without a proxy on the ledger, with one through it."""

import getpass
import json

import httpx2
import pytest

from proxy.cli.main import run_command
from tests.cli.servers import served

RULES = """\
teams: { red: {}, blue: {} }
prices: [{ models: "*", per_image: 50 }]
budgets:
  - { name: month, credits: 300, within: 30d, warn_at: [0.5] }
  - { name: each, each: key, credits: 100, within: 1d }
"""
KEYED = RULES.replace("red: {}", 'red: { keys: [{ id: ci, sha256: "%s" }] }' % ("ab" * 32))


@pytest.fixture(autouse=True)
def folder(bare):
    (bare / "policies").mkdir()
    (bare / "policies" / "a.yaml").write_text(KEYED)
    return bare


@pytest.fixture
def shown(capsys):
    def run(*arguments, code=0):
        assert run_command(list(arguments)) == code, capsys.readouterr()
        return capsys.readouterr().out

    return run


def told(shown, *arguments):
    return json.loads(shown(*arguments, "--json"))


ADJUST = ("budget", "adjust", "month", "--team", "red", "--key", "ci", "--reason", "by hand", "--credits")


def test_reading_makes_no_ledger_and_writing_does(shown, folder):
    (folder / "policies" / "a.yaml").write_text(RULES)
    assert "month" in shown("budget", "list")
    assert shown("usage").startswith("Nothing.")
    assert shown("key", "list") == "There are no keys.\n"
    assert shown("ledger", "verify") == "The books add up.\n"
    assert shown("ledger", "doubts") == shown("ledger", "doubts", "--all") == "Nothing is in doubt.\n"
    assert not (folder / "data").exists()
    (folder / "policies" / "a.yaml").write_text(KEYED)
    shown(*ADJUST, "7")
    assert (folder / "data" / "ledger.db").exists()


def test_a_share_that_was_warned_of_is_shown_as_it_stands_in_the_policy(shown, folder):
    (folder / "policies" / "a.yaml").write_text(KEYED.replace("[0.5]", "[0.0001, 0.5]"))
    shown(*ADJUST, "200")
    line = next(line for line in shown("budget", "list").splitlines() if line.startswith("month"))
    assert "0.01%, 50%" in line


def test_a_correction_shows_in_budgets_usage_and_export(shown):
    assert "7.5 credits booked for team red" in shown(*ADJUST, "7.5")
    lines = [line.split() for line in shown("budget", "list").splitlines()]
    assert ["month", "all", "300", "7.5", "0", "292.5"] in [line[:6] for line in lines]
    assert ["each", "red/ci", "100", "7.5", "0", "92.5"] in [line[:6] for line in lines]
    assert told(shown, "usage", "--by", "team,key")["rows"] == [
        {"team": "red", "key": "ci", "credits": "7.5", "tool_calls": 0}
    ]
    assert shown("usage", "--csv").splitlines() == ["team,credits,tool_calls", "red,7.5,0"]
    (entry,) = [json.loads(line) for line in shown("ledger", "export").splitlines()]
    assert (entry["kind"], entry["team"], entry["credits"]) == ("adjust", "red", 750_000_000)
    assert (entry["reason"], entry["who"]) == ("by hand", getpass.getuser())
    assert shown("ledger", "export", "--csv").splitlines()[1].startswith("1,adjust,")
    assert shown("ledger", "export", "--after", "1") == ""
    assert shown("ledger", "verify") == "The books add up.\n"


def test_what_a_budget_says_is_shown_as_a_file_would_say_it(shown):
    said = shown("budget", "show", "each")
    assert "each: key" in said
    assert "'" not in said
    assert "None" not in said


def test_a_correction_needs_a_reason(shown, capsys):
    assert run_command(["budget", "adjust", "month", "--team", "red", "--credits", "1"]) == 64
    assert "--reason" in capsys.readouterr().err
    shown(*ADJUST[:-1], "--credits", "-1", code=1)


def test_a_correction_of_a_key_that_nobody_has_is_refused(shown, capsys):
    asked = ("budget", "adjust", "--team", "red", "--credits", "1", "--reason", "x", "--key")
    assert run_command([*asked, "cii"]) == 1
    assert "the team 'red' has no key 'cii'; did you mean ci?" in capsys.readouterr().err
    assert shown("ledger", "export") == ""


def test_a_key_that_left_the_policies_is_corrected_by_what_it_spent(shown, folder):
    shown(*ADJUST, "7")
    (folder / "policies" / "a.yaml").write_text(KEYED.replace("{ id: ci,", "{ id: other,"))
    shown(*ADJUST, "-2")
    assert told(shown, "usage", "--by", "key")["rows"] == [{"key": "ci", "credits": "5", "tool_calls": 0}]


def test_cells_that_a_spreadsheet_would_run_are_quoted(shown):
    shown("budget", "adjust", "--team", "red", "--model", "=cmd()", "--credits", "1", "--reason", "x")
    assert shown("usage", "--by", "model", "--csv").splitlines()[1] == "'=cmd(),1,0"


def test_a_model_is_one_line_however_it_was_spelt(shown):
    for model, amount in (("gpt-4o", "1"), ("GPT-4o", "3"), ("gpt-4ｏ", "1")):
        shown(*ADJUST, amount, "--model", model)
    assert told(shown, "usage", "--by", "model")["rows"] == [{"model": "GPT-4o", "credits": "5", "tool_calls": 0}]
    assert shown("usage", "--by", "model", "--csv").splitlines() == ["model,credits,tool_calls", "GPT-4o,5,0"]
    assert shown("usage", "--by", "model").splitlines()[1].split()[:3] == ["GPT-4o", "5", "0"]
    entries = [json.loads(line) for line in shown("ledger", "export").splitlines()]
    assert [entry["model"] for entry in entries] == ["gpt-4o", "GPT-4o", "gpt-4ｏ"]


def test_keys_come_and_go(shown, folder, capsys):
    (folder / "policies" / "a.yaml").write_text(RULES)
    assert run_command(["key", "add", "--team", "red", "--id", "anna", "--note", "laptop"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("sg-")
    assert said.err == "key anna of team red. It is not shown again.\n"
    assert told(shown, "key", "add", "--replaces", "anna", "--overlap", "1h")["replaces"]["id"] == "anna"
    assert [(key["state"], key["note"]) for key in told(shown, "key", "list")["keys"]] == [
        ("active", "laptop"),
        ("active", ""),
    ]
    assert shown("key", "revoke", "anna") == "key anna of team red is revoked.\n"
    assert "revoked" in shown("key", "list")
    shown("key", "revoke", "nobody", code=1)
    assert run_command(["key", "add"]) == 64


def test_a_backup_holds_what_the_ledger_holds(shown, folder, monkeypatch):
    shown(*ADJUST, "7")
    copy = told(shown, "ledger", "backup")
    before = shown("ledger", "export")
    monkeypatch.setenv("SLUICEGATE_DATA", str(folder / "restored"))
    (folder / "restored").mkdir()
    (folder / "data" / "backups").rename(folder / "moved")
    (copied,) = (folder / "moved").iterdir()
    assert copied.stat().st_mode & 0o777 == 0o600
    assert copy["bytes"] == copied.stat().st_size
    copied.rename(folder / "restored" / "ledger.db")
    assert shown("ledger", "export") == before
    assert shown("ledger", "verify") == "The books add up.\n"


def test_a_running_proxy_is_asked_and_a_key_issued_works_at_once(shown, folder, monkeypatch):
    with served("policies", auth="keys") as one:
        monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", one.admin)
        said = told(shown, "key", "add", "--team", "blue", "--id", "bo")
        headers = {"x-api-key": said["key"]}
        assert httpx2.get(f"{one.proxy.data_url}/-/budget", headers=headers, timeout=60).json()["key"] == "bo"
        shown(*ADJUST, "8")
        assert "8 credits since" in shown("usage")
        shown("key", "revoke", "bo")
        assert httpx2.get(f"{one.proxy.data_url}/-/budget", headers=headers, timeout=60).status_code == 401
        # Where the settings lead elsewhere, the lock is in the way, and that is said.
        monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", "127.0.0.1:1")
        shown("budget", "list", code=1)
    monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", "127.0.0.1:1")
    assert "8 credits since" in shown("usage")


def test_something_else_on_the_admin_address_is_no_proxy(shown, monkeypatch, capsys):
    with served("policies") as one:
        monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", one.proxy.data_url.removeprefix("http://"))
        assert run_command(["budget", "list"]) == 1
        assert "check --admin-listen" in capsys.readouterr().err


def test_the_books_of_another_machine_are_not_looked_for_here(monkeypatch, capsys):
    monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", "nowhere.invalid:8788")
    monkeypatch.setenv("SLUICEGATE_ADMIN_TOKEN", "t-0123456789")
    assert run_command(["budget", "list"]) == 1
    assert "no proxy answers at nowhere.invalid:8788" in capsys.readouterr().err
