"""The vendors' own clients work against the emulator as it is; only the last slash is forgiven, as they send none."""

import anthropic
import httpx2
import openai
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel


class Place(BaseModel):
    name: str
    far: bool


@pytest.fixture
async def lenient(emulated):
    async with emulated(strict_slashes=False, segment="anthropic") as api:
        yield api


@pytest.fixture
async def openai_sdk(lenient):
    async with openai.AsyncOpenAI(
        base_url=f"{lenient.gateway.url}/v1/gateway", api_key=lenient.alpha, max_retries=0
    ) as sdk:
        yield sdk


@pytest.fixture
async def anthropic_sdk(lenient):
    async with anthropic.AsyncAnthropic(
        base_url=f"{lenient.gateway.url}/v1/gateway/anthropic",
        auth_token=lenient.alpha,
        max_retries=0,
        default_headers={"anthropic-version": "2023-06-01"},
    ) as sdk:
        yield sdk


SAID = [{"role": "user", "content": "please look"}]
PARAMETERS = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


async def test_openai_chat(openai_sdk):
    answer = await openai_sdk.chat.completions.create(model="gpt-4o", messages=SAID)
    chunks = [
        chunk
        async for chunk in await openai_sdk.chat.completions.create(
            model="gpt-4o", messages=SAID, stream=True, stream_options={"include_usage": True}
        )
    ]
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert said == answer.choices[0].message.content
    assert chunks[-1].usage == answer.usage


async def test_openai_tools_and_parsed_answers(openai_sdk):
    tools = [{"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}]
    answer = await openai_sdk.chat.completions.create(model="gpt-4o", messages=SAID, tools=tools)
    assert answer.choices[0].message.tool_calls[0].function.name == "look"
    parsed = await openai_sdk.chat.completions.parse(model="gpt-4o", messages=SAID, response_format=Place)
    assert isinstance(parsed.choices[0].message.parsed, Place)


async def test_openai_models(openai_sdk):
    assert (await openai_sdk.models.list()).data[0].id == "gpt-4o"
    assert (await openai_sdk.models.retrieve("open/llama-large")).id == "open/llama-large"


async def test_openai_responses(openai_sdk):
    answer = await openai_sdk.responses.create(model="gpt-x", input=SAID, reasoning={"summary": "auto"})
    asked = {"model": "gpt-x", "input": SAID, "reasoning": {"summary": "auto"}, "stream": True}
    events = [event async for event in await openai_sdk.responses.create(**asked)]
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == answer.output_text
    tools = [{"type": "function", "name": "look", "parameters": PARAMETERS}]
    called = await openai_sdk.responses.create(model="gpt-x", input=SAID, tools=tools)
    assert [item.type for item in called.output] == ["reasoning", "function_call"]
    parsed = await openai_sdk.responses.parse(model="gpt-4o", input=SAID, text_format=Place)
    assert isinstance(parsed.output_parsed, Place)


async def test_openai_background_responses(openai_sdk):
    begun = await openai_sdk.responses.create(model="gpt-4o", input=SAID, background=True)
    states = [begun.status] + [(await openai_sdk.responses.retrieve(begun.id)).status for _ in range(2)]
    assert states == ["queued", "in_progress", "completed"]
    other = await openai_sdk.responses.create(model="gpt-4o", input=SAID, background=True)
    assert (await openai_sdk.responses.cancel(other.id)).status == "cancelled"


async def test_openai_errors(lenient, openai_sdk):
    with pytest.raises(openai.NotFoundError):
        await openai_sdk.chat.completions.create(model="nothing", messages=SAID)
    lenient.gateway.set_fault("429", times=1)
    with pytest.raises(openai.RateLimitError):
        await openai_sdk.chat.completions.create(model="gpt-4o", messages=SAID)


async def test_anthropic_messages(anthropic_sdk):
    asked = {"model": "claude-opus-x", "max_tokens": 8000, "messages": SAID, "thinking": {"type": "adaptive"}}
    answer = await anthropic_sdk.messages.create(**asked)
    async with anthropic_sdk.messages.stream(**asked) as stream:
        streamed = await stream.get_final_message()
    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert streamed.content[1].text == answer.content[1].text
    assert streamed.usage.output_tokens == answer.usage.output_tokens


async def test_anthropic_tools_and_counting(anthropic_sdk):
    tools = [{"name": "look", "input_schema": PARAMETERS}]
    asked = {"model": "claude-sonnet-x", "messages": SAID, "tools": tools}
    answer = await anthropic_sdk.messages.create(max_tokens=900, **asked)
    async with anthropic_sdk.messages.stream(max_tokens=900, **asked) as stream:
        streamed = await stream.get_final_message()
    assert (answer.stop_reason, answer.content[0].name) == ("tool_use", "look")
    assert streamed.content[0].input == answer.content[0].input
    assert (await anthropic_sdk.messages.count_tokens(**asked)).input_tokens == answer.usage.input_tokens


async def test_anthropic_models(anthropic_sdk):
    assert (await anthropic_sdk.models.list()).data[0].id == "claude-haiku-x"


async def test_anthropic_errors(lenient, anthropic_sdk):
    asked = {"model": "claude-sonnet-x", "max_tokens": 9, "messages": SAID}
    lenient.gateway.set_fault("error-midway", times=1)
    with pytest.raises(anthropic.APIStatusError):
        async for _ in await anthropic_sdk.messages.create(stream=True, **asked):
            pass
    with pytest.raises(anthropic.BadRequestError):
        await anthropic_sdk.messages.create(**{**asked, "model": "gpt-4o"})


def mcp_client(api, suite, http):
    return Client(streamable_http_client(f"{api.gateway.url}/v1/gateway/mcp/{suite}/", http_client=http))


async def test_mcp_tools(api):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {api.alpha}"}) as http,
        mcp_client(api, "calc", http) as client,
    ):
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["add", "subtract", "multiply", "divide"]
        answer = await client.call_tool("add", {"a": 2, "b": 3})
        assert (answer.content[0].text, answer.is_error) == ("5", False)
        assert (await client.call_tool("divide", {"a": 2, "b": 0})).is_error
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("integrate", {})
    methods = [seen.body for seen in api.gateway.journal]
    assert b"server/discover" in methods[0]
