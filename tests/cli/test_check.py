import json

import pytest

from proxy.cli.main import run_command


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys, *arguments, code):
    assert run_command(["check", *arguments]) == code
    return capsys.readouterr().out


def test_without_files_everything_is_fine(capsys):
    assert shown(capsys, code=0) == "note: teams: default; virtual keys: 0\nSettings and policies are fine.\n"


def test_problems_of_settings_and_policies_come_together(capsys, folder):
    (folder / "sluicegate.yaml").write_text("drian: 3s\n")
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text("heartbaet: 3s\n")
    assert shown(capsys, "rules", code=1).splitlines() == [
        f"{folder}/sluicegate.yaml:1:1: drian: is not a setting; did you mean drain?",
        "rules/a.yaml:1:1: heartbaet: is not known; did you mean heartbeat?",
        "2 problems found.",
    ]


def test_the_policies_of_the_settings_are_judged(capsys, folder):
    (folder / "sluicegate.yaml").write_text("policies: rules\n")
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text("expires_aftr: 2h\n")
    assert shown(capsys, code=1).startswith("rules/a.yaml:1:1: expires_aftr: is not known; did you mean expires_after?")


def test_what_becomes_of_an_alias_of_an_alias_is_noted(capsys, folder):
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text("aliases: { fast: good, good: gpt-4o }\n")
    assert (
        "note: rules/a.yaml:1:12: aliases.fast: good is an alias, too; aliases are applied once, "
        "so the gateway is asked for good itself\n"
    ) in shown(capsys, "rules", code=0)


def test_a_folder_that_is_not_there_is_a_problem(capsys):
    assert "polices is not a folder" in shown(capsys, "polices", code=1)


def test_json_says_the_same(capsys, folder):
    (folder / "sluicegate.yaml").write_text("drian: 3s\n")
    assert json.loads(shown(capsys, "--json", code=1)) == {
        "ok": False,
        "problems": [
            {
                "where": f"{folder}/sluicegate.yaml:1:1",
                "what": "drian: is not a setting",
                "do": "did you mean drain?",
            }
        ],
        "notes": [],
    }


def test_settings_come_from_flags_too(capsys):
    assert "--auth: auth open lets everybody" in shown(capsys, "--auth", "open", "--listen", "0.0.0.0:1", code=1)


def test_callers_who_show_no_key_need_a_team(capsys, folder):
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text("teams: { red: {} }\n")
    assert "auth: callers without a key have no team" in shown(capsys, "rules", "--auth", "open", code=1)
    (folder / "rules" / "a.yaml").write_text("teams: { red: {} }\nopen_team: red\n")
    assert "fine" in shown(capsys, "rules", "--auth", "open", code=0)
