"""A folder with a dozen mistakes says all twelve at once, each with the place where it stands."""

import pytest

from proxy.config.policyfile import load_policies
from proxy.config.problem import Problems

TEAMS = """\
teams:
  red: { kyes: [] }
  blue: { wait_max: soon }
  green: { keys: [{ id: one, sha256: "abc" }] }
aliases: { fast: [] }
"""
LIMITS = """\
budgets:
  - { name: lunch, credits: many, per: day }
  - { name: dinner, credits: 5, per: fortnight }
  - { name: tea, credits: -1, per: day }
  - { name: tea2, credits: 5, per: day, timezone: Asia/Soul }
  - { name: cake, credits: 5, per: day, match: { taem: red } }
prices:
  - { models: "gpt-*", input_per_million: 1, output_per_million: NO }
  - { models: "img-*" }
estimate: guess
"""
# fmt: off
FOUND = (
    # place                  what is said of it
    ("limits.yaml:2:20",     "credits"),
    ("limits.yaml:3:33",     "per"),
    ("limits.yaml:4:18",     "credits"),
    ("limits.yaml:5:41",     "timezone"),
    ("limits.yaml:6:50",     "taem"),
    ("limits.yaml:8:46",     "output_per_million"),
    ("limits.yaml:9:5",      "price"),
    ("limits.yaml:10:1",     "estimate"),
    ("teams.yaml:2:10",      "kyes"),
    ("teams.yaml:3:11",      "wait_max"),
    ("teams.yaml:4:30",      "sha256"),
    ("teams.yaml:5:12",      "aliases"),
)
# fmt: on


def test_twelve_mistakes_are_told_at_once_each_with_its_place(tmp_path):
    (tmp_path / "teams.yaml").write_text(TEAMS)
    (tmp_path / "limits.yaml").write_text(LIMITS)
    with pytest.raises(Problems) as refused:
        load_policies(tmp_path)
    said = sorted(str(problem).removeprefix(f"{tmp_path}/") for problem in refused.value.problems)
    assert len(said) == len(FOUND), said
    for (place, word), text in zip(sorted(FOUND), said, strict=True):
        assert text.startswith(place), (place, text)
        assert word in text
