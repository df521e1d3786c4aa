"""The native vendor's SDK works at every base URL people give it, with its key in either place."""

from collections.abc import Iterator

import pytest
from anthropic import Anthropic, APIStatusError, AsyncAnthropic

MODEL = "claude-opus-x"
ASK = {"model": MODEL, "max_tokens": 8000, "messages": [{"role": "user", "content": "Which way does the water go?"}]}
WEATHER = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
MESSAGES = "POST /v1/gateway/partner/v1/messages/"


@pytest.fixture(scope="session", params=["", "/v1/gateway/partner", "/v1", "/anthropic"])
def client(request: pytest.FixtureRequest, url: str) -> Iterator[Anthropic]:
    with Anthropic(base_url=url + request.param, auth_token="anything", max_retries=0) as anthropic:
        yield anthropic


def kinds(blocks) -> list[str]:
    return [block.type for block in blocks]


def test_a_message_is_answered(client, gateway):
    answer = client.messages.create(**ASK)
    assert kinds(answer.content) == ["text"]
    assert answer.stop_reason == "end_turn"
    assert answer.usage.input_tokens > 0 < answer.usage.output_tokens
    assert gateway.targets() == [MESSAGES]


def test_a_stream_adds_up_to_the_whole_message(client):
    whole = client.messages.create(**ASK)
    with client.messages.stream(**ASK) as stream:
        said = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert said == final.content[0].text == whole.content[0].text
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_a_raw_stream_comes_in_the_vendors_order(client):
    events = kinds(client.messages.create(**ASK, stream=True))
    assert events[:2] == ["message_start", "content_block_start"]
    assert events[-3:] == ["content_block_stop", "message_delta", "message_stop"]


@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}])
def test_thinking_comes_before_the_text(client, thinking):
    whole = client.messages.create(**ASK, thinking=thinking)
    assert kinds(whole.content) == ["thinking", "text"]
    with client.messages.stream(**ASK, thinking=thinking) as stream:
        final = stream.get_final_message()
    assert [block.to_dict() for block in final.content] == [block.to_dict() for block in whole.content]


def test_a_tool_is_used_and_its_result_taken_back(client):
    asked = [{"role": "user", "content": "Ask weather for it."}]
    answer = client.messages.create(**{**ASK, "messages": asked}, tools=[WEATHER])
    assert answer.stop_reason == "tool_use"
    (use,) = answer.content
    with client.messages.stream(**{**ASK, "messages": asked}, tools=[WEATHER]) as stream:
        assert stream.get_final_message().content[0].input == use.input
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "rain"}
    told = [*asked, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    assert client.messages.create(**{**ASK, "messages": told}, tools=[WEATHER]).stop_reason == "end_turn"


def test_tokens_are_counted_as_they_are_charged(client, gateway):
    fresh = {"Cache-Control": "no-store"}
    counted = client.messages.count_tokens(model=MODEL, messages=ASK["messages"], extra_headers=fresh)
    assert counted.input_tokens == client.messages.create(**ASK).usage.input_tokens
    assert gateway.targets() == ["POST /v1/gateway/partner/v1/messages/count_tokens/", MESSAGES]


def test_every_listed_model_can_be_looked_up(client):
    """The gateway has no route for one native model; it is found in the list."""
    models = {model.id: model for model in client.models.list(limit=1000)}
    assert client.models.retrieve(MODEL) == models[MODEL]


@pytest.mark.parametrize("credentials", [{"api_key": "anything"}, {"auth_token": "anything"}])
def test_what_the_sdk_sends_is_what_the_gateway_documents(url, gateway, credentials):
    """The newest SDKs send a version that the gateway does not name; the documented one goes up, under its name."""
    with Anthropic(base_url=url, **credentials, max_retries=0) as client:
        sent = client.messages.with_raw_response.create(**ASK).http_request.headers
        client.beta.messages.create(**ASK, betas=["prompt-caching-2024-07-31"])
    assert sent["anthropic-version"] == "2026-10-21"
    plain, beta = gateway.seen()
    for seen in (plain, beta):
        assert seen.target == "/v1/gateway/partner/v1/messages/"
        assert seen.headers["partner-version"] == "2023-06-01"
        assert seen.headers["authorization"] == "Bearer sk-emu-alpha-1"
        assert not {"x-api-key", "anthropic-version", "x-stainless-lang"} & set(seen.headers)
    assert beta.headers["partner-beta"] == "prompt-caching-2024-07-31"


async def test_the_asynchronous_client_works_too(url):
    async with AsyncAnthropic(base_url=url, api_key="anything", max_retries=0) as client:
        whole = await client.messages.create(**ASK)
        async with client.messages.stream(**ASK) as stream:
            assert (await stream.get_final_message()).content[0].text == whole.content[0].text
        assert [model.id async for model in client.models.list()]


def test_an_empty_balance_is_asked_about_once(url, gateway):
    gateway.empty()
    with Anthropic(base_url=url, api_key="anything") as client, pytest.raises(APIStatusError) as raised:
        client.messages.create(**ASK)
    assert raised.value.status_code == 402
    assert gateway.targets() == [MESSAGES]
