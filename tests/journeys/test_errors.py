"""Every sentence of the gateway's error tables is in the text of the exception that the user of an SDK sees."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest

from tests.journeys.programs import proxying

SAID = [{"role": "user", "content": "hi"}]
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Clients:
    """Both SDKs, without repeats."""

    openai: openai.OpenAI
    anthropic: anthropic.Anthropic


@contextmanager
def clients_of(url: str, key: str = "anything") -> Iterator[Clients]:
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as first,
        anthropic.Anthropic(base_url=url, auth_token=key, max_retries=0) as second,
    ):
        yield Clients(first, second)


@pytest.fixture(scope="session")
def clients(url: str) -> Iterator[Clients]:
    with clients_of(url) as found:
        yield found


Ask = Callable[[Clients, dict[str, Any]], Any]


def chat(clients: Clients, body: dict[str, Any]) -> Any:
    return clients.openai.chat.completions.create(**{"model": "gpt-4o", "messages": SAID, **body})


def responses(clients: Clients, body: dict[str, Any]) -> Any:
    return clients.openai.responses.create(**{"model": "gpt-4o", "input": SAID, **body})


def messages(clients: Clients, body: dict[str, Any]) -> Any:
    asked = {"model": "claude-opus-x", "max_tokens": 64, "messages": SAID, **body}
    return clients.anthropic.messages.create(**asked)


@contextmanager
def refused(status: int) -> Iterator[pytest.ExceptionInfo[Any]]:
    """The SDK raises its exception for this status."""
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as raised:
        yield raised
    assert raised.value.status_code == status


@dataclass(frozen=True)
class Named:
    """A named message. body: what of the request brings it about; fault: the fault that does."""

    status: int
    sentence: str
    asks: tuple[Ask, ...]
    body: dict[str, Any] | None = None
    fault: str = ""


ALL = (chat, responses, messages)

# fmt: off
NAMED = [
    Named(404, "Model 'nope' not found",                                     ALL,          {"model": "nope"}),
    Named(404, "Model 'gpt-retired' not found",                            (chat, responses), {"model": "gpt-retired"}),
    Named(404, "Model 'image-lab-large' not found",                          (chat,),      {"model": "image-lab-large"}),
    Named(400, "Model 'gpt-x-codex' not found",                              (chat,),      {"model": "gpt-x-codex"}),
    Named(400, "Model 'gpt-4o' is not an Anthropic model",                   (messages,),  {"model": "gpt-4o"}),
    Named(400, "Model 'claude-opus-x' is not an OpenAI model",             (responses,), {"model": "claude-opus-x"}),
    Named(403, "Model 'gpt-free' is not available through the Gateway API.", (chat, responses), {"model": "gpt-free"}),
    Named(403, "is not enabled for your tenant.",                            ALL, fault="403"),
    Named(402, "Credit balance exhausted",                                   ALL, fault="402"),
    Named(422, "body.messages: Field required",                              ALL, fault="422"),
    Named(429, "Rate limit exceeded",                                        ALL, fault="429"),
    Named(500, "Internal server error",                                      ALL, fault="500"),
    Named(503, "Service is temporarily stopped for maintenance",             ALL, fault="503"),
    Named(403, "error code: 1010",                                           ALL, fault="1010"),
]
# fmt: on
ROWS = [pytest.param(row, ask, id=f"{ask.__name__}-{row.status}-{row.sentence}") for row in NAMED for ask in row.asks]


@pytest.mark.parametrize(("row", "ask"), ROWS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_gateways_sentence_is_in_the_exception(clients, gateway, row, ask, stream):
    if row.fault:
        gateway.arm(row.fault)
    with refused(row.status) as raised:
        ask(clients, {**(row.body or {}), "stream": stream})
    assert row.sentence in str(raised.value)
    assert len(gateway.seen()) == 1, "no repeats"


def test_a_model_that_is_not_listed_is_told_by_its_name(clients):
    with refused(404) as raised:
        clients.openai.models.retrieve("nope/x")
    assert "Model 'nope/x' not found" in str(raised.value)
    with refused(404) as raised:
        clients.anthropic.models.retrieve("nope/x")
    assert "Model 'nope/x' not found" in str(raised.value)


@pytest.mark.parametrize("ask", ALL)
def test_a_body_that_is_too_large_is_refused_before_anything_is_sent(clients, gateway, ask):
    """The refusal comes while the client is still sending, and must not be lost with the connection."""
    words = [{"role": "user", "content": "x" * (26 * MEBIBYTE)}]
    with refused(413) as raised:
        ask(clients, {"input" if ask is responses else "messages": words})
    assert "Request body too large. Maximum size is 25MB." in str(raised.value)
    assert not gateway.seen()


def test_a_gateway_key_that_is_not_valid_is_told_to_whom_it_belongs(home, gateway):
    """Callers bring their own keys here: what the gateway says of one is for its owner."""
    with proxying(home, gateway.url, "--credential", "caller") as url, clients_of(url, "sk-emu-revoked") as clients:
        for ask in ALL:
            with refused(401) as raised:
                ask(clients, {})
            assert "Invalid API key" in str(raised.value)


def test_a_gateway_that_cannot_be_reached_is_said_so(home):
    with proxying(home, "http://127.0.0.1:1") as url, clients_of(url) as clients:
        for ask in ALL:
            with refused(502) as raised:
                ask(clients, {})
            assert "The gateway could not be reached; nothing was sent." in str(raised.value)
