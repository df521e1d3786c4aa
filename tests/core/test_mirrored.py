"""Which arguments a tool wants repeated in the header, which marks are none, and when a header says something else."""

import base64

import pytest

from proxy.core.mirrored import Mirror, WrongMark, mirrors, mismatch, repeated, unwrapped
from proxy.core.toollist import definitions


def marked(name="Region", kind="string"):
    return {"type": kind, "x-mcp-header": name}


def schema(**properties):
    return {"type": "object", "properties": properties}


def wrapped(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def test_marks_are_found_where_only_properties_lead_to_them():
    found = mirrors(schema(a=marked("A"), b=schema(c=marked("B-c", "integer")), d={"default": {"x-mcp-header": 1}}))
    assert set(found) == {Mirror(("a",), "mcp-param-a"), Mirror(("b", "c"), "mcp-param-b-c")}
    assert mirrors(None) == mirrors({"type": "object"}) == ()
    assert mirrors(schema(**{"x-mcp-header": {"type": "string"}})) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        schema(a=marked("")),
        schema(a=marked("a b")),
        schema(a=marked("a\r\nb")),
        schema(a=marked("ä")),
        schema(a=marked(3)),
        schema(a=marked(kind="number")),
        schema(a=marked(kind="object")),
        schema(a=marked(kind=["string", "null"])),
        schema(a={"x-mcp-header": "A"}),
        schema(a=marked("Same"), b=marked("sAME")),
        marked(),
        schema(a={"type": "array", "items": marked()}),
        schema(a={"anyOf": [marked()]}),
        {"oneOf": [schema(a=marked())]},
        {"not": schema(a=marked())},
        {"if": schema(a=marked())},
        {"$defs": {"a": marked()}},
        schema(a={"type": "object", "additionalProperties": marked()}),
    ],
)
def test_a_mark_that_the_revision_does_not_allow_is_none(wrong):
    with pytest.raises(WrongMark) as raised:
        mirrors(wrong)
    assert str(raised.value)


MARKED = mirrors(schema(a=marked("A"), b=schema(c=marked("C", "integer"))))


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, []),
        (None, []),
        ({"a": None}, []),
        ({"a": "x"}, [("Mcp-Param-A", "x")]),
        ({"a": "x"}, [("MCP-PARAM-a", "x"), ("Mcp-Param-Other", "y")]),
        ({"a": ""}, [("Mcp-Param-A", "")]),
        ({"a": "grüße, 世界"}, [("Mcp-Param-A", wrapped("grüße, 世界"))]),
        ({"a": " x "}, [("Mcp-Param-A", wrapped(" x "))]),
        ({"a": "x"}, [("Mcp-Param-A", wrapped("x"))]),
        ({"a": "=?base64?eA==?="}, [("Mcp-Param-A", wrapped("=?base64?eA==?="))]),
        ({"a": "=?base64?eA=="}, [("Mcp-Param-A", "=?base64?eA==")]),
        ({"a": True}, [("Mcp-Param-A", "true")]),
        ({"a": ["x"]}, []),
        ({"b": {"c": 42}}, [("Mcp-Param-C", "42")]),
        ({"b": {"c": 42}}, [("Mcp-Param-C", "42.0")]),
        ({"b": {"c": 42.0}}, [("Mcp-Param-C", "42")]),
        ({"b": {"c": -(2**53) + 1}}, [("Mcp-Param-C", str(-(2**53) + 1))]),
        ({"b": "c"}, []),
    ],
)
def test_a_header_that_repeats_the_arguments_agrees_with_them(arguments, lines):
    assert mismatch(MARKED, arguments, lines) is None


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"a": "x"}, []),
        ({"a": "x"}, [("Mcp-Param-A", "y")]),
        ({"a": "x"}, [("Mcp-Param-A", "X")]),
        ({"a": "x"}, [("Mcp-Param-A", "x"), ("mcp-param-a", "x")]),
        ({}, [("Mcp-Param-A", "x")]),
        ({"a": None}, [("Mcp-Param-A", "null")]),
        ({"a": ["x"]}, [("Mcp-Param-A", "x")]),
        ({"a": "=?base64?eA==?="}, [("Mcp-Param-A", "=?base64?eA==?=")]),
        ({"a": "x"}, [("Mcp-Param-A", "=?base64?eA?=")]),
        ({"a": "x"}, [("Mcp-Param-A", "=?base64?eB==?=")]),
        ({"a": "x"}, [("Mcp-Param-A", "=?base64?e!A==?=")]),
        ({"a": "ä"}, [("Mcp-Param-A", "ä")]),
        ({"a": True}, [("Mcp-Param-A", "True")]),
        ({"b": {"c": 42}}, [("Mcp-Param-C", "42.5")]),
        ({"b": {"c": 42}}, [("Mcp-Param-C", "4.2e1")]),
        ({"b": {"c": 2**53 + 1}}, [("Mcp-Param-C", str(2**53))]),
    ],
)
def test_a_header_that_says_something_else_is_told_apart(arguments, lines):
    assert mismatch(MARKED, arguments, lines)


def test_a_wrapping_is_taken_off_only_where_it_is_one():
    assert unwrapped(wrapped("ä")) == "ä"
    assert unwrapped("=?BASE64?eA==?=") == "=?BASE64?eA==?="
    assert unwrapped("=?base64?/w==?=") is None
    assert unwrapped(None) is None


def test_of_a_tool_that_is_listed_twice_the_hints_of_either_forbid():
    one = {"name": "add", "annotations": {"destructiveHint": True}}
    two = {"name": "add", "annotations": {"readOnlyHint": True}}
    both, other, same = definitions([one, two])["add"], definitions([two])["add"], definitions([two, two])["add"]
    assert (both.changes, other.changes) == (True, False)
    assert both.digest != other.digest
    assert same == other


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"a": None, "b": {"c": 42}},
        {"a": ""},
        {"a": "tab\tinside"},
        {"a": " padded "},
        {"a": "=?base64?eA==?="},
        {"a": "日\n"},
        {"a": False, "b": {"c": -(2**53) + 1}},
        {"b": {"c": 42.0}},
        {"b": {"c": 1e21}},
        {"a": {"no": "text"}},
    ],
)
def test_what_is_repeated_here_agrees_with_its_arguments(arguments):
    lines = repeated(MARKED, arguments)
    assert all(
        value.isascii() and value == value.strip() and value.replace("\t", " ").isprintable()
        for value in lines.values()
    )
    assert mismatch(MARKED, arguments, lines.items()) is None
