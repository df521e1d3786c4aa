import json
import os
import signal
import subprocess
import sys

import pytest

from proxy.cli.clients import GATEWAY_SECRETS, child_environment
from proxy.config.settings import SETTINGS

PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def run(*command, **environ):
    return subprocess.run(
        [sys.executable, "-m", "proxy", "run", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=dict(os.environ) | environ,
    )


def test_a_command_is_pointed_at_the_proxy():
    done = run("--port", "9", "--", sys.executable, "-c", PRINT_ENVIRONMENT, SLUICEGATE_KEY="sk-team", OWN="kept")
    seen = json.loads(done.stdout)
    assert seen["OPENAI_BASE_URL"] == "http://127.0.0.1:9/v1"
    assert seen["ANTHROPIC_AUTH_TOKEN"] == "sk-team"
    assert seen["OWN"] == "kept"


def test_secrets_of_the_proxy_stay_with_the_proxy():
    secrets = dict.fromkeys(GATEWAY_SECRETS, "gk-canary-0123456789")
    done = run("--", sys.executable, "-c", PRINT_ENVIRONMENT, **secrets, ANTHROPIC_API_KEY="gk-canary-0123456789")
    assert "canary" not in done.stdout


def test_every_secret_setting_is_held_back():
    assert set(GATEWAY_SECRETS) == {row.variable for row in SETTINGS if row.secret}
    assert child_environment({"A": "b"}, "http://x", "k")["A"] == "b"


@pytest.mark.parametrize("code", [0, 1, 7, 64])
def test_the_exit_code_is_the_command_s(code):
    assert run("--", sys.executable, "-c", f"raise SystemExit({code})").returncode == code


def test_a_command_that_a_signal_ended_is_seen_so():
    done = run("--", sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert done.returncode == -signal.SIGTERM


def test_options_after_the_command_are_its_own():
    done = run(sys.executable, "-c", "import sys; print(sys.argv[1:])", "--port", "--help")
    assert done.stdout == "['--port', '--help']\n"


def test_a_command_that_is_not_there_is_said_so():
    done = run("--", "no-such-command-here")
    assert (done.returncode, done.stderr) == (127, "no-such-command-here: not found\n")
