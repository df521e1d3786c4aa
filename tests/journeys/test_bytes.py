"""A stream fetched from the gateway and the same stream fetched through the proxy are the same bytes."""

import httpx2
import pytest

from tests.journeys.programs import GATEWAY_KEY

SAID = [{"role": "user", "content": "[[words:200]] Which way does the water go?"}]
CHAT = {"model": "gpt-4o", "messages": SAID, "stream": True}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = {"jsonrpc": "2.0", "id": "i-1", "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
BOTH = {"Accept": "application/json, text/event-stream"}
VERSION = {"partner-version": "2023-06-01"}

# fmt: off
STREAMS = {
    # name:     here                    at the gateway                           body
    "chat":      ("/v1/chat/completions", "/v1/gateway/chat/completions/",       CHAT),
    "usage":     ("/v1/chat/completions", "/v1/gateway/chat/completions/",       {**CHAT, "stream_options": {"include_usage": True}}),
    "reasoning": ("/v1/chat/completions", "/v1/gateway/chat/completions/",       {**CHAT, "model": "gpt-x"}),
    "tools":     ("/v1/chat/completions", "/v1/gateway/chat/completions/",       {**CHAT, "tools": [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}], "tool_choice": "required"}),
    "native":    ("/v1/messages",         "/v1/gateway/partner/v1/messages/",    {"model": "claude-opus-x", "max_tokens": 8000, "messages": SAID, "stream": True, "thinking": {"type": "adaptive"}}),
    "responses": ("/v1/responses",        "/v1/gateway/responses/",              {"model": "gpt-x", "input": SAID, "stream": True, "reasoning": {"effort": "low", "summary": "auto"}, "max_output_tokens": 8000}),
    "suite":     ("/v1/mcp/calc",         "/v1/gateway/mcp/calc/",               CALL),
}
# fmt: on
SHAPES = ["", "comments", "crlf", "split", "join", "ping", "usage-twice", "big"]


def fetched(http: httpx2.Client, url: str, body: object) -> bytes:
    headers = {"Authorization": f"Bearer {GATEWAY_KEY}", **BOTH, **VERSION}
    with http.stream("POST", url, json=body, headers=headers) as answer:
        assert answer.status_code == 200
        return b"".join(answer.iter_raw())


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_arrives_as_the_gateway_sent_it(http, url, gateway, name):
    """The gateway's answers are a function of its seed and of what it has been asked since its reset."""
    here, there, body = STREAMS[name]
    for shape in SHAPES:
        told = []
        for target in (gateway.url + there, url + here):
            gateway.reset()
            if shape:
                gateway.arm(shape, **({"size": 7} if shape == "split" else {"mb": 0.2} if shape == "big" else {}))
            told.append(fetched(http, target, body))
        assert told[0] == told[1], shape
        assert len(told[0]) > 100
