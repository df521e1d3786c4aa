"""The vendor's SDK works when only its base URL is changed, whichever of the three spellings it is given."""

from collections.abc import Iterator

import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

ASK = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Which way does the water go?"}]}
INPUT = {"model": "gpt-4o-mini", "input": [{"role": "user", "content": "Which way does the water go?"}]}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Boat(BaseModel):
    name: str
    length_m: int


@pytest.fixture(scope="session", params=["/v1", "/v1/gateway", "", "/v1/"])
def client(request: pytest.FixtureRequest, url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url + request.param, api_key="anything", max_retries=0) as openai:
        yield openai


def test_a_question_is_answered(client, gateway):
    answer = client.chat.completions.create(**ASK)
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert gateway.targets() == ["POST /v1/gateway/chat/completions/"]


def test_a_stream_says_the_same_as_the_whole_answer(client):
    whole = client.chat.completions.create(**ASK)
    chunks = list(client.chat.completions.create(**ASK, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert not any(chunk.usage for chunk in chunks), "usage was not asked for"


def test_usage_comes_in_the_last_chunk_when_it_is_asked_for(client):
    whole = client.chat.completions.create(**ASK)
    *_, last = client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
    assert last.choices == []
    assert last.usage == whole.usage


def test_a_tool_is_called_with_arguments_that_fit(client):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
    asked = [{"role": "user", "content": "Ask weather for it."}]
    answer = client.chat.completions.create(model="gpt-4o-mini", messages=asked, tools=tools)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "weather"
    told = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    again = client.chat.completions.create(model="gpt-4o-mini", messages=[*asked, answer.choices[0].message, told])
    assert again.choices[0].message.content


def test_an_answer_is_parsed_into_a_model_of_the_caller(client):
    answer = client.chat.completions.parse(**ASK, response_format=Boat)
    assert isinstance(answer.choices[0].message.parsed, Boat)


def test_a_response_continues_an_earlier_one(client):
    first = client.responses.create(**INPUT)
    second = client.responses.create(**INPUT, previous_response_id=first.id)
    assert (first.status, second.status) == ("completed", "completed")
    assert first.output_text
    assert second.previous_response_id == first.id
    assert second.usage.input_tokens > first.usage.input_tokens
    assert client.responses.retrieve(first.id).output_text == first.output_text


def test_a_streamed_response_ends_with_the_whole_of_it(client):
    events = list(client.responses.create(**INPUT, stream=True))
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert said == events[-1].response.output_text


def test_a_background_response_is_polled_to_its_end(client):
    response = client.responses.create(**INPUT, background=True)
    seen = [response.status]
    while response.status != "completed":
        response = client.responses.retrieve(response.id)
        seen.append(response.status)
    assert seen == ["queued", "in_progress", "completed"]
    assert response.output_text


def test_a_background_response_is_cancelled(client):
    response = client.responses.create(**INPUT, background=True)
    assert client.responses.cancel(response.id).status == "cancelled"
    assert client.responses.retrieve(response.id).status == "cancelled"


def test_every_listed_model_can_be_looked_up(client, gateway):
    """Ids with a slash travel as %2F and must arrive as that."""
    fresh = {"Cache-Control": "no-store"}
    models = {model.id: model for model in client.models.list(extra_headers=fresh)}
    assert client.models.retrieve("open/llama-large", extra_headers=fresh) == models["open/llama-large"]
    assert gateway.targets() == ["GET /v1/gateway/models/", "GET /v1/gateway/models/open%2Fllama-large/"]


async def test_the_asynchronous_client_works_too(url):
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="anything", max_retries=0) as client:
        whole = await client.chat.completions.create(**ASK)
        said = ""
        async for chunk in await client.chat.completions.create(**ASK, stream=True):
            said += chunk.choices[0].delta.content or ""
        assert said == whole.choices[0].message.content
        assert (await client.responses.create(**INPUT)).output_text
        assert [model.id async for model in client.models.list()]


def test_an_empty_balance_is_asked_about_once(url, gateway):
    """A client with its usual retries repeats 429 and 5xx, but not 402: an agent does not storm an empty purse."""
    from openai import APIStatusError

    gateway.empty()
    with OpenAI(base_url=f"{url}/v1", api_key="anything") as client, pytest.raises(APIStatusError) as raised:
        client.chat.completions.create(**ASK)
    assert raised.value.status_code == 402
    assert gateway.targets() == ["POST /v1/gateway/chat/completions/"]
