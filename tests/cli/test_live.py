"""Commands that watch: each asks a running proxy, and says so where none runs."""

import json
import re
from urllib.request import Request, urlopen

import pytest

from proxy.cli.main import run_command
from proxy.cli.spark import bar, spark
from tests.cli.servers import served

POLICIES = """
teams:
  red: { keys: [] }
open_team: red
budgets:
  - { name: day, credits: 100, per: total, match: { team: red } }
prices:
  - { models: "image-*", per_image: 60 }
"""


@pytest.fixture
def proxy(bare):
    """Nothing is behind it, so that every call that is sent fails."""
    (bare / "policies").mkdir()
    (bare / "policies" / "a.yaml").write_text(POLICIES)
    with served("policies", auth="open") as one:
        yield one


def call(proxy, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = Request(proxy.proxy.data_url + path, data, {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.status
    except OSError as error:
        return getattr(error, "code", None)


def run(proxy, *arguments):
    return run_command([*arguments, "--admin-listen", proxy.admin])


def test_status_says_how_it_is(proxy, capsys):
    assert run(proxy, "status") == 0
    said = capsys.readouterr().out
    assert "No budget of 1 team runs out before it reopens." in said
    assert re.search(r"^red +fine +day +░{12} +100 ", said, re.MULTILINE)
    assert "0 calls run, 0 wait" in said


def test_status_fails_while_no_new_work_is_taken(proxy, capsys):
    proxy.within(lambda: setattr(proxy.proxy.parts.state, "key_refused", True))
    assert run(proxy, "status") == 1
    assert "The gateway refuses the proxy's key" in capsys.readouterr().out


def test_tail_prints_the_last_requests_with_their_reasons(proxy, capsys):
    assert call(proxy, "/v1/images/generate", {"model": "image-lab-large", "prompt": "x", "number_of_images": 2}) == 402
    assert call(proxy, "/-/budget") == 200
    assert run(proxy, "tail", "--no-follow") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert re.match(
        r"\d\d:\d\d:\d\d red images image-lab-large 402 refused .*– The budget day is 100 credits in all", first
    )
    assert " red budget - 200 " in second
    assert run(proxy, "tail", "--no-follow", "--status", "402", "--json") == 0
    (one,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert one["reason"] == "request_over_budget"
    assert run(proxy, "tail", "--no-follow", "-n", "1") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_top_shows_teams_and_requests_once_where_there_is_no_terminal(proxy, capsys):
    call(proxy, "/-/budget")
    assert run(proxy, "top") == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "0 calls run, 0 wait" in said
    assert " red budget - 200 " in said
    assert run(proxy, "top", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"overview", "upstream", "requests"}


@pytest.mark.parametrize("command", ["status", "top", "tail"])
def test_where_no_proxy_runs_it_says_so(bare, capsys, command):
    assert run_command([command]) == 1
    assert "no proxy runs at 127.0.0.1:1" in capsys.readouterr().err


def test_figures_become_blocks():
    assert spark([0, 1, 4, 8]) == " ▁▄█"
    assert spark([]) == ""
    assert spark([0.0, 0.0]) == "  "
    assert bar(0.5, 4) == "██░░"
    assert bar(7, 4) == "████"
