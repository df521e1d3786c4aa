"""Ids belong to the team whose call was answered with them."""

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.owners import Claim, Owner, Owners


def test_an_id_is_its_teams_own_and_foreign_to_all_others():
    owners = Owners()
    owners.give("resp_1", Owner("red", "m", 0.0))
    assert owners.claim("resp_1", "red", 1.0) == (Claim.OWN, Owner("red", "m", 0.0))
    assert owners.claim("resp_1", "blue", 1.0) == (Claim.FOREIGN, None)
    assert owners.claim("resp_2", "red", 1.0) == (Claim.UNKNOWN, None)


def test_the_first_team_that_was_given_an_id_keeps_it():
    owners = Owners()
    owners.give("x", Owner("red", None, 0.0))
    owners.give("x", Owner("blue", None, 1.0))
    assert owners.claim("x", "blue", 2.0)[0] is Claim.FOREIGN


@given(st.text(min_size=1, max_size=40).filter(lambda text: "%" not in text))
def test_however_an_id_is_encoded_it_is_the_same_id(identifier):
    owners = Owners()
    owners.give(identifier, Owner("red", None, 0.0))
    for written in (identifier, quote(identifier, safe=""), quote(identifier, safe="/:")):
        assert owners.claim(written, "blue", 0.0)[0] is Claim.FOREIGN


def test_ids_are_forgotten_after_their_time_and_beyond_their_number():
    owners = Owners(kept_s=10.0, owners_max=3)
    for n in range(5):
        owners.give(f"id{n}", Owner("red", None, float(n)))
    assert list(owners.all) == ["id2", "id3", "id4"]
    assert owners.claim("id4", "red", 14.5)[0] is Claim.UNKNOWN
    owners.give("late", Owner("red", None, 100.0))
    assert list(owners.all) == ["late"]
