"""aider completes its turns through the proxy, set up as README.md says."""

import pytest

from tests.clients.recipes import follow
from tests.clients.roster import AIDER_HOME
from tests.clients.turns import QUESTION, statuses

CHAT = "POST /v1/gateway/chat/completions/"
PRICE_LIST = "raw.githubusercontent.com:443"


@pytest.fixture
def aider(person, needs):
    """One turn of aider in a folder that is no repository."""
    needs("aider")
    follow(".aider.conf.yml", person.work, person.url)

    # It asks at temperature 0, so a question that was answered before would be answered by the cache.
    asked = f"{QUESTION} It is for {person.home.name}."

    def turn():
        flags = ("--no-git", "--no-pretty", "--yes-always", "--message", asked)
        done = person.runs(str(AIDER_HOME / "bin" / "aider"), *flags, LITELLM_LOCAL_MODEL_COST_MAP="True")
        assert done.code == 0, done.err
        return done.out

    return turn


def test_a_turn_is_one_call(aider, gateway, strangers):
    assert "received. Cost: " in aider()
    assert gateway.targets() == [CHAT]
    assert set(strangers.hosts) <= {PRICE_LIST}


def test_one_refusal_of_pace_is_waited_out(aider, gateway):
    gateway.arm("429", retry=1, times=1)
    assert "received. Cost: " in aider()
    assert statuses(gateway) == [429, 200]


def test_an_empty_balance_is_said_so(aider, gateway):
    """Only one refusal here: it would go on for a minute."""
    gateway.arm("402", times=1)
    assert "Credit balance exhausted" in aider()
    assert statuses(gateway) == [402, 200]


@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
def test_one_broken_stream_is_said_so_and_asked_again(aider, gateway, fault):
    gateway.arm(fault, after=4, times=1)
    assert "answer broke off before its end." in aider()
    assert statuses(gateway) == [200, 200]
