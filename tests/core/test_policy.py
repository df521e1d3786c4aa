import dataclasses
import hashlib

import pytest

from proxy.core.policy import DEFAULT_POLICY, Balance, KeyRef, Policy, Team, UnknownIds


def a_key(secret: str, key_id: str = "ci") -> KeyRef:
    return KeyRef(key_id, hashlib.sha256(secret.encode()).digest())


SEARCH = Team("search", keys=(a_key("sk-search-1", "ci"), a_key("sk-search-2", "laptop")))
BATCH = Team("batch", keys=(a_key("sk-batch", "ci"),))
POLICY = Policy(teams={"search": SEARCH, "batch": BATCH})


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        ("sk-search-1", (SEARCH, "ci")),
        ("sk-search-2", (SEARCH, "laptop")),
        ("sk-batch", (BATCH, "ci")),
        ("sk-search-3", None),
        ("sk-search-1 ", None),
        ("SK-SEARCH-1", None),
        ("", None),
        ("\udcff", None),
        (a_key("sk-batch").sha256.hex(), None),
    ],
)
def test_a_key_names_its_team_and_nothing_else_does(secret, expected):
    assert POLICY.team_of_key(secret, 0.0) == expected


def test_the_stand_in_for_unknown_keys_is_no_team():
    """Even a key whose digest were all zeros, which the stand-in has, would find nobody."""
    assert Policy(teams={}).team_of_key("anything", 0.0) is None


def test_without_policy_files_everybody_without_a_key_is_team_default():
    assert DEFAULT_POLICY.team_of_open() == Team("default")
    assert DEFAULT_POLICY.team_of_key("anything", 0.0) is None


def test_without_an_open_team_nobody_comes_in_without_a_key():
    assert POLICY.team_of_open() is None


def test_an_open_team_must_exist():
    with pytest.raises(AssertionError):
        Policy(teams={"search": SEARCH}, open_team="serach")


@pytest.mark.parametrize(
    ("said", "open_auth", "shown"),
    [
        (None, True, True),
        (None, False, False),
        (Balance.SHOW, False, True),
        (Balance.HIDE, True, False),
    ],
)
def test_the_balance_is_shown_in_open_mode_unless_the_team_says_otherwise(said, open_auth, shown):
    assert Team("t", gateway_balance=said).sees_balance(open_auth=open_auth) is shown


@pytest.mark.parametrize(
    ("said", "open_auth", "own_keys", "passed"),
    [
        (None, False, False, False),
        (None, True, False, True),
        (None, False, True, True),
        (UnknownIds.REFUSE, True, True, False),
        (UnknownIds.PASS, False, False, True),
    ],
)
def test_unknown_ids_are_refused_where_teams_are_told_apart(said, open_auth, own_keys, passed):
    policy = dataclasses.replace(POLICY, unknown_ids=said)
    assert policy.passes_unknown_ids(open_auth=open_auth, callers_bring_keys=own_keys) is passed


def test_a_policy_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        POLICY.open_team = "search"


@pytest.mark.parametrize("name", ["delete_page", "DELETE_PAGE", " delete_page", "delete_page ", "\u200bdelete_page",
                                  "delete\uff3fpage", "delete\u00ad_page"])  # fmt: skip
def test_a_denied_name_is_denied_however_it_is_dressed(name):
    team = Team("red", deny_tools=("docs.delete_page",))
    assert not team.may_use_tool("docs", name)
    assert team.may_use_tool("docs", "read page")
