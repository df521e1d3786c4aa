"""docs/groups.md, the tests of its facts and the mutations that break them are one list."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import aiohttp
import pytest

import proxy
from tests.emulator.groups.caller import serving
from tests.emulator.groups.mutations import MUTATIONS
from tests.emulator.test_mutations import broken

HERE = Path(__file__).parent
PAGE = Path(proxy.__file__).parent.parent / "docs" / "groups.md"
ROW = re.compile(r"^\| `([\w-]+)` \| .+ \| `(\w+\.py::\w+)` \|$", re.MULTILINE)

NOTICED = (AssertionError, ValueError, KeyError, TypeError, aiohttp.ContentTypeError)
"""How a test fails; the last is an answer of 500 that a mutation brought about."""


def facts_in_tests():
    """Fact to test, as the marks in the test files say."""
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            for mark in getattr(node, "decorator_list", ()):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.group_fact":
                    yield mark.args[0].value, f"{path.name}::{node.name}"


FACTS = dict(facts_in_tests())


def test_every_row_names_the_test_that_shows_it_and_every_such_test_has_a_row():
    rows, marks = ROW.findall(PAGE.read_text("utf-8")), list(facts_in_tests())
    assert len(dict(rows)) == len(rows), "a fact stands twice"
    assert len(FACTS) == len(marks), "two tests claim one fact"
    assert dict(rows) == FACTS


def test_every_fact_is_broken_at_least_once():
    assert {mutation.fact for mutation in MUTATIONS} == set(FACTS)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
async def test_breaking_what_a_fact_rests_on_fails_its_test(mutation):
    name, _, function = FACTS[mutation.fact].partition("::")
    test = getattr(import_module(f"tests.emulator.groups.{name.removesuffix('.py')}"), function)
    assert list(inspect.signature(test).parameters) == ["groups"]
    with broken(mutation), pytest.raises(NOTICED):
        async with serving() as groups:
            await test(groups)
