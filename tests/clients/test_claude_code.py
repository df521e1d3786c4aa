"""Claude Code completes its turns through the proxy, set up as README.md says.

The first request of a session holds a message of the role `system`, which the emulated gateway refuses as its
documentation does not know it; Claude Code then asks again without. So a turn is one call that is paid, after one that
is not.
"""

import pytest

from tests.clients.recipes import follow
from tests.clients.roster import PACKAGES
from tests.clients.turns import BROKE, QUESTION, statuses

MESSAGES = "POST /v1/gateway/partner/v1/messages/"
COUNT = "POST /v1/gateway/partner/v1/messages/count_tokens/"


@pytest.fixture
def claude(person, needs):
    """One turn of Claude Code: `claude -p`, by default without tools; gives what it reports of it."""
    needs("claude")
    follow("~/.claude/settings.json", person.home, person.url)

    def turn(ask=QUESTION, tools="", **environ):
        flags = ("--output-format", "json", "--no-session-persistence", "--tools", tools)
        done = person.runs(str(PACKAGES / ".bin" / "claude"), "-p", ask, *flags, **environ)
        (report,) = done.events
        assert done.code == int(report["is_error"]), done.err
        return report

    return turn


def said(report):
    assert not report["is_error"], report["result"]
    return report["result"]


def failure(report):
    assert report["is_error"], report["result"]
    return report["result"]


def test_a_turn_is_paid_once(claude, gateway):
    assert said(claude())
    assert statuses(gateway) == [400, 200]
    assert set(gateway.targets()) == {MESSAGES}
    for seen in gateway.seen():
        assert seen.headers["authorization"] == "Bearer sk-emu-alpha-1"
        assert seen.headers["partner-version"] == "2023-06-01"
        assert "claude-code-20250219" in seen.headers["partner-beta"]


def test_what_it_tells_of_this_machine_in_headers_stays_here(claude, gateway):
    assert said(claude())
    told = {
        name
        for seen in gateway.seen()
        for name in seen.headers
        if name.startswith(("x-claude", "x-stainless", "x-app"))
    }
    assert not told


def test_nobody_else_is_asked(claude, strangers):
    assert said(claude())
    assert not strangers.hosts


def test_a_tool_is_run_and_its_result_taken_back(claude, gateway):
    """The emulated model calls a tool that is named to it; there is no such file, and it hears so."""
    report = claude("Read it", tools="Read")
    assert said(report)
    assert report["num_turns"] == 2
    assert statuses(gateway) == [400, 200, 200]


def test_one_refusal_of_pace_is_waited_out(claude, gateway):
    gateway.arm("429", retry=1, times=1)
    assert said(claude())
    assert statuses(gateway) == [429, 400, 200]


def test_an_empty_balance_is_asked_about_once(claude, gateway):
    gateway.arm("402")
    report = claude()
    assert failure(report) == "API Error: 402 Credit balance exhausted"
    assert report["api_error_status"] == 402
    assert statuses(gateway) == [402]


@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
def test_one_broken_stream_is_asked_again_and_paid_twice(claude, gateway, fault):
    """That is its own doing; the proxy must not hide the break, or half an answer would stand."""
    gateway.arm(fault, after=4, times=2)
    assert said(claude())
    assert statuses(gateway) == [400, 200, 200]


def test_one_broken_stream_ends_the_turn_where_a_repeat_is_not_wanted(claude, gateway):
    gateway.arm("cut", after=4, times=2)
    assert BROKE in failure(claude(CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK="1"))
    assert statuses(gateway) == [400, 200]


def test_a_gateway_under_maintenance_is_not_stormed(claude, gateway):
    gateway.arm("503", retry=1)
    assert "Service is temporarily stopped for maintenance" in failure(claude())
    assert statuses(gateway) == [503] * 3


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("1010", "error code: 1010"),
        ("422", "body.messages: Field required"),
        # It has words of its own for this one, whatever the gateway says.
        ("404", "There's an issue with the selected model (claude-opus-x)."),
    ],
)
def test_the_gateways_sentence_is_in_the_message(claude, gateway, fault, sentence):
    gateway.arm(fault)
    assert sentence in failure(claude())
    assert len(gateway.seen()) <= 3


def test_tokens_of_the_context_are_counted_without_a_charge(claude, gateway):
    assert "Context Usage" in said(claude("/context"))
    assert set(gateway.targets()) == {COUNT}
    assert set(statuses(gateway)) == {200}


def test_models_are_found_where_it_is_told_to_look(claude, gateway):
    assert said(claude(CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY="1"))
    assert "GET /v1/gateway/partner/v1/models/?limit=1000" in gateway.targets()
