"""The check of the checks: break the emulator row by row, and the test of the row's fact must fail.

Other tests never patch; here patching is the subject.
"""

import importlib
import importlib.util
import inspect
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STEP = re.compile(r"\.(?P<attribute>\w+)|\[(?P<key>[^]]+)]")


def load(path):
    """A module of this folder by its path: the tests are no package."""
    name = "emulator_" + "_".join(path.relative_to(HERE).with_suffix("").parts)
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


MUTATIONS = load(HERE / "mutations.py").MUTATIONS
FACTS = dict(load(HERE / "test_facts.py").facts_in_tests())


def row_of(table, key):
    """An item of a mapping, or the row of a table by its name or path."""
    if isinstance(table, dict):
        return table[key] if key in table else table[int(key)]
    return next(row for row in table if key == getattr(row, "name", getattr(row, "path", None)))


@contextmanager
def broken(mutation):
    """The emulator with this one thing changed."""
    module, _, path = mutation.target.partition(":")
    owner = importlib.import_module(f"proxy.emulator.{module}")
    *steps, last = list(STEP.finditer(f".{path}"))
    for step in steps:
        owner = getattr(owner, step["attribute"]) if step["attribute"] else row_of(owner, step["key"])
    name = last["attribute"]
    old = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
    new = mutation.change(old)
    assert new != old
    # Rows are frozen so that nobody changes them by mistake; here it is done on purpose.
    put = setattr if inspect.ismodule(owner) or inspect.isclass(owner) else object.__setattr__
    put(owner, name, new)
    try:
        yield
    finally:
        put(owner, name, old)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
async def test_breaking_what_a_fact_rests_on_fails_its_test(mutation, emulated):
    path, _, name = FACTS[mutation.fact].partition("::")
    test = getattr(load(HERE / path), name)
    with broken(mutation), pytest.raises(Exception):  # noqa: B017, PT012 - how and where the test fails is its own matter
        match list(inspect.signature(test).parameters):
            case ["emulated"]:
                await test(emulated)
            case _:
                async with emulated() as api:
                    await test(api)


def test_every_fact_is_broken_at_least_once():
    assert {mutation.fact for mutation in MUTATIONS} == set(FACTS)
