"""The cache by command, with a proxy through it and without one on its file."""

import json

import httpx2
import pytest

from proxy.cli.main import run_command
from tests.cli.servers import served

SURE = {"model": "gpt-4o-mini", "temperature": 0, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
def folder(bare):
    (bare / "policies").mkdir()
    return bare


@pytest.fixture
def shown(capsys):
    def run(*arguments, code=0):
        assert run_command(list(arguments)) == code, capsys.readouterr()
        return capsys.readouterr().out

    return run


def told(shown, *arguments):
    return json.loads(shown(*arguments, "--json"))


def ask(url, **more):
    answer = httpx2.post(f"{url}/v1/chat/completions", json={**SURE, **more}, timeout=60)
    assert answer.status_code == 200, answer.text
    return "hit" in answer.headers["Cache-Status"]


def test_a_cache_is_looked_at_and_purged_while_it_serves_and_at_rest(shown, monkeypatch):
    with served("policies", emulate=True, auth="open") as one:
        monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", one.admin)
        url = one.proxy.data_url
        assert [ask(url), ask(url), ask(url, model="gpt-4o")] == [False, True, False]
        assert told(shown, "cache", "stats")["entries"] == 2
        listed = told(shown, "cache", "list")["entries"]
        assert {(entry["team"], entry["route"], entry["model"]) for entry in listed} == {
            ("default", "chat", "gpt-4o-mini"),
            ("default", "chat", "gpt-4o"),
        }
        assert "gpt-4o-mini" in shown("cache", "list", "--count", "5")
        assert shown("cache", "purge", "--model", "gpt-4o") == "1 answers purged\n"
        assert shown("cache", "purge", "--older-than", "1h") == "0 answers purged\n"
        assert [ask(url, model="gpt-4o"), ask(url)] == [False, True]
    monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", "127.0.0.1:1")
    assert shown("cache", "stats").startswith("2 answers, ")
    assert shown("cache", "purge", "--all") == "2 answers purged\n"
    assert shown("cache", "list") == "Nothing.\n"


def test_a_purge_says_which(shown, capsys):
    assert run_command(["cache", "purge"]) == 64
    assert run_command(["cache", "purge", "--all", "--team", "red"]) == 64
    assert run_command(["cache", "purge", "--older-than", "yesterday"]) == 1
    assert "older_than" in capsys.readouterr().err
