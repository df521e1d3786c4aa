"""A stream that does not come to its end is an error in every SDK, never a short answer."""

import json
from typing import Any

import anthropic
import openai
import pytest

SAID = [{"role": "user", "content": "Which way does the water go?"}]
CHAT = {"model": "gpt-4o", "messages": SAID}
INPUT = {"model": "gpt-4o", "input": SAID}
MESSAGE = {"model": "claude-opus-x", "max_tokens": 64, "messages": SAID}
BROKE = "The gateway's answer broke off before its end."
TOLD = "upstream provider error"

BREAKS = pytest.mark.parametrize(
    ("fault", "parts", "sentence"),
    [
        ("cut", {"after": 3}, BROKE),
        ("close", {"after": 3}, BROKE),
        ("clean-cut", {"after": 3}, BROKE),
        ("error-midway", {}, TOLD),
        ("error-midway", {"form": "detail"}, TOLD),
        ("error-midway", {"form": "error"}, TOLD),
        ("error-midway", {"form": "event"}, TOLD),
    ],
)


@pytest.fixture(scope="session")
def openai_client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="anything", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def anthropic_client(url):
    with anthropic.Anthropic(base_url=url, api_key="anything", max_retries=0) as client:
        yield client


def drawn(events: Any) -> None:
    for _ in events:
        pass


@BREAKS
def test_a_chat_that_breaks_off_raises(openai_client, gateway, fault, parts, sentence):
    gateway.arm(fault, **parts)
    with pytest.raises(openai.APIError, match=sentence):
        drawn(openai_client.chat.completions.create(**CHAT, stream=True))
    with openai_client.chat.completions.stream(**CHAT) as stream, pytest.raises(openai.APIError, match=sentence):
        stream.get_final_completion()


@BREAKS
def test_a_message_that_breaks_off_raises(anthropic_client, gateway, fault, parts, sentence):
    gateway.arm(fault, **parts)
    with pytest.raises(anthropic.APIStatusError, match=sentence):
        drawn(anthropic_client.messages.create(**MESSAGE, stream=True))
    with anthropic_client.messages.stream(**MESSAGE) as stream, pytest.raises(anthropic.APIStatusError, match=sentence):
        stream.get_final_message()


@BREAKS
def test_a_response_that_breaks_off_fails(openai_client, gateway, fault, parts, sentence):
    """In this family the end of a response is an event; the SDK raises where it is asked for the whole of it."""
    gateway.arm(fault, **parts)
    with openai_client.responses.stream(**INPUT) as stream, pytest.raises((openai.APIError, RuntimeError)):
        stream.get_final_response()
    try:
        *_, last = openai_client.responses.create(**INPUT, stream=True)
    except openai.APIError as error:
        assert sentence in str(error)  # noqa: PT017 - either way of telling will do
    else:
        assert last.type == "response.failed"
        assert last.response.error.message == sentence


@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
def test_half_an_event_is_no_quiet_end_either(openai_client, anthropic_client, gateway, fault):
    """What the gateway sent is passed on to the last byte; half an event is no JSON, and the SDKs say so."""
    gateway.arm(fault, bytes=300)
    with openai_client.chat.completions.create(**CHAT, stream=True) as chunks, pytest.raises(json.JSONDecodeError):
        drawn(chunks)
    with openai_client.responses.create(**INPUT, stream=True) as events, pytest.raises(json.JSONDecodeError):
        drawn(events)
    with anthropic_client.messages.create(**MESSAGE, stream=True) as events, pytest.raises(json.JSONDecodeError):
        drawn(events)


@BREAKS
@pytest.mark.parametrize("family", ["chat", "message"])
async def test_asynchronous_clients_raise_too(url, gateway, family, fault, parts, sentence):
    gateway.arm(fault, **parts)
    if family == "chat":
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="anything", max_retries=0) as client:
            stream = await client.chat.completions.create(**CHAT, stream=True)
            with pytest.raises(openai.APIError, match=sentence):
                [chunk async for chunk in stream]
    else:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="anything", max_retries=0) as client:
            stream = await client.messages.create(**MESSAGE, stream=True)
            with pytest.raises(anthropic.APIStatusError, match=sentence):
                [event async for event in stream]
