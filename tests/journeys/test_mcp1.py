"""The older MCP client line, of which a session dies with any status but 200, 202 and 404: it never sees another."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.programs import environment
from tests.journeys.test_mcp import REFUSALS, SUITES

Ask = Callable[..., dict[str, Any]]

SCRIPT = Path(__file__).parent / "mcp1_client.py"


@pytest.fixture(scope="session")
def interpreter() -> str:
    """A Python that has the older line; it cannot be installed beside the newer one. `make test` sees to it."""
    given = os.environ.get("MCP1_PYTHON")
    assert given, "MCP1_PYTHON must name a Python with mcp<2; `make test` makes one and sets it"
    return given


@pytest.fixture
def connected(interpreter: str, home: Path, url: str) -> Iterator[Callable[..., list[Ask]]]:
    """Start a client for each suite; each asks as long as the test lasts, on one session."""
    started: list[subprocess.Popen[str]] = []

    def connect(*suites: str) -> list[Ask]:
        started.extend(
            subprocess.Popen(
                [interpreter, str(SCRIPT), f"{url}/v1/mcp/{suite}".rstrip("/")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=home,
                env=environment(home),
            )
            for suite in suites
        )
        asks = [partial(asked, process) for process in started]
        assert [ask("connect")["server"] for ask in asks] == [suite or "sluicegate" for suite in suites]
        return asks

    yield connect
    for process in started:
        process.communicate(timeout=60)
    assert {process.returncode for process in started} == {0}


def asked(process: subprocess.Popen[str], *words: Any) -> dict[str, Any]:
    """Say one command and read what came of it."""
    process.stdin.write(json.dumps(words) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, f"the session died on {words}: {process.stderr.read()}"
    return json.loads(line)


def test_every_suite_is_connected_listed_and_called(connected, gateway):
    """Its first request has the id 0."""
    for ask, (tool, arguments, said) in zip(connected(*SUITES), SUITES.values(), strict=True):
        assert tool in ask("list")["tools"]
        assert ask("call", tool, arguments) == {"text": said, "failed": False}
        assert ask("ping") == {}
    assert len(gateway.seen()) == 3 * len(SUITES), "ping and notifications stay here"


def test_all_suites_are_one_server(connected, gateway):
    (ask,) = connected("")
    assert {f"{suite}__{tool}" for suite, (tool, _, _) in SUITES.items()} <= {*ask("list")["tools"]}
    gateway.arm("503", times=1)
    assert ask("call", "calc__add", {"a": 1, "b": 2})["code"] == -32005
    for suite, (tool, arguments, said) in SUITES.items():
        assert ask("call", f"{suite}__{tool}", arguments) == {"text": said, "failed": False}


def test_a_refused_call_is_told_and_the_next_one_works(connected, gateway):
    (ask,) = connected("calc")
    for fault, code, sentence in REFUSALS:
        gateway.arm(fault, times=1)
        told = ask("call", "add", {"a": 1, "b": 2})
        assert (told["code"], told["error"]) == (code, sentence)
        assert ask("call", "add", {"a": 1, "b": 2}) == {"text": "3", "failed": False}


def test_a_gateway_that_fails_is_told_and_the_next_call_works(connected, gateway):
    (ask,) = connected("calc")
    for fault in ("reset-before-head", "html", "html200", "empty-body", "redirect"):
        gateway.arm(fault, times=1)
        assert ask("call", "add", {"a": 1, "b": 2})["code"] == -32004, fault
        assert ask("call", "add", {"a": 1, "b": 2}) == {"text": "3", "failed": False}
