import json
import pickle
from hashlib import sha256

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core.body import DEPTH_MAX, Dialect, judge, judge_large, judged
from proxy.core.jsonrpc import Call
from proxy.errors import ProxyError


def refused(body, dialect=Dialect.CHAT):
    with pytest.raises(ProxyError) as caught:
        judge(body, dialect)
    assert caught.value.reason.name == "bad_request"
    return caught.value.message


def nested(depth):
    """An object with arrays inside, this many containers deep."""
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


# fmt: off
NOT_STRICT = (
    # what                           body                                              a place or word in the message
    ("nothing",                      b"",                                              "at byte 0"),
    ("no object",                    b"[]",                                            "must be a JSON object"),
    ("text alone",                   b'"a"',                                           "must be a JSON object"),
    ("a number alone",               b"7",                                             "must be a JSON object"),
    ("null alone",                   b"null",                                          "must be a JSON object"),
    ("a byte-order mark",            b"\xef\xbb\xbf{}",                                "at byte 0"),
    ("something after the end",      b"{} x",                                          "at byte 3"),
    ("two objects",                  b"{}{}",                                          "at byte 2"),
    ("a place after other letters",  '{"왜":x}'.encode(),                              "at byte 7"),
    ("NaN",                          b'{"a":NaN}',                                     "at byte 5"),
    ("Infinity",                     b'{"a":-Infinity}',                               "at byte 6"),
    ("a number no double holds",     b'{"a":1e999}',                                   "at byte"),
    ("a number that begins with 0",  b'{"a":01}',                                      "at byte"),
    ("invalid UTF-8",                b'{"abc":"\xff"}',                                "at byte 8"),
    ("a surrogate in UTF-8",         b'{"a":"\xed\xa0\x80"}',                          "at byte"),
    ("half an escaped pair",         rb'{"a":"\ud800"}',                               "at byte"),
    ("the other half",               rb'{"a":"\udc00"}',                               "at byte"),
    ("a control byte in text",       b'{"a":"\x01"}',                                  "at byte"),
    ("a comment",                    b'{"a":1/*x*/}',                                  "at byte"),
    ("a trailing comma",             b'{"a":1,}',                                      "at byte"),
    ("single quotes",                b"{'a':1}",                                       "at byte"),
    ("a name twice",                 b'{"a":1,"b":2,"a":1}',                           "at byte 13"),
    ("a name twice, spelt apart",    rb'{"model":1,"mod\u0065l":2}',                   "at byte 11"),
    ("a name twice, with a colon",   b'{"a:b":1,"a:b":2}',                             "at byte 9"),
    ("a name twice, deep down",      b'{"a":[{"b":{"c":":","c":":"}}]}',               "at byte 20"),
    ("a name twice, after an inner", b'{"b":{"c":1},"c":2,"b":1}',                     "at byte 19"),
    ("a name twice, paid with \\u3a", rb'{"a":1,"a":2,"b":"\u003a"}',                  "at byte 7"),
    ("a name twice, with \\u3A",     rb'{"a":1,"a":2,"b":"\u003A"}',                   "at byte 7"),
    ("a name twice, with no name",   b'{"":1,"":1}',                                   "at byte 6"),
    ("65 deep",                      nested(DEPTH_MAX + 1),                            "deeper than 64"),
    ("far too deep",                 nested(100_000),                                  "deeper than 64"),
    ("never closed",                 b"[" * 100_000,                                   "at byte"),
    ("21 digits",                    b'{"a":' + b"1" * 21 + b"}",                      "at byte 5"),
    ("21 digits below zero",         b'{"a":[-' + b"1" * 21 + b"]}",                   "at byte 7"),
    ("21 digits and a fraction",     b'{"a":' + b"1" * 21 + b".5}",                    "at byte 5"),
    ("5,000 digits",                 b'{"a":' + b"1" * 5000 + b"}",                    "at byte 5"),
    ("model that is no text",        b'{"model":["m"]}',                               "model must be text"),
    ("a name that is no name",       b'{"model":"' + b"m" * 513 + b'"}',               "model is longer than 512"),
    ("a parent that is no text",     b'{"previous_response_id":7}',                    "previous_response_id must be text"),
    ("a bound as text",              b'{"max_tokens":"5"}',                            "max_tokens must be a whole number"),
    ("a bound as a fraction",        b'{"max_completion_tokens":5.0}',                 "max_completion_tokens must be"),
    ("a bound as truth",             b'{"max_tokens":true}',                           "max_tokens must be"),
    ("a count as text",              b'{"n":"4"}',                                     "n must be a whole number"),
    ("images as a fraction",         b'{"number_of_images":4.5}',                      "number_of_images must be"),
)
STRICT = (
    ("an empty object",              b"{}"),
    ("spaces",                       b' \r\n\t{ "a" : 1 }\n'),
    ("colons in text and names",     b'{"a:":":::","b":["c:",{"d:d":":"}]}'),
    ("colons written as escapes",    rb'{"a\u003a":"\u003A:","b":1}'),
    ("names alike in other objects", b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}'),
    ("64 deep",                      nested(DEPTH_MAX)),
    ("20 digits",                    b'{"a":-' + b"9" * 20 + b"}"),
    ("30 digits of a fraction",      b'{"a":0.' + b"1" * 30 + b"}"),
    ("30 digits in text",            b'{"a":"' + b"1" * 30 + rb'\"' + b"1" * 30 + b'"}'),
    ("a whole pair, escaped",        rb'{"a":"\ud83e\udeb6\u0000"}'),
    ("nulls everywhere",             b'{"model":null,"max_tokens":null,"n":null,"messages":null,"tools":null}'),
)
# fmt: on


@pytest.mark.parametrize(("body", "said"), [row[1:] for row in NOT_STRICT], ids=[row[0] for row in NOT_STRICT])
def test_what_two_readers_could_read_in_two_ways_is_refused_with_a_place(body, said):
    assert said in refused(body)


@pytest.mark.parametrize("body", [row[1] for row in STRICT], ids=[row[0] for row in STRICT])
def test_strict_json_passes(body):
    assert judge(body, Dialect.CHAT).model is None


@pytest.mark.parametrize("body", [row[1] for row in NOT_STRICT], ids=[row[0] for row in NOT_STRICT])
def test_another_process_says_the_same(body):
    assert judge_large(body, Dialect.CHAT) == refused(body)


@pytest.mark.parametrize("body", [row[1] for row in STRICT], ids=[row[0] for row in STRICT])
def test_facts_travel_between_processes(body):
    assert pickle.loads(pickle.dumps(judge_large(body, Dialect.CHAT))) == judge(body, Dialect.CHAT)


def test_a_refusal_never_repeats_what_the_body_said():
    for body in (
        b'{"sk-canary":1,"sk-canary":2}',
        b'{"a":sk-canary}',
        b'{"model":{"sk-canary":1}}',
        b'{"n":"sk-canary"}',
    ):
        assert "canary" not in refused(body)


def test_a_large_body_that_gives_a_name_twice_is_refused_too():
    assert "twice" in refused(b'{"a":1,"a":2,"b":"' + b"x" * 300_000 + b'"}')


ATOMS = st.integers(-99, 99) | st.sampled_from([":", "a", "\\", '"', "왜", "}", "::"]) | st.none()
NAMES = st.sampled_from(["a", "b", ":", '"', "\\", "왜:"])


@st.composite
def texts(draw, depth=3):
    """JSON text of an object, and whether some object in it gives a name twice. Any character may be an escape."""

    def write(value):
        text = json.dumps(value, ensure_ascii=draw(st.booleans()))
        return text.replace(":", "\\u003a") if isinstance(value, str) and draw(st.booleans()) else text

    def value(left):
        kind = draw(st.sampled_from(["atom", "list", "object"])) if left else "atom"
        if kind == "atom":
            return write(draw(ATOMS)), False
        if kind == "list":
            items = [value(left - 1) for _ in range(draw(st.integers(0, 2)))]
            return "[" + ",".join(item[0] for item in items) + "]", any(item[1] for item in items)
        return members_of(left)

    def members_of(left):
        names = draw(st.lists(NAMES, max_size=3))
        values = [value(left - 1) for _ in names]
        written = ",".join(write(name) + " : " + item[0] for name, item in zip(names, values, strict=True))
        return "{" + written + "}", len(set(names)) < len(names) or any(item[1] for item in values)

    return members_of(depth)


@given(texts())
@example(('{"a":1,"a":2,"b":"\\u003a"}', True))  # an escaped colon once could have paid for the lost member
def test_a_name_given_twice_is_always_found_and_never_made_up(text_and_truth):
    text, twice = text_and_truth
    if twice:
        assert "twice" in refused(text.encode())
    else:
        assert judge(text.encode(), Dialect.CHAT)


def facts(body, dialect=Dialect.CHAT, **expected):
    found = judge(orjson.dumps(body), dialect)
    return {name: getattr(found, name) for name in expected}


# fmt: off
FACTS = (
    # body                                                          what it says
    ({},                                                            {"model": None, "stream": False, "n": 1, "output_max": None, "stored": False, "background": False, "seeded": False, "temperature_zero": False, "tools": 0}),
    ({"model": "m"},                                                {"model": "m"}),
    ({"stream": True},                                              {"stream": True}),
    ({"stream": 1},                                                 {"stream": False}),
    ({"stream": "true"},                                            {"stream": False}),
    ({"stream_options": {"include_usage": True}},                   {"include_usage": True}),
    ({"stream_options": {"include_usage": 1}},                      {"include_usage": False}),
    ({"stream_options": [1]},                                       {"include_usage": False}),
    ({"n": 3},                                                      {"n": 3}),
    ({"n": 0},                                                      {"n": 1}),
    ({"n": -2, "number_of_images": 4},                              {"n": 1, "pictures": 4}),
    ({"max_tokens": 5},                                             {"output_max": 5}),
    ({"max_tokens": 5, "max_completion_tokens": 9},                 {"output_max": 9}),
    ({"max_output_tokens": 7},                                      {"output_max": None}),
    ({"thinking_budget": 512},                                      {"thinking_max": 512}),
    ({"thinking_budget": -1},                                       {"thinking_max": 8192}),
    ({"thinking_level": "low"},                                     {"thinking_max": 8192}),
    ({"max_tokens": -1},                                            {"output_max": None}),
    ({"max_tokens": 0},                                             {"output_max": None}),
    ({"temperature": 0},                                            {"temperature_zero": True}),
    ({"temperature": 0.0},                                          {"temperature_zero": True}),
    ({"temperature": False},                                        {"temperature_zero": False}),
    ({"temperature": "0"},                                          {"temperature_zero": False}),
    ({"seed": 0},                                                   {"seeded": True}),
    ({"seed": None},                                                {"seeded": False}),
    ({"store": True},                                               {"stored": True}),
    ({"store": "no"},                                               {"stored": True}),
    ({"store": 0},                                                  {"stored": True}),
    ({"store": None, "background": None},                           {"stored": False, "background": False}),
    ({"background": 1},                                             {"background": True}),
    ({"previous_response_id": "resp_1"},                            {"previous_response_id": "resp_1"}),
    ({"tools": [{}, {}], "functions": [{}]},                        {"tools": 3}),
    ({"functions": [{}, {}]},                                       {"tools": 2}),
    ({"tools": None, "thinking": None, "reasoning_effort": None},   {"tools": 0, "reasons": False}),
    ({"reasoning_effort": "high"},                                  {"reasons": True}),
    ({"tools": "x"},                                                {"tools": 0}),
    ({"input": "왜가리", "response_format": "wav"},                  {"characters": 3, "response_format": "wav"}),
    ({"response_format": {"type": "json_schema"}},                  {"response_format": None}),
)
# fmt: on


@pytest.mark.parametrize(("body", "expected"), FACTS)
def test_facts_are_what_the_body_says(body, expected):
    assert facts(body, **expected) == expected


def test_text_is_counted_in_utf_8_whatever_its_spelling():
    value = {"messages": [{"content": "왜가리 🪶"}], "n": 1}
    expected = len("messages" + "content" + "n") + len("왜가리 🪶".encode()) + 8
    assert judge(json.dumps(value).encode(), Dialect.CHAT).text_bytes == expected
    assert judge(json.dumps(value, ensure_ascii=False).encode(), Dialect.CHAT).text_bytes == expected


def test_numbers_are_no_way_around_the_count():
    body = {"messages": [{"content": [{"type": "tool_use", "input": list(range(1000))}]}]}
    assert judge(orjson.dumps(body), Dialect.MESSAGES).text_bytes > 4000


def test_the_digest_is_of_the_bytes_as_they_came():
    assert judge(b"{}", Dialect.CHAT).digest != judge(b"{ }", Dialect.CHAT).digest
    assert judge(b"{}", Dialect.CHAT).digest.hex().startswith("44136fa355b3678a")


def test_an_mcp_body_is_judged_as_strictly_and_read_as_json_rpc():
    body = b'{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"add"}}'
    assert judge(body, Dialect.MCP).call == Call("tools/call", b"0", "add")
    assert judge(b"[1]", Dialect.MCP).call == Call(is_batch=True)
    assert "twice" in refused(body.replace(b'"id":0', b'"method":"ping"'), Dialect.MCP)
    assert "twice" in refused(b'[{"a":1,"a":2}]', Dialect.MCP)


@pytest.mark.parametrize(
    "body",
    [b"[" * 25 * 2**20, b'{"a":' * 5 * 2**20, b'{"a":[' + b"1" * 25 * 2**20],
    ids=["arrays", "objects", "digits"],
)
def test_the_largest_nonsense_is_refused(body):
    refused(body)


@pytest.mark.parametrize(
    ("body", "dialect"), [(b'{"model":"m"}', Dialect.CHAT), (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Dialect.MCP)]
)
def test_a_digest_is_taken_where_it_is_asked_for(body, dialect):
    facts = judge(body, dialect)
    assert facts.digest == sha256(body).digest()
    assert judged(body, dialect)[0] == facts._replace(digest=b"")


@pytest.mark.parametrize(("asked", "largest"), [((5, 3), 5), ((3, 5), 5), ((0, 3), 3), ((-1, 0), None), ((None, 4), 4)])
def test_of_two_bounds_on_an_answer_the_larger_one_counts(asked, largest):
    body = orjson.dumps(dict(zip(("max_tokens", "max_completion_tokens"), asked, strict=True)))
    assert judge(body, Dialect.CHAT).output_max == largest
