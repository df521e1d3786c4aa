import json
from pathlib import Path

import pytest

from proxy.cli.init import STARTS, written
from proxy.cli.main import run_command
from proxy.config.policyfile import load_policies
from proxy.config.policyschema import policy_schema

ROOT = Path(__file__).parents[2]
NAMES = [start.name for start in STARTS]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_right_and_says_who_it_is_for(folder, name, capsys):
    assert run_command(["init", name]) == 0
    assert f"sluicegate serve{'' if name == 'team' else ' --auth open'} --policies policies" in capsys.readouterr().out
    assert run_command(["check", "policies"]) == 0
    assert load_policies(folder / "policies").budgets
    assert (folder / "policies" / f"{name}.yaml").read_text().splitlines()[1].startswith("# For a")
    assert json.loads((folder / "policies" / "schema.json").read_text()) == policy_schema()


@pytest.mark.parametrize("name", NAMES)
def test_the_samples_of_the_repository_are_what_init_writes(name):
    (sample,) = (ROOT / "policies" / name).iterdir()
    assert {sample.name: sample.read_text()}.items() <= written(name).items()


def test_nothing_is_written_over_unless_forced(folder, capsys):
    (folder / "policies").mkdir()
    mine = folder / "policies" / "mine.yaml"
    mine.write_text("teams: { red: {} }\n")
    assert run_command(["init", "laptop"]) == 1
    assert "policies has mine.yaml; nothing was written" in capsys.readouterr().err
    assert [path.name for path in (folder / "policies").iterdir()] == ["mine.yaml"]
    assert run_command(["init", "laptop", "--force"]) == 0
    assert mine.read_text() == "teams: { red: {} }\n"
    assert run_command(["init", "laptop"]) == 1
