"""opencode completes its turns through the proxy, set up as README.md says."""

import pytest

from tests.clients.recipes import follow
from tests.clients.roster import PACKAGES
from tests.clients.turns import QUESTION, statuses

CHAT = "POST /v1/gateway/chat/completions/"


@pytest.fixture
def opencode(person, needs):
    """One turn of opencode; a session with a title is one call, without one it asks for it."""
    needs("opencode")
    follow("opencode.json", person.work, person.url)

    def turn(ask=QUESTION, title=("--title", "water")):
        flags = ("--format", "json", *title)
        return person.runs(str(PACKAGES / ".bin" / "opencode"), "run", *flags, ask, OPENCODE_DISABLE_MODELS_FETCH="1")

    return turn


def said(turn):
    assert turn.code == 0, turn.out + turn.err
    return "".join(event["part"]["text"] for event in turn.events if event["type"] == "text")


def test_a_turn_is_one_call_and_one_for_its_title(opencode, gateway, strangers):
    """Nobody else is asked, but for a package of its own."""
    assert said(opencode(title=()))
    assert gateway.targets() == [CHAT] * 2
    assert all(host.startswith("registry.") for host in strangers.hosts), strangers.hosts


def test_a_tool_is_run_and_its_result_taken_back(opencode, gateway):
    """The emulated model calls a tool that is named to it; there is no such file, and it hears so."""
    assert said(opencode("read it"))
    assert gateway.targets() == [CHAT] * 2


def test_one_refusal_of_pace_is_waited_out(opencode, gateway):
    gateway.arm("429", retry=1, times=1)
    assert said(opencode())
    assert statuses(gateway) == [429, 200]


def test_an_empty_balance_is_said_so_and_asked_about_once(opencode, gateway):
    gateway.empty()
    turn = opencode()
    (failed,) = [event["error"]["data"] for event in turn.events if event["type"] == "error"]
    assert (failed["message"], failed["statusCode"]) == ("Credit balance exhausted", 402)
    assert statuses(gateway) == [402]


@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
def test_one_broken_stream_is_asked_again(opencode, gateway, fault):
    """Half an answer is not shown for a whole one: what is printed is the second."""
    gateway.arm(fault, after=4, times=1)
    assert said(opencode()).endswith(".")
    assert statuses(gateway) == [200, 200]
