"""What YAML stands for, where it stands, and what is refused because readers of YAML disagree on it."""

import pytest

from proxy.config.problem import Problems
from proxy.config.yamlfile import parse_yaml, read_yaml
from proxy.config.yamltree import DEPTH_MAX, Number, Tree, fill


def tree_of(text):
    tree = Tree()
    fill(tree, "a.yaml", text)
    return tree


def faults_of(text):
    return [(".".join(map(str, fault.steps)), fault.at, fault.what) for fault in tree_of(text).faults]


# fmt: off
WORDS = [
    ("1",          1),        ("-7",     -7),      ("0",       0),      ("+3",        3),
    ("1.5",        1.5),      (".5",     0.5),     ("1e3",     1000.0), ("0.0",       0.0),
    ("true",       True),     ("FALSE",  False),   ("null",    None),   ("~",         None),
    ("yes",        "yes"),    ("12:30",  "12:30"), ("1,5",     "1,5"),  ("gpt-4o",    "gpt-4o"),
    ("2027-02-30", "2027-02-30"),                  ("'010'",   "010"),  ('"0x10"',    "0x10"),
    ("1.2.3",      "1.2.3"),  ("٣",      "٣"),     ("0b2",     "0b2"),
]
# fmt: on


@pytest.mark.parametrize(("written", "value"), WORDS)
def test_a_word_stands_for_what_every_reader_sees_in_it(written, value):
    tree = tree_of(f"a: {written}")
    assert (tree.value, tree.faults) == ({"a": value}, [])
    assert type(tree.value["a"]) in (type(value), Number)


@pytest.mark.parametrize("written", ["010", "0x10", "0o17", "0b11", "1_000", "1_0.5", "007.5", "-010", "00"])
def test_a_number_that_readers_of_yaml_disagree_on_is_refused_where_it_stands(written):
    assert faults_of(f"a: [{written}]") == [
        ("a.0", (0, 4), f"{written} is read as one number here and as another there")
    ]


def test_a_number_with_a_point_knows_how_it_was_written():
    one, two = tree_of("[1.50, 1e400]").value
    assert (one, str(one), repr(two)) == (1.5, "1.50", "1e400")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{ a: 1,5, b: 2 }", "1,5 is two things here: in { } a comma begins the next key"),
        ("{ b: 2, a: 1,234,567 }", "1,234 is two things here: in { } a comma begins the next key"),
    ],
)
def test_a_number_that_its_comma_cuts_is_told_once_and_makes_no_key(text, what):
    tree = tree_of(text)
    assert [(fault.steps, fault.what) for fault in tree.faults] == [(("a",), what)]
    assert tree.value == {"a": 1, "b": 2}


def test_every_key_that_stands_twice_is_told_with_both_places_and_the_rest_is_read():
    text = "a: { b: 1, b: [010] }\nc: 2\na: { d: 3, d: 4 }\ne: *x\n"
    assert faults_of(text) == [
        ("a.b", (0, 11), "the key stands at a.yaml:1:6 already"),
        ("a", (2, 0), "the key stands at a.yaml:1:1 already"),
        ("e", (3, 3), "aliases are not read"),
    ]
    tree = tree_of(text)
    assert tree.value == {"a": {"b": 1}, "c": 2, "e": None}
    within, again = tree.again
    assert [fault.steps for fault in within[1].faults] == [("a", "b", 0)]
    assert (again[0], again[1].value, again[1].faults[0].steps) == (("a",), {"d": 3}, ("a", "d"))


def test_what_is_no_word_is_no_key():
    assert faults_of("a: 1\n? [b]\n: 2\ntrue: 3\n") == [
        ("", (1, 2), "a key here is no word"),
        ("true", (3, 0), "expected text, not true"),
    ]


def test_lists_in_lists_without_end_are_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("a: " + "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1))
    with pytest.raises(Problems, match=rf"a\.yaml:1:{DEPTH_MAX + 4}: .* more than {DEPTH_MAX} deep"):
        parse_yaml(tmp_path / "a.yaml")


def test_what_was_found_before_the_text_ends_to_be_yaml_is_told_too(tmp_path):
    (tmp_path / "a.yaml").write_text("a: 010\nb: {\n")
    with pytest.raises(Problems) as refused:
        parse_yaml(tmp_path / "a.yaml")
    assert [str(problem).split(": ")[0] for problem in refused.value.problems] == [
        f"{tmp_path}/a.yaml:1:4", f"{tmp_path}/a.yaml:3:1"
    ]  # fmt: skip


def test_other_files_are_refused_for_what_a_policy_is_told_of(tmp_path):
    (tmp_path / "a.yaml").write_text("a: 010\na: 0x10\n")
    with pytest.raises(Problems) as refused:
        read_yaml(tmp_path / "a.yaml", name="a")
    assert [str(problem).split(";")[0] for problem in refused.value.problems] == [
        "a:1:4: a: 010 is read as one number here and as another there",
        "a:2:1: a: the key stands at a:1:1 already",
        "a:2:4: a: 0x10 is read as one number here and as another there",
    ]


# fmt: off
SYNTAX = [
    ("a:\n\tb: 1",  "indent with spaces"),
    ("a: b: c",     "put text with a colon in quotes"),
    ('a: "b',       "close each quote"),
    ("a: {",        "close each { and ["),
    ("a: ['b' c]",  "put a comma between two items"),
    ("a: 1\n b: 2", "indent what belongs together alike"),
]
# fmt: on


@pytest.mark.parametrize(("text", "do"), SYNTAX)
def test_what_is_no_yaml_comes_with_what_to_do(tmp_path, text, do):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(Problems) as refused:
        read_yaml(tmp_path / "a.yaml")
    (problem,) = refused.value.problems
    assert do in problem.do
