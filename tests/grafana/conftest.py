"""Prometheus and its promtool, as Debian's package `prometheus` has them."""

import shutil

import pytest


@pytest.fixture(scope="session")
def promtool() -> str:
    return _program("promtool")


@pytest.fixture(scope="session")
def prometheus() -> str:
    return _program("prometheus")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is missing: install Debian's package prometheus; dashboard and rules are NOT tried")
    return found
