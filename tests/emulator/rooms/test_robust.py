"""Whatever JSON comes, a room answers: a double that fails on odd input would hide who sent it."""

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.emulator.answers import Refused
from proxy.emulator.clock import HandClock
from proxy.emulator.options import Options
from proxy.emulator.rooms import audio, chat, chatbots, images, native, responses, suites, video
from proxy.emulator.world import Call, World

BODIES: dict[Any, dict[str, Any]] = {
    chat.complete: {
        "model": "gem-2-flash",
        "messages": [{"role": "user", "content": "look"}],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": {}}},
        "stream_options": {"include_usage": True},
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "stop": ["a"],
        "thinking_budget": 5,
    },
    native.message: {
        "model": "claude-opus-x",
        "max_tokens": 9000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]}],
        "system": [{"type": "text", "text": "a"}],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"effort": "max"},
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "look"},
        "stop_sequences": ["a"],
    },
    responses.create: {
        "model": "gpt-x",
        "input": [{"role": "user", "content": "look"}],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "look"},
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "a", "strict": True, "schema": {"type": "object"}}},
        "previous_response_id": None,
        "metadata": {"a": "b"},
    },
    chatbots.complete: {"messages": [{"role": "user", "content": "a"}], "stream": True},
    audio.speech: {"model": "speech-standard", "input": "a", "voice": "Kore", "speakers": {"A": "Kore"}},
    audio.music: {"model": "music-songs", "prompt": "a", "duration_seconds": 1.5, "lyrics": "la"},
    images.generate: {"model": "image-search-pro", "prompt": "a", "number_of_images": 1, "input_images": ["http://a"]},
    video.start: {
        "model": "video-256",
        "prompt": "a",
        "parameters": {"duration": 5},
        "input_urls": ["http://a/1x1.png"],
    },
    suites.rpc: {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
    },
}

ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 20_000)
    | st.floats(-3, 3)
    | st.sampled_from(["", "a", "object", "auto"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "name", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def with_odd(value, path, odd):
    """The value with something else at one place."""
    if not path:
        return odd
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = with_odd(value[key], rest, odd)
    return copy


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_room_answers_every_body_with_an_answer_or_a_refusal(data):
    room = data.draw(st.sampled_from(list(BODIES)))
    body = BODIES[room]
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([path for path in places(body) if path]))
        body = with_odd(body, path, data.draw(ODD))
    parts = {"chatbot_id": "7", "suite": "calc"}
    headers = {"partner-version": "2023-06-01"}
    call = Call("POST", "/x", parts, {}, headers, orjson.dumps(body), "sk-emu-alpha-1", "alpha", 0)
    world = World(Options(limits=False), HandClock())
    try:
        answer = room(world, call)
    except Refused as refused:
        answer = refused.answer
    assert answer.status in (200, 400, 402, 403, 404, 422)
