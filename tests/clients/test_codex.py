"""Codex completes its turns through the proxy, set up as README.md says."""

import pytest

from tests.clients.recipes import follow
from tests.clients.roster import PACKAGES
from tests.clients.turns import BROKE, QUESTION, statuses

RESPONSES = "POST /v1/gateway/responses/"
TIMES_MAX = 6
"""How often a refused call may reach the gateway: README.md allows two attempts more, each of two requests."""


@pytest.fixture
def codex(person, needs):
    """One turn of Codex: `codex exec` in a folder that is no repository."""
    needs("codex")
    follow("~/.codex/config.toml", person.home, person.url)

    def turn(ask=QUESTION, *flags, **environ):
        fixed = ("--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only")
        return person.runs(str(PACKAGES / ".bin" / "codex"), "exec", *fixed, *flags, ask, **environ)

    return turn


def said(turn):
    """The last message of the agent."""
    assert turn.code == 0, turn.out + turn.err
    assert turn.events[-1]["type"] == "turn.completed"
    items = [event["item"] for event in turn.events if event["type"] == "item.completed"]
    return [item["text"] for item in items if item["type"] == "agent_message"][-1]


def failure(turn):
    assert turn.code == 1
    assert turn.events[-1]["type"] == "turn.failed"
    return turn.events[-1]["error"]["message"]


def test_a_turn_is_one_call(codex, gateway):
    assert said(codex())
    (seen,) = gateway.seen()
    assert f"{seen.method} {seen.target}" == RESPONSES
    assert seen.headers["authorization"] == "Bearer sk-emu-alpha-1"


def test_what_it_tells_of_this_machine_in_headers_stays_here(codex, gateway):
    """Its own headers name folders and ids of the session."""
    assert said(codex())
    told = {
        name for name in gateway.seen()[0].headers if name.startswith(("x-codex", "session", "thread", "originator"))
    }
    assert not told


def test_nobody_else_is_asked(codex, strangers):
    assert said(codex())
    assert not strangers.hosts


def test_a_tool_is_run_and_its_result_taken_back(codex, gateway):
    """The emulated model calls a tool that is named to it; there is no such picture, and it hears so."""
    assert said(codex("Look at it with view_image"))
    assert gateway.targets() == [RESPONSES] * 2


@pytest.mark.parametrize("fault", ["429", "402", "503"])
def test_one_refusal_is_waited_out(codex, gateway, fault):
    gateway.arm(fault, retry=1, times=1)
    assert said(codex())
    assert statuses(gateway) == [int(fault), 200]


def test_an_empty_balance_is_said_so_and_not_stormed(codex, gateway):
    gateway.empty()
    assert "Credit balance exhausted" in failure(codex())
    assert set(statuses(gateway)) == {402}
    assert len(gateway.seen()) <= TIMES_MAX


@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
def test_one_broken_stream_is_asked_again(codex, gateway, fault):
    gateway.arm(fault, after=6, times=1)
    turn = codex()
    assert said(turn)
    assert BROKE in turn.out
    assert statuses(gateway) == [200, 200]


def test_a_gateway_under_maintenance_is_not_stormed(codex, gateway):
    """For the code of an overload it has words of its own, whatever the gateway says."""
    gateway.arm("503", retry=1)
    assert failure(codex()) == "Selected model is at capacity. Please try a different model."
    assert set(statuses(gateway)) == {503}
    assert len(gateway.seen()) <= TIMES_MAX


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("404", "Model 'gpt-x-codex' not found"),
        ("422", "body.messages: Field required"),
        ("1010", "error code: 1010"),
    ],
)
def test_the_gateways_sentence_is_in_the_message(codex, gateway, fault, sentence):
    gateway.arm(fault)
    assert sentence in failure(codex())
    assert len(gateway.seen()) <= TIMES_MAX


def test_its_built_in_provider_works_too(codex, person, gateway):
    """It tries WebSocket first. 426 makes it give that up at once; of any other status it makes seven tries."""
    flags = ("-c", 'model_provider="openai"', "-c", f'openai_base_url="{person.url}/v1"')
    turn = codex(QUESTION, *flags, CODEX_API_KEY="anything")
    assert said(turn)
    assert turn.err.count("failed to connect to Responses WebSocket") == 1
    assert gateway.targets() == [RESPONSES]
