import json

import pytest

from proxy.cli.main import run_command
from tests.cli.servers import serving

RULES = (
    "teams: { red: {} }\nbudgets:\n  - { name: day, credits: 5, per: day }\nprices: [{ models: '*', per_call: 1 }]\n"
)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text(RULES)
    (tmp_path / "after").mkdir()
    (tmp_path / "after" / "a.yaml").write_text(RULES.replace("credits: 5", "credits: 7"))
    return tmp_path


def shown(capsys, *arguments, code=0):
    assert run_command(["policy", *arguments]) == code
    return capsys.readouterr().out


def test_the_merged_policy_is_shown_with_the_line_of_each_rule(capsys):
    lines = [line.split() for line in shown(capsys, "show").splitlines()]
    assert ["budget", "day", "amount:", "5,", "window:", "per", "day,", "UTC", "policies/a.yaml:3:5"] in lines
    rules = json.loads(shown(capsys, "show", "--json"))
    assert {"kind": "team", "name": "red", "words": {}, "source": "policies/a.yaml:1:10"} in rules


def test_a_folder_with_a_mistake_is_no_policy(capsys, folder):
    (folder / "after" / "b.yaml").write_text("budgest: []")
    assert shown(capsys, "show", "after", code=1) == ""


def test_two_folders_that_differ_are_told_by_their_words_and_the_exit_code(capsys):
    assert shown(capsys, "diff", "policies", "policies") == "The policies say the same.\n"
    assert shown(capsys, "diff", "policies", "after", code=2).splitlines() == [
        "~ budget day  (after/a.yaml:3:5)",
        "    amount: 5 -> 7",
    ]
    told = json.loads(shown(capsys, "diff", "policies", "after", "--json", code=2))
    assert told["differences"][0]["changed"] == {"amount": ["5", "7"]}
    assert run_command(["policy", "diff", "policies", "after", "after"]) == 64


def test_one_folder_is_compared_with_the_running_proxy(capsys):
    with serving("policies") as admin:
        assert shown(capsys, "diff", "policies", "--admin-listen", admin) == "The policies say the same.\n"
        assert "amount: 5 -> 7" in shown(capsys, "diff", "after", "--admin-listen", admin, code=2)


def test_without_a_running_proxy_there_is_nothing_to_compare_with(capsys):
    assert run_command(["policy", "diff", "after", "--admin-listen", "127.0.0.1:1"]) == 1
    assert "no proxy answers at 127.0.0.1:1" in capsys.readouterr().err


def test_the_schema_is_json(capsys):
    assert json.loads(shown(capsys, "schema"))["title"] == "Sluicegate policy file"
