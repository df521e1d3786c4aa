"""docs/gateway-facts.md and the tests of facts are one list."""

import ast
import re
from pathlib import Path

import proxy
from proxy.emulator.faults.table import FAULTS

TESTS = Path(__file__).parent
TABLE = Path(proxy.__file__).parent.parent / "docs" / "gateway-facts.md"

ROW = re.compile(r"^\| `([\w-]+)` \| .+ \| `([\w/.:]+)` \|$", re.MULTILINE)


def facts_in_tests():
    """Fact to test, as the marks in the test files say."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fact":
                        yield mark.args[0].value, f"{path.relative_to(TESTS)}::{node.name}"


def test_every_row_names_the_test_that_shows_it_and_every_such_test_has_a_row():
    rows, marks = ROW.findall(TABLE.read_text()), list(facts_in_tests())
    assert len(dict(rows)) == len(rows), "a fact stands twice"
    assert len(dict(marks)) == len(marks), "two tests claim one fact"
    assert dict(rows) == dict(marks)


def test_the_table_of_faults_is_the_table_of_the_code():
    _, _, text = TABLE.read_text().partition("\n## Faults\n")
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \|$", text, re.MULTILINE)
    assert rows == [(fault.name, fault.help) for fault in FAULTS.values()]
