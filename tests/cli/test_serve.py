import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from proxy.cli.serve import started
from proxy.config.sources import load
from proxy.core.policy import DEFAULT_POLICY, KeyRef, Policy, Team

KEY = "sk-emu-alpha-1"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A folder without settings and policies, and nothing in the environment but what a test says."""
    for name in list(os.environ):
        if name.startswith("SLUICEGATE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    monkeypatch.setenv("SLUICEGATE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def a_process(*arguments, lines, **environ):
    """A command that is ready when it has printed so many lines."""
    with subprocess.Popen(
        [sys.executable, "-m", "proxy", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | environ,
    ) as process:
        shown = "".join(process.stdout.readline() for _ in range(lines))
        try:
            assert shown, process.stderr.read()
            yield process, shown
        finally:
            process.kill()


@pytest.fixture(scope="module")
def gateway():
    with a_process("emulate", "--listen", "127.0.0.1:0", lines=1) as (_, shown):
        yield re.search(r"http://\S+?(?=,|\s)", shown)[0]


def serve(gateway, *arguments, lines=5, **environ):
    return a_process(
        "serve", "--upstream", gateway, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", *arguments,
        lines=lines, SLUICEGATE_UPSTREAM_KEY=KEY, **environ,
    )  # fmt: skip


def refused(*arguments):
    """A start that fails."""
    return subprocess.run(
        [sys.executable, "-m", "proxy", "serve", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=dict(os.environ) | {"SLUICEGATE_UPSTREAM_KEY": KEY},
    )


def models(url, key="sk-none"):
    request = Request(f"{url}/v1/models", headers={"Authorization": f"Bearer {key}"})
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


def test_what_serves_says_where_and_for_whom():
    settings = load({"upstream": "https://g.example"}, {"SLUICEGATE_UPSTREAM_KEY": "gk-0123456789"}, None)
    teams = {"search": Team("search", (KeyRef("ci", bytes(32)),)), "batch": Team("batch")}
    assert started(settings, Policy(teams), "http://127.0.0.1:8787", "http://127.0.0.1:8788") == [
        "sluicegate listens on http://127.0.0.1:8787",
        "  admin     http://127.0.0.1:8788",
        "  gateway   https://g.example, credential proxy",
        "  auth      keys: 1 virtual key known",
        "  teams     batch, search",
    ]
    everybody = load({"upstream": "https://g.example", "auth": "open"}, {}, None)
    assert (
        started(everybody, DEFAULT_POLICY, "", "")[3] == "  auth      open: no key is asked, everybody is team default"
    )


def test_it_serves_until_it_is_told_to_stop(gateway):
    with serve(gateway, "--auth", "open") as (process, shown):
        url = re.search(r"listens on (\S+)", shown)[1]
        assert models(url) == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_virtual_keys_of_the_policies_are_asked_for(gateway, folder):
    (folder / "policies").mkdir()
    digest = hashlib.sha256(b"sk-mine").hexdigest()
    (folder / "policies" / "a.yaml").write_text(f'teams: {{ red: {{ keys: [{{ id: me, sha256: "{digest}" }}] }} }}')
    with serve(gateway) as (_, shown):
        url = re.search(r"listens on (\S+)", shown)[1]
        assert (models(url, "sk-mine"), models(url, "sk-other")) == (200, 401)


def test_the_log_tells_each_request_and_no_secret(gateway):
    with serve(gateway, "--auth", "open") as (process, shown):
        models(re.search(r"listens on (\S+)", shown)[1], "sk-canary-0123456789")
        process.send_signal(signal.SIGTERM)
        logged = process.stderr.read()
    (request,) = [event for event in map(json.loads, logged.splitlines()) if event["event"] == "request"]
    assert (request["route"], request["status"], request["team"]) == ("models", 200, "default")
    assert KEY not in shown + logged
    assert "canary" not in logged


def test_policies_that_are_wrong_stop_the_start(gateway, folder):
    (folder / "policies").mkdir()
    (folder / "policies" / "a.yaml").write_text("expires_aftr: 2h")
    done = refused("--upstream", gateway)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "policies/a.yaml:1:1: expires_aftr: is not known; did you mean expires_after?\n1 problem found.\n"
    )


def test_a_taken_port_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = refused("--upstream", "http://127.0.0.1:1", "--listen", address, "--admin-listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "address already in use; see `sluicegate doctor`" in done.stderr
