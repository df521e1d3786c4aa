"""The vendor's SDK for JavaScript works with the variables of `sluicegate env` and nothing else."""

import pytest

from tests.clients.turns import BROKE, QUESTION, Raised, statuses

SAID = [{"role": "user", "content": QUESTION}]
CHAT = {"model": "gpt-4o-mini", "messages": SAID}
INPUT = {"model": "gpt-4o-mini", "input": SAID}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture
def asks(person, needs):
    needs("openai-js")
    return lambda case, **given: person.asks("openai_sdk", case, **given)


def test_a_question_is_answered_once(asks, gateway):
    answer = asks("chat", body=CHAT)
    assert answer["choices"][0]["message"]["content"]
    assert answer["choices"][0]["finish_reason"] == "stop"
    (seen,) = gateway.seen()
    assert f"{seen.method} {seen.target}" == "POST /v1/gateway/chat/completions/"
    assert not [name for name in seen.headers if name.startswith("x-stainless")]


def test_a_stream_says_the_same_as_the_whole_answer(asks):
    whole = asks("chat", body=CHAT)["choices"][0]["message"]["content"]
    chunks = asks("chunks", body=CHAT)
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == whole
    assert asks("completion", body=CHAT)["choices"][0]["message"]["content"] == whole


def test_usage_comes_in_the_last_chunk_when_it_is_asked_for(asks):
    usage = asks("chat", body=CHAT)["usage"]
    *_, last = asks("chunks", body={**CHAT, "stream_options": {"include_usage": True}})
    assert (last["choices"], last["usage"]) == ([], usage)


def test_a_tool_is_called(asks):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
    answer = asks(
        "chat", body={**CHAT, "messages": [{"role": "user", "content": "Ask weather for it."}], "tools": tools}
    )
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "weather"


def test_a_streamed_response_ends_with_the_whole_of_it(asks):
    whole = asks("response", body=INPUT)
    events = asks("events", body=INPUT)
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    final = asks("finalResponse", body=INPUT)
    assert final["output_text"] == whole["output_text"] != ""
    assert final["usage"] == whole["usage"]


def test_every_listed_model_can_be_looked_up(asks, gateway):
    """Ids with a slash travel as %2F."""
    listed = asks("models")
    assert "gpt-4o-mini" in listed
    assert asks("model", id="open/llama-large")["id"] == "open/llama-large"
    assert gateway.targets()[-1] == "GET /v1/gateway/models/open%2Fllama-large/"


def test_images_come_by_the_name_and_the_parameters_of_the_sdk(asks, gateway):
    made = asks("images", body={"model": "image-search-flash", "prompt": "a heron", "n": 2, "size": "1K"})
    assert len(made["data"]) == 2
    assert all(image["b64_json"].startswith("iVBOR") for image in made["data"]), "they are PNG"
    assert gateway.targets() == ["POST /v1/gateway/images/generate/"]


def test_speech_comes_as_wav(asks):
    body = {"model": "speech-standard", "input": "Mind the gate.", "voice": "Kore"}
    wav = asks("speech", body={**body, "response_format": "wav"})
    assert wav["type"] == "audio/wav"
    assert bytes.fromhex(wav["head"])[:4] == b"RIFF"
    assert wav["bytes"] == 44 + asks("speech", body={**body, "response_format": "pcm"})["bytes"]


def test_a_format_of_speech_that_the_gateway_has_not_is_said_so(asks, gateway):
    body = {"model": "speech-standard", "input": "Mind the gate.", "voice": "Kore", "response_format": "mp3"}
    with pytest.raises(Raised, match="response_format must be pcm or wav") as raised:
        asks("speech", body=body)
    assert raised.value.status == 400
    assert not gateway.seen()


@pytest.mark.parametrize(
    ("fault", "status", "kind", "sentence"),
    [
        ("402", 402, "APIError", "Credit balance exhausted"),
        ("403", 403, "PermissionDeniedError", "is not enabled for your tenant."),
        ("1010", 403, "PermissionDeniedError", "error code: 1010"),
        ("404", 404, "NotFoundError", "Model 'gpt-4o-mini' not found"),
        ("422", 422, "UnprocessableEntityError", "body.messages: Field required"),
        ("429", 429, "RateLimitError", "Rate limit exceeded"),
        ("503", 503, "InternalServerError", "Service is temporarily stopped for maintenance"),
        ("html", 502, "InternalServerError", "with a page in place of an error message"),
    ],
)
@pytest.mark.parametrize("case", ["chat", "chunks"])
def test_the_gateways_sentence_is_in_the_message(asks, gateway, case, fault, status, kind, sentence):
    """The sentence, and not the body as JSON, which is what this SDK shows of the gateway's own form."""
    gateway.arm(fault)
    with pytest.raises(Raised, match=sentence) as raised:
        asks(case, body=CHAT)
    assert "{" not in str(raised.value)
    assert (raised.value.status, raised.value.kind) == (status, kind)
    assert len(gateway.seen()) == 1


def test_one_refusal_of_pace_is_waited_out(asks, gateway):
    gateway.arm("429", retry=1, times=1)
    assert asks("chat", body=CHAT, retries=2)["choices"]
    assert statuses(gateway) == [429, 200]


def test_an_empty_balance_is_asked_about_once(asks, gateway):
    gateway.empty()
    with pytest.raises(Raised, match="Credit balance exhausted"):
        asks("chat", body=CHAT, retries=2)
    assert len(gateway.seen()) == 1


@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
def test_a_stream_that_breaks_off_raises(asks, gateway, fault):
    """Left alone, this SDK takes a clean early end for a whole answer."""
    gateway.arm(fault, after=4)
    with pytest.raises(Raised, match=BROKE):
        asks("chunks", body=CHAT)
    last = asks("events", body=INPUT)[-1]
    assert (last["type"], last["response"]["error"]["message"]) == ("response.failed", BROKE)
