import re

import pytest

from proxy.core.keyring import RANDOM_BYTES, Issued, Keyring, KeyState, key_hash, key_text

SECRET = b"s" * 32
KEY = key_text(b"\x07" * RANDOM_BYTES)


def issued(**more):
    return Issued("ci", "red", key_hash(SECRET, KEY), 0.0, **more)


def test_a_key_has_enough_randomness_and_a_form_that_scanners_know():
    assert re.fullmatch(r"sg-[0-9a-f]{48}", KEY)
    assert RANDOM_BYTES * 8 >= 128
    with pytest.raises(AssertionError):
        key_text(b"\x07" * 15)


def test_a_key_is_known_by_its_keyed_hash_and_nothing_else():
    ring = Keyring(SECRET, [issued()])
    assert ring.find(KEY, 5.0).id == "ci"
    for wrong in (KEY[:-1], KEY + "0", KEY.upper(), "", "\ud800", "sg-"):
        assert ring.find(wrong, 5.0) is None
    assert Keyring(b"t" * 32, [issued()]).find(KEY, 5.0) is None
    assert Keyring().find(KEY, 5.0) is None


@pytest.mark.parametrize(
    ("more", "at_s", "state"),
    [
        ({}, 10.0, KeyState.ACTIVE),
        ({"expires_s": 10.0}, 9.9, KeyState.ACTIVE),
        ({"expires_s": 10.0}, 10.0, KeyState.EXPIRED),
        ({"revoked_s": 10.0}, 9.9, KeyState.ACTIVE),
        ({"revoked_s": 10.0}, 10.0, KeyState.REVOKED),
        ({"expires_s": 5.0, "revoked_s": 10.0}, 11.0, KeyState.REVOKED),
    ],
)
def test_a_key_ends_when_it_expires_or_is_revoked(more, at_s, state):
    key = issued(**more)
    assert key.state(at_s) is state
    assert (Keyring(SECRET, [key]).find(KEY, at_s) is not None) == (state is KeyState.ACTIVE)
    assert key.ends_s == min(more.values(), default=None)
