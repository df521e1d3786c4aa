"""The native vendor's SDK for JavaScript works with the variables of `sluicegate env` and nothing else."""

import pytest

from tests.clients.turns import BROKE, QUESTION, Raised, statuses

SAID = [{"role": "user", "content": QUESTION}]
ASK = {"model": "claude-opus-x", "max_tokens": 8000, "messages": SAID}
WEATHER = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
MESSAGES = "POST /v1/gateway/partner/v1/messages/"


@pytest.fixture
def asks(person, needs):
    needs("anthropic-js")
    return lambda case, **given: person.asks("anthropic_sdk", case, **given)


def test_a_message_is_answered_once(asks, gateway):
    answer = asks("message", body=ASK)
    assert [block["type"] for block in answer["content"]] == ["text"]
    assert answer["stop_reason"] == "end_turn"
    (seen,) = gateway.seen()
    assert f"{seen.method} {seen.target}" == MESSAGES
    assert seen.headers["partner-version"] == "2023-06-01"
    assert not [name for name in seen.headers if name.startswith(("x-stainless", "anthropic-"))]


def test_a_stream_adds_up_to_the_whole_message(asks):
    whole = asks("message", body=ASK)
    streamed = asks("stream", body=ASK)
    assert streamed["said"] == whole["content"][0]["text"]
    assert streamed["message"]["content"] == whole["content"]
    assert streamed["message"]["usage"]["output_tokens"] == whole["usage"]["output_tokens"]
    assert asks("events", body=ASK)[-1]["type"] == "message_stop"


def test_a_tool_is_used(asks):
    body = {**ASK, "messages": [{"role": "user", "content": "Ask weather for it."}], "tools": [WEATHER]}
    whole = asks("message", body=body)
    assert whole["stop_reason"] == "tool_use"
    assert asks("stream", body=body)["message"]["content"][0]["input"] == whole["content"][0]["input"]


def test_tokens_are_counted(asks, gateway):
    counted = asks("count", body={"model": ASK["model"], "messages": SAID})
    assert counted["input_tokens"] == asks("message", body=ASK)["usage"]["input_tokens"]
    assert gateway.targets() == ["POST /v1/gateway/partner/v1/messages/count_tokens/", MESSAGES]


def test_every_listed_model_can_be_looked_up(asks):
    listed = asks("models")
    assert "claude-opus-x" in listed
    assert asks("model", id="claude-opus-x")["id"] == "claude-opus-x"


@pytest.mark.parametrize(
    ("fault", "status", "kind", "sentence"),
    [
        ("402", 402, "PaymentRequiredError", "Credit balance exhausted"),
        ("403", 403, "PermissionDeniedError", "is not enabled for your tenant."),
        ("1010", 403, "PermissionDeniedError", "error code: 1010"),
        ("404", 404, "NotFoundError", "Model 'claude-opus-x' not found"),
        ("422", 422, "UnprocessableEntityError", "body.messages: Field required"),
        ("429", 429, "RateLimitError", "Rate limit exceeded"),
        ("503", 503, "ServiceUnavailableError", "Service is temporarily stopped for maintenance"),
        ("html", 502, "InternalServerError", "with a page in place of an error message"),
    ],
)
@pytest.mark.parametrize("case", ["message", "events"])
def test_the_gateways_sentence_is_in_the_message(asks, gateway, case, fault, status, kind, sentence):
    gateway.arm(fault)
    with pytest.raises(Raised, match=sentence) as raised:
        asks(case, body=ASK)
    assert (raised.value.status, raised.value.kind) == (status, kind)
    assert len(gateway.seen()) == 1


def test_one_refusal_of_pace_is_waited_out(asks, gateway):
    gateway.arm("429", retry=1, times=1)
    assert asks("message", body=ASK, retries=2)["content"]
    assert statuses(gateway) == [429, 200]


def test_an_empty_balance_is_asked_about_once(asks, gateway):
    gateway.empty()
    with pytest.raises(Raised, match="Credit balance exhausted"):
        asks("message", body=ASK, retries=2)
    assert len(gateway.seen()) == 1


@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
@pytest.mark.parametrize("case", ["events", "stream"])
def test_a_stream_that_breaks_off_raises(asks, gateway, case, fault):
    """Left alone, the raw stream of this SDK takes a clean early end for a whole answer."""
    gateway.arm(fault, after=4)
    with pytest.raises(Raised, match=BROKE):
        asks(case, body=ASK)
