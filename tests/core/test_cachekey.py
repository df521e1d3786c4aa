"""Two calls are one when nothing that could change the answer differs, however they are written."""

import json

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core.cachekey import INDIFFERENT, canonical, key_of

SECRET = b"s" * 32
GIVEN = {
    "scope": ("red", "", "https://gateway.example"),
    "route": "chat",
    "target": "/v1/gateway/chat/completions/",
    "headers": {"content-type": "application/json"},
    "streamed": False,
    "body": b'{"model":"m","temperature":0}',
}

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
trees = st.recursive(
    scalars | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(st.text(max_size=6), trees, max_size=4)


def shuffled(value, random):
    """The same value with its members in another order."""
    if isinstance(value, dict):
        names = list(value)
        random.shuffle(names)
        return {name: shuffled(value[name], random) for name in names}
    return [shuffled(item, random) for item in value] if isinstance(value, list) else value


@given(bodies, st.randoms(use_true_random=False), st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_order_space_and_escapes_make_no_difference(body, random, escaped, indent):
    written = json.dumps(shuffled(body, random), ensure_ascii=escaped, indent=indent)
    assert canonical(written.encode("utf-8", "surrogatepass")) == canonical(json.dumps(body).encode())


def paths(value, at=()):
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield from paths(child, (*at, step))


def changed(value, path, new):
    if not path:
        return new
    first, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[first] = changed(copy[first], rest, new)
    return copy


@given(bodies.filter(bool), st.data())
def test_any_other_value_anywhere_is_another_request(body, data):
    path = data.draw(st.sampled_from([path for path in paths(body) if path and path[0] not in INDIFFERENT] or [None]))
    new = data.draw(trees)
    if path is None:
        return
    other = changed(body, path, new)
    if json.dumps(other, sort_keys=True) != json.dumps(body, sort_keys=True):
        assert canonical(json.dumps(other).encode()) != canonical(json.dumps(body).encode())


numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,22})?", fullmatch=True).filter(
    lambda text: len(text.lstrip("-").partition(".")[0]) <= 20
)


@given(numbers, numbers)
@example("18446744073709551616", "18446744073709551617")
@example("0.1", "0.1000000000000000055511151231257827")
@example("1", "1.0")
def test_numbers_that_differ_in_any_digit_that_counts_differ(one, other):
    same = canonical(b'{"n":%s}' % one.encode()) == canonical(b'{"n":%s}' % other.encode())
    if one == other:
        assert same
    elif same:
        assert float(one) == float(other)
        assert max(len(one), len(other)) < 17 or orjson.loads(one) == orjson.loads(other)


def test_long_numbers_are_told_apart_by_their_digits():
    assert canonical(b'{"n":18446744073709551616}') != canonical(b'{"n":18446744073709551617}')
    assert canonical(b'{"n":0.12345678901234567}') != canonical(b'{"n":0.12345678901234568}')


def test_digits_in_text_are_no_numbers():
    assert canonical(b'{"a":"12345678901234567890"}') == b'{"a":"12345678901234567890"}'


@pytest.mark.parametrize("name", sorted(INDIFFERENT))
def test_who_asks_makes_no_difference(name):
    assert canonical(b'{"model":"m","%s":"x"}' % name.encode()) == canonical(b'{"model":"m"}')


@pytest.mark.parametrize(
    "change",
    [
        {"scope": ("blue", "", "https://gateway.example")},
        {"scope": ("red", "another key", "https://gateway.example")},
        {"scope": ("red", "", "https://other.example")},
        {"route": "native"},
        {"target": "/v1/gateway/other/"},
        {"target": "/v1/gateway/chat/completions/?model=m"},
        {"headers": {"partner-version": "2023-06-01"}},
        {"headers": {"partner-beta": "tools"}},
        {"streamed": True},
        {"body": b'{"model":"m","temperature":0.0}'},
        {"body": b""},
    ],
)
def test_all_that_shapes_an_answer_is_in_the_key(change):
    assert key_of(SECRET, **{**GIVEN, **change}) != key_of(SECRET, **GIVEN)


@pytest.mark.parametrize(
    "change",
    [
        {"headers": {"content-type": "application/json", "traceparent": "x", "x-request-id": "y"}},
        {"body": b'{ "temperature": 0, "model": "m", "user": "u-1", "metadata": {"run": 7} }'},
    ],
)
def test_what_changes_nothing_is_not(change):
    assert key_of(SECRET, **{**GIVEN, **change}) == key_of(SECRET, **GIVEN)


def test_the_order_of_query_parameters_makes_no_difference():
    one = key_of(SECRET, **{**GIVEN, "target": "/m?a=1&b=2"})
    assert one == key_of(SECRET, **{**GIVEN, "target": "/m?b=2&a=1"})


def test_a_key_cannot_be_guessed_without_the_secret():
    assert key_of(b"t" * 32, **GIVEN) != key_of(SECRET, **GIVEN)


def test_a_large_body_is_the_same_request_only_byte_for_byte():
    spaced = b'{ "model": "m", "temperature": 0 }'
    assert key_of(SECRET, **GIVEN) == key_of(SECRET, **{**GIVEN, "body": spaced})
    large = {**GIVEN, "as_it_is": True}
    assert key_of(SECRET, **large) != key_of(SECRET, **{**large, "body": spaced})
