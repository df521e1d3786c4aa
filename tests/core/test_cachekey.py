"""Two calls are one when nothing that could change the answer differs, however they are written."""

import json
from pathlib import Path

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core.body import Dialect, judged
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


@given(bodies, numbers)
@example({}, "999999999999999")
@example({}, "-1000000000000000")
@example({}, "0.1000000000000000055511151231257827")
def test_what_the_judge_decoded_gives_the_same_key(body, number):
    written = b'{"user":"anna","of":%s,"number":[%s]}' % (json.dumps(body).encode(), number.encode())
    _, tree = judged(written, Dialect.GATEWAY)
    assert canonical(written, tree) == canonical(written)


@pytest.mark.parametrize(
    ("number", "is_there"),
    [("0", True), ("0.0", True), ("999999999999999", True), ("9999999999999999", False), ("0.1234567890123456", False)],
)
def test_the_judge_hands_on_what_it_decoded_where_no_number_may_have_been_rounded(number, is_there):
    _, tree = judged(b'{"model":"m","top_p":1.0,"temperature":%s}' % number.encode(), Dialect.CHAT)
    assert (tree is not None) is is_there


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


@pytest.mark.parametrize("number", ["12345678901234567", "1234567890.1234567", "1e-400"])
@pytest.mark.parametrize("beside", ["", ',"b":99999999999999999999'])
def test_nobody_can_write_what_stands_for_a_number(number, beside):
    real = f'{{"a":{number}{beside}}}'.encode()
    for name in ("\\u0000number", "\\u0000\\u0000number"):
        forged = f'{{"a":{{"{name}":"{number}"}}{beside}}}'.encode()
        assert canonical(forged) != canonical(real)
        assert canonical(forged, judged(forged, Dialect.CHAT)[1]) == canonical(forged)


@pytest.mark.parametrize(("one", "other"), [("1e-400", "0.0"), ("1e-400", "2e-400"), ("4.94e-324", "5e-324")])
def test_numbers_too_small_for_the_decoder_are_told_apart(one, other):
    bodies = [f'{{"a":{number}}}'.encode() for number in (one, other)]
    assert canonical(bodies[0]) != canonical(bodies[1])
    assert canonical(bodies[0], judged(bodies[0], Dialect.CHAT)[1]) == canonical(bodies[0])


# fmt: off
KEYS = [
    # what differs from GIVEN                                                               the key that files have
    ({},                                     "7f820e21bd087a6d2a2dc3410f106474195d38535c6e7c9503639f826cbfa740"),
    ({"headers": {"x-request-id": "y", "partner-version": "2023-06-01", "accept": "*/*", "partner-beta": "tools,물"}},
                                             "49d292bde842ee794dab746d14494e1da73e096c5ba9032849f82eb554428ffb"),
    ({"target": "/v1/models?b=2&a=1&&", "body": b"", "route": "models", "scope": ("", "f" * 64, "")},
                                             "77de057a2fd3fd1263934ca128f711fd68aa3761440fc4b70fddfbbea73ad969"),
    ({"streamed": True, "body": b'{"user":"anna","stream":true,"model":"m","messages":[{"role":"user","content":'
                                b'"\\ubb3c 1234567890.1234567"}],"seed":18446744073709551616}'},
                                             "d35370f94faac965197715ba943f4cb4d07101e1e32ec9e6db50acd8e88e0a9a"),
    ({"as_it_is": True, "body": b'{ "model": "m" }'},
                                             "a6061cc30f9adb031e7073d3c932ae917c8509c01495543a56abd6766ae22b25"),
    ({"body": b'{"top_p":12345678.90123456,"z":-1.5,"model":"m"}'},
                                             "5565379b1973335f19acda316a1a5512e18cc29389a3bc2b58045b126a3300ba"),
]
# fmt: on


@pytest.mark.parametrize(("change", "key"), KEYS)
def test_a_key_is_what_it_was_when_files_were_written(change, key):
    for _ in range(2):
        assert key_of(SECRET, **{**GIVEN, **change}).hex() == key
    body = change.get("body", GIVEN["body"])
    if body and not change.get("as_it_is"):
        _, tree = judged(body, Dialect.CHAT)
        assert key_of(SECRET, **{**GIVEN, **change, "tree": tree}).hex() == key


# --- bodies as clients send them ---

# fmt: off
SENT = {
    "chat": {"model": "m", "temperature": 0, "seed": 7, "max_tokens": 64, "stop": ["a", "b"], "messages": [
        {"role": "system", "content": "물가에"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": {}}}},
    "native": {"model": "m", "max_tokens": 64, "temperature": 0, "system": [{"type": "text", "text": "s",
        "cache_control": {"type": "ephemeral"}}], "messages": [{"role": "user", "content": "hi"}],
        "thinking": {"type": "disabled"}, "tool_choice": {"type": "auto"}},
    "responses": {"model": "m", "temperature": 0, "input": [{"role": "user", "content": [
        {"type": "input_text", "text": "hi"}]}], "instructions": "be brief", "text": {"format": {"type": "text"}}},
    "native-count": {"model": "m", "messages": [{"role": "user", "content": "hi"}], "system": "s"},
    "chatbot": {"messages": [{"role": "user", "content": "hi"}], "temperature": 0, "seed": 1},
    "mcp": {"params": {"name": "add", "arguments": {"a": 1, "b": [2, {"c": None}]}}, "of": ["tools/call", "d1"]},
}
# fmt: on


@pytest.mark.parametrize("route", SENT)
@given(random=st.randoms(use_true_random=False), escaped=st.booleans(), indent=st.sampled_from([None, 1, "\t"]))
def test_a_body_of_each_route_is_the_same_however_it_is_written(route, random, escaped, indent):
    written = json.dumps(shuffled(SENT[route], random), ensure_ascii=escaped, indent=indent)
    given_ = {**GIVEN, "route": route}
    one = key_of(SECRET, **{**given_, "body": json.dumps(SENT[route]).encode()})
    assert key_of(SECRET, **{**given_, "body": written.encode()}) == one


@pytest.mark.parametrize("route", SENT)
def test_every_single_change_of_a_body_of_each_route_is_another_request(route):
    body = SENT[route]
    before = canonical(json.dumps(body).encode())
    places = [path for path in paths(body) if path]
    for path in places:
        for new in (None, True, 0, 0.0, "", "hi ", [], {}):
            other = changed(body, path, new)
            if json.dumps(other) != json.dumps(body):
                assert canonical(json.dumps(other).encode()) != before, (path, new)
    for path in places:
        parent = body
        for step in path[:-1]:
            parent = parent[step]
        less = changed(body, path[:-1], [*parent[: path[-1]], *parent[path[-1] + 1 :]]
                       if isinstance(parent, list) else {k: v for k, v in parent.items() if k != path[-1]})  # fmt: skip
        assert canonical(json.dumps(less).encode()) != before, path


RECORDED = [orjson.loads(line) for line in (Path(__file__).parent / "sdk_bodies.jsonl").read_bytes().splitlines()]
"""What clients sent that were asked the same: a text with escapes, twice with a tool, and on each wire format."""

OTHERWISE = {("tool", "ai"), ("responses", "ai"), ("plain", "langchain-openai")}
"""Clients that ask for something else: a `tool_choice` of its own, a list where others send a text, another bound."""


@pytest.mark.parametrize("asked", sorted({row["asked"] for row in RECORDED}))
def test_clients_that_ask_the_same_have_one_key_whatever_wrote_their_json(asked):
    keys = {row["by"]: canonical(row["body"].encode()) for row in RECORDED if row["asked"] == asked}
    assert len(keys) >= 2
    same = {key for by, key in keys.items() if (asked, by.split()[0]) not in OTHERWISE}
    others = [key for by, key in keys.items() if (asked, by.split()[0]) in OTHERWISE]
    assert len(same) == 1
    assert not same & set(others)


# fmt: off
PAIRS = [
    # what two clients sent                                                                            the same request
    (b'{"messages":[{"role":"user","content":"hi"}],"model":"m","temperature":0}',
     b'{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0}',                      True),
    (b'{"model": "m", "messages": [{"role": "user", "content": "\\ubb3c"}], "temperature": 0}',
     '{"model":"m","messages":[{"content":"물","role":"user"}],"temperature":0}'.encode(),              True),
    (b'{"model":"m","messages":[],"temperature":0,"stream":false}',
     b'{"model":"m","messages":[],"temperature":0}',                                                    True),
    (b'{"model":"m","messages":[],"temperature":0,"user":"anna"}',
     b'{"model":"m","messages":[],"temperature":0,"user":"ben"}',                                       True),
    (b'{"model":"m","messages":[],"temperature":0.0}',
     b'{"model":"m","messages":[],"temperature":0}',                                                    False),
    (b'{"model":"m","messages":[{"role":"user","content":"hi"}]}',
     b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}',             False),
    (b'{"model":"m","messages":[],"tools":null}',
     b'{"model":"m","messages":[]}',                                                                    False),
    (b'{"model":"m","messages":[],"stop":["a","b"]}',
     b'{"model":"m","messages":[],"stop":["b","a"]}',                                                   False),
    (b'{"model":"m","messages":[],"max_tokens":64}',
     b'{"model":"m","messages":[],"max_completion_tokens":64}',                                         False),
]
# fmt: on


@pytest.mark.parametrize(("one", "other", "same"), PAIRS)
def test_pairs_as_sdks_of_several_languages_send_them(one, other, same):
    """Order and escapes differ between the SDKs of Python and JavaScript; what a client wraps otherwise is not guessed."""
    assert (canonical(one) == canonical(other)) is same
