"""The schema that editors use agrees with the reader: both take the samples, both refuse the same mistakes."""

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from proxy.config.policyfile import PolicyProblems, load_policies
from proxy.config.policyschema import policy_schema
from proxy.config.yamlfile import read_yaml

POLICIES = Path(__file__).parents[2] / "policies"
SAMPLES = sorted(POLICIES.rglob("*.yaml"))


@pytest.fixture(scope="module")
def validator():
    Draft202012Validator.check_schema(policy_schema())
    return Draft202012Validator(policy_schema())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_the_samples_fit_the_schema(validator, path):
    assert [error.message for error in validator.iter_errors(read_yaml(path).tree)] == []


EVERYTHING = """
teams:
  red: { models: ["gpt-*"], chatbots: [7, "8"], wait_max: 1m30s, tools: { allow: ["docs.*"] }, gateway_balance: hide }
open_team: red
heartbeat: 15s
budgets:
  - { name: a, credits: 0.25, per: month, timezone: Asia/Seoul, match: { chatbot: 7 }, warn_at: [0.5] }
  - { name: b, credits: "3000", within: 24h, each: key, amounts: { ci: 200 }, shadow: true }
prices: [{ models: "*", input_per_million: 2.5, output_per_million: 0, part_tokens: 4000 }, { chatbots: 7, per_call: 5 }]
unpriced: { hold: 100 }
"""


def test_whatever_the_reader_takes_fits(validator, tmp_path):
    (tmp_path / "a.yaml").write_text(EVERYTHING)
    load_policies(tmp_path)
    assert list(validator.iter_errors(read_yaml(tmp_path / "a.yaml").tree)) == []


@pytest.mark.parametrize(
    "text",
    [
        "budgest: []",
        "teams: { red: { modells: [] } }",
        "budgets: [{ name: a, credits: [], per: day }]",
        "budgets: [{ name: a, credits: 1, per: year }]",
        "prices: [{ models: 4, per_call: 1 }]",
        "errors: pretty",
    ],
)
def test_what_is_wrong_by_its_shape_is_wrong_for_both(validator, tmp_path, text):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(PolicyProblems):
        load_policies(tmp_path)
    assert list(validator.iter_errors(read_yaml(tmp_path / "a.yaml").tree))
