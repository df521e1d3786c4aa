import json
import subprocess

import pytest

from proxy.cli.clients import VARIABLES
from proxy.cli.main import run_command


def shown(capsys, *arguments, code=0):
    assert run_command(["env", *arguments]) == code
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    for name in ("SLUICEGATE_KEY", "SLUICEGATE_URL", "SLUICEGATE_LISTEN", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_every_client_is_pointed_at_the_proxy(capsys):
    assert json.loads(shown(capsys, "--json")) == {
        "OPENAI_BASE_URL": "http://127.0.0.1:8787/v1",
        "OPENAI_API_BASE": "http://127.0.0.1:8787/v1",
        "OPENAI_API_KEY": "sluicegate-local",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:8787",
        "ANTHROPIC_AUTH_TOKEN": "sluicegate-local",
        "MCP_BASE_URL": "http://127.0.0.1:8787/v1/mcp",
        "MCP_AUTHORIZATION": "Bearer sluicegate-local",
    }


@pytest.mark.parametrize("family", ["openai", "native", "mcp"])
def test_one_family_alone_can_be_asked_for(capsys, family):
    names = {row.name for row in VARIABLES if row.family == family}
    assert set(json.loads(shown(capsys, "--json", "--for", family))) == names


@pytest.mark.parametrize(
    ("arguments", "variable", "url"),
    [
        (["--port", "9"], "", "http://127.0.0.1:9"),
        (["--url", "https://box.example/"], "", "https://box.example"),
        (["--url", "https://box.example/v1"], "", "https://box.example"),
        ([], "http://box.example:1", "http://box.example:1"),
        (["--port", "9"], "http://box.example:1", "http://127.0.0.1:9"),
    ],
)
def test_the_proxy_may_be_elsewhere(capsys, monkeypatch, arguments, variable, url):
    monkeypatch.setenv("SLUICEGATE_URL", variable)
    assert json.loads(shown(capsys, "--json", "--for", "native", *arguments))["ANTHROPIC_BASE_URL"] == url


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("0.0.0.0:9000", "http://127.0.0.1:9000"),
        ("[::]:9000", "http://[::1]:9000"),
        ("[::1]:9000", "http://[::1]:9000"),
        ("box.example:9000", "http://box.example:9000"),
    ],
)
def test_where_serve_listens_in_the_same_environment_is_where_the_proxy_is(capsys, monkeypatch, listen, url):
    monkeypatch.setenv("SLUICEGATE_LISTEN", listen)
    assert json.loads(shown(capsys, "--json", "--for", "native"))["ANTHROPIC_BASE_URL"] == url
    monkeypatch.setenv("SLUICEGATE_URL", "http://said.example:1")
    assert json.loads(shown(capsys, "--json", "--for", "native"))["ANTHROPIC_BASE_URL"] == "http://said.example:1"


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "9000", "nonsense"])
def test_a_listener_that_names_no_port_is_wrong_usage(capsys, monkeypatch, listen):
    monkeypatch.setenv("SLUICEGATE_LISTEN", listen)
    assert run_command(["env"]) == 64
    assert "SLUICEGATE_LISTEN" in capsys.readouterr().err
    shown(capsys, "--port", "9000")


@pytest.mark.parametrize(
    "arguments", [["--url", "box"], ["--url", "http://a/?x=1"], ["--url", "http://a", "--port", "1"]]
)
def test_what_is_no_address_is_wrong_usage(capsys, arguments):
    shown(capsys, *arguments, code=64)


def test_a_key_that_fits_no_header_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("SLUICEGATE_KEY", "two words")
    shown(capsys, code=64)


def test_a_second_credential_of_the_same_clients_is_taken_away(capsys, monkeypatch):
    """Clients that find both send both, and different keys in one request are refused."""
    assert "unset" not in shown(capsys)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")
    assert "unset ANTHROPIC_API_KEY\n" in shown(capsys)
    assert "unset ANTHROPIC_API_KEY" not in shown(capsys, "--for", "openai")


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("sh", r"""export OPENAI_API_KEY='sk-'"'"'$(x)\"`'"""),
        ("fish", r"""set -gx OPENAI_API_KEY 'sk-\'$(x)\\"`'"""),
        ("pwsh", r"""$env:OPENAI_API_KEY = 'sk-''$(x)\"`'"""),
    ],
)
def test_a_key_is_quoted_for_its_shell(capsys, monkeypatch, shell, line):
    monkeypatch.setenv("SLUICEGATE_KEY", r"""sk-'$(x)\"`""")
    assert line in shown(capsys, "--shell", shell, "--for", "openai").splitlines()


def test_a_shell_reads_back_what_was_meant(capsys, monkeypatch):
    key = r"""sk-'$(x)\"`"""
    monkeypatch.setenv("SLUICEGATE_KEY", key)
    script = shown(capsys) + '\nprintf %s "$OPENAI_API_KEY"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == key
