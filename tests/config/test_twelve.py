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


ACROSS = """\
teams:
  red: { keys: [{ id: one, sha256: "%s" }] }
open_team: grene
budgets:
  - { name: lunch, credits: 5, per: day }
  - { name: supper, credits: 5, per: day, match: { team: blu } }
  - { name: snack, credits: 5, per: day, instead_of: brunch }
  - { name: feast, credits: 5, per: day, instead_of: dinner, match: { team: green } }
prices:
  - { models: "gpt-*", input_per_million: 1, output_per_million: 2 }
estimate: strict
"""
DIGEST = "ab" * 32
ALSO = """\
teams:
  violet: { wait_max: soon, keys: [{ id: two, sha256: "%s" }] }
prices:
  - { models: "GPT-*", input_per_million: 1, output_per_million: 2 }
"""
# fmt: off
BETWEEN = (
    # place                  what is said of it
    ("across.yaml:3:1",      "there is no team 'grene'"),
    ("across.yaml:6:5",      "there is no team 'blu'"),
    ("across.yaml:7:5",      "there is no other budget 'brunch'"),
    ("also.yaml:2:13",       "wait_max"),
    ("also.yaml:2:47",       "stands at"),
    ("also.yaml:4:5",        "is priced at"),
    ("teams.yaml:2:3",       "the team stands at"),
    ("limits.yaml:2:7",      "'lunch' stands at"),
)
# fmt: on


def said_of(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    with pytest.raises(Problems) as refused:
        load_policies(folder)
    return sorted(str(problem).removeprefix(f"{folder}/") for problem in refused.value.problems)


def test_mistakes_between_files_are_told_with_those_in_them(tmp_path):
    """`dinner` and `green` are defined by items with faults: they are broken, not missing."""
    rest = {"teams": TEAMS, "limits": LIMITS, "across": ACROSS % DIGEST, "also": ALSO % DIGEST}
    said = said_of(tmp_path, **rest)
    expected = sorted([*FOUND, *BETWEEN])
    found = [
        next((text for text in said if text.startswith(f"{place}: ") and word in text), None)
        for place, word in expected
    ]
    assert None not in found, (expected[found.index(None)], said)
    assert len(said) == len(expected), [text for text in said if text not in found]


# fmt: off
UNREAD = (
    # what nobody can read                what of the other file is wrong all the same
    ("teams: { blue: {}\n",               ()),
    ("teams: 7\n",                        ("instead_of",)),
    ("taems: { blue: {}, grene: {} }\n",  ("instead_of",)),
    ("budgets: 7\n",                      ("open_team",)),
    ("gateway_limits: onw\n",             ("instead_of", "open_team")),
)
# fmt: on


@pytest.mark.parametrize(
    ("broken", "missing"), UNREAD, ids=["no YAML", "no mapping", "misspelt", "no list", "a switch"]
)
def test_what_cannot_be_read_is_not_reported_as_missing(broken, missing, tmp_path):
    said = said_of(
        tmp_path, a=broken, b="open_team: blue\nbudgets: [{ name: x, credits: 1, per: day, instead_of: y }]\n"
    )
    assert len(said) == 1 + len(missing), said
    assert said[0].startswith("a.yaml:")
    assert all(any(word in text for text in said[1:]) for word in missing), said


def test_a_misspelt_switch_hides_nothing_that_is_missing(tmp_path):
    said = said_of(tmp_path, a="teams: { blue: {} }\nestimat: bytes\n", b="open_team: grene\n")
    assert [text.split(": ")[1] for text in said] == ["estimat", "open_team"]
