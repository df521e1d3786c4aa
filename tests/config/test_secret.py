import copy
import dataclasses
import pickle

import pytest

from proxy.config.secret import Secret
from proxy.config.sources import load

VALUE = "gk-0123456789abcdef"


def test_a_secret_shows_its_last_three_characters_at_most():
    secret = Secret(VALUE)
    assert {str(secret), repr(secret), f"{secret}", "%s" % secret, f"{secret!r}"} == {"***def"}  # noqa: UP031  (each way)
    assert str(Secret("short")) == "***"


def test_a_secret_does_not_leave_through_settings():
    settings = load({}, {"SLUICEGATE_UPSTREAM_KEY": VALUE}, None)
    assert VALUE not in repr(settings)
    assert VALUE not in repr(dataclasses.asdict(settings))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_is_not_pickled(protocol):
    with pytest.raises(TypeError):
        pickle.dumps(Secret(VALUE), protocol)


def test_secrets_compare_by_value_and_are_no_keys_of_tables():
    assert Secret(VALUE) == Secret(VALUE)
    assert Secret(VALUE) != Secret(VALUE + "0")
    assert Secret(VALUE) != VALUE
    assert copy.deepcopy(Secret(VALUE)) == Secret(VALUE)
    with pytest.raises(TypeError):
        hash(Secret(VALUE))


@pytest.mark.parametrize("value", ["", "a b", "a\nb", "a\r\n", "ключ", "a\x00", "x" * 4097])
def test_what_cannot_stand_in_a_header_is_no_secret(value):
    with pytest.raises(ValueError, match="one line of visible ASCII") as caught:
        Secret(value)
    assert not value or value not in str(caught.value)
