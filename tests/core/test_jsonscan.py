import json
import tracemalloc
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.jsonscan import VALUE_MAX, Paths, Run, Scanner, number, scan

PATHS = Paths.of(
    whole=("id", "usage", "response.usage", "choices.*.finish_reason", "credits", "message.model", "message"),
    sized=("choices.*.delta.content", "delta"),
)


def fed(text, *cuts):
    scanner, start = Scanner(PATHS), 0
    for cut in (*cuts, len(text)):
        scanner.feed(text[start:cut])
        start = cut
    return scanner


# fmt: off
FOUND = (
    ("a scalar",                      b'{"id":1}',                                       {"id": 1}),
    ("text",                          b'{"id":"a"}',                                     {"id": "a"}),
    ("text with escapes",             rb'{"id":"a\"\\\u00e9\n"}',                        {"id": 'a"\\é\n'}),
    ("text in UTF-8",                 '{"id":"왜가리"}'.encode(),                         {"id": "왜가리"}),
    ("words",                         b'{"id":true,"usage":false,"credits":null}',       {"id": True, "usage": False, "credits": None}),
    ("a small object",                b'{"usage":{"a":[1,{"b":"}"}]}}',                  {"usage": {"a": [1, {"b": "}"}]}}),
    ("a path",                        b'{"response":{"x":1,"usage":{"a":2}}}',           {"response": {"usage": {"a": 2}}}),
    ("spaces everywhere",             b' { "id" : 1 ,\r\n\t"usage" : { "a" : 2 } } ',    {"id": 1, "usage": {"a": 2}}),
    ("a name written in escapes",     rb'{"\u0069\u0064":1}',                            {"id": 1}),
    ("the exact figure",              b'{"credits":3.2500000000000000001}',              {"credits": Decimal("3.2500000000000000001")}),
    ("elements merged, sizes summed", b'{"choices":[{"delta":{"content":"ab"},"finish_reason":1},{"delta":{"content":"c"},"finish_reason":2}]}',
                                                                                         {"choices": [{"delta": {"content": Run(3)}, "finish_reason": 2}]}),
    ("null, which replaces nothing",  b'{"choices":[{"finish_reason":1},{"finish_reason":null}]}', {"choices": [{"finish_reason": 1}]}),
    ("an object where text may be",   b'{"message":{"model":"m"}}',                      {"message": {"model": "m"}}),
    ("text where an object may be",   b'{"message":"m"}',                                {"message": "m"}),
    ("a look-alike in text",          rb'{"x":"\",\"id\":1,\"usage\":{\"a\":1}","id":2}', {"id": 2}),
    ("a look-alike deeper",           b'{"x":{"id":1},"y":[{"id":3}],"id":2}',           {"id": 2}),
    ("a look-alike in a wrong shape", b'{"response":[{"usage":1}],"choices":{"*":{"finish_reason":1}}}', {}),
    ("a name that is text elsewhere", b'{"x":"id","y":["id",1],"id":2}',                 {"id": 2}),
    ("brackets in text",              b'{"x":"]}}[{","y":[[["]"]]],"id":2}',             {"id": 2}),
    ("a backslash before the quote",  rb'{"x":"\\","y":"\\\"","id":2}',                  {"id": 2}),
    ("empty things",                  b'{"":"","x":{},"y":[],"id":""}',                  {"id": ""}),
    ("nothing in an array",           b'[{"id":1}]',                                     {}),
    ("nothing in names of an array",  b'["id",1]',                                       {}),
    ("nothing in text",               b'"{\\"id\\":1}"',                                 {}),
    ("nothing after the end",         b'{"x":1}{"id":1}',                                {}),
)
# fmt: on


@pytest.mark.parametrize(("text", "found"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND])
def test_a_path_is_found_wherever_the_text_is_cut(text, found):
    for cut in range(len(text) + 1):
        assert fed(text, cut).tree == found, cut
    assert fed(text, *range(len(text))).tree == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text('aé왜🪶"\\{}[]:, \n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "usage", "response", "x", '"', "\\", "{"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(["id", "usage", "response", "x", "]"]), JSON, max_size=5), st.booleans(), st.data()
)
def test_what_is_found_is_what_a_decoder_finds(tree, ascii_only, data):
    text = json.dumps(tree, ensure_ascii=ascii_only).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    expected = {key: tree[key] for key in ("id", "usage") if key in tree}
    if isinstance(tree.get("response"), dict):
        expected["response"] = {"usage": tree["response"]["usage"]} if "usage" in tree["response"] else {}
    scanner = fed(text, *cuts)
    assert scanner.tree == expected
    assert scanner.complete


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_what_is_no_json_raises_nothing(head, tail):
    fed(b'{"id":' + head + tail, 6 + len(head))
    fed(head + tail, len(head))


def test_a_text_that_broke_off_is_not_complete():
    text = b'{"id":1,"usage":{"a":[2]}}'
    assert [fed(text[:cut]).complete for cut in range(len(text) + 1)] == [False] * len(text) + [True]


def test_a_value_above_the_bound_is_measured_and_not_kept():
    assert fed(b'{"id":"' + b"x" * (VALUE_MAX + 1) + b'"}').tree == {"id": Run(VALUE_MAX + 1)}


# fmt: off
LONG = (
    ("text",             b"x" * 1000),
    ("escapes",          rb"\n" * 500),
    ("quotes",           rb"\"" * 500),
)
NESTED = (
    ("open arrays",      b"[" * 1000),
    ("open objects",     b'{"a":' * 200),
    ("array elements",   b"[]," * 300),
    ("elements on path", b'{"finish_reason":"stop"},' * 40),
    ("long names",       b'{"' + b"k" * 990 + b'":1},'),
)
# fmt: on


@pytest.mark.parametrize("piece", [row[1] for row in LONG + NESTED], ids=[row[0] for row in LONG + NESTED])
@pytest.mark.parametrize("head", [b'{"x":', b'{"usage":', b'{"choices":'])
def test_memory_does_not_grow_with_the_text(head, piece):
    scanner = Scanner(PATHS)
    tracemalloc.start()
    scanner.feed(head + (b'"' if piece in [row[1] for row in LONG] else b"["))
    for _ in range(150):
        scanner.feed(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**16


def test_one_huge_piece_needs_no_memory_either():
    piece = b'{"x":"' + rb"\n\"" * 500_000 + b'","id":1}'
    tracemalloc.start()
    found = scan(piece, PATHS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == {"id": 1}
    assert peak < 2**17


# fmt: off
NUMBERS = (
    (b"0", 0), (b"-7", -7), (b"12", 12), (b"1.50", Decimal("1.50")), (b"1e3", Decimal("1e3")), (b"1E-8", Decimal("1e-8")),
    (b"", None), (b"+1", None), (b"01", None), (b"1.", None), (b".5", None), (b"NaN", None), (b"Infinity", None),
    (b"1e9999", None), (b"9" * 40, None), (b"null", None), (b"1_000", None), (b"\xd9\xa1", None),
)
# fmt: on


@pytest.mark.parametrize(("raw", "value"), NUMBERS)
def test_a_number_is_read_exactly_or_not_at_all(raw, value):
    assert number(raw) == value
    assert type(number(raw)) is type(value)
