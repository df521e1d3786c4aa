"""The AI SDK works over each of its providers, at a base URL that ends in /v1."""

import pytest

from tests.clients.turns import BROKE, Raised, statuses

CHAT, RESPONSES, MESSAGES = (
    f"POST /v1/gateway/{path}/" for path in ("chat/completions", "responses", "partner/v1/messages")
)
PROVIDERS = {"chat": CHAT, "compatible": CHAT, "responses": RESPONSES, "native": MESSAGES}
EVERY = pytest.mark.parametrize("provider", PROVIDERS)


@pytest.fixture
def asks(person, needs):
    needs("ai-sdk")
    return lambda case, **given: person.asks("ai_sdk", case, **given)


@EVERY
def test_a_stream_says_the_same_as_the_whole_answer(asks, gateway, provider):
    whole = asks("text", provider=provider)
    streamed = asks("stream", provider=provider)
    assert streamed["text"] == whole["text"] != ""
    assert streamed["finishReason"] == whole["finishReason"] == "stop"
    for side in ("inputTokens", "outputTokens"):
        assert streamed["usage"][side] == whole["usage"][side] > 0
    assert gateway.targets() == [PROVIDERS[provider]] * 2


@pytest.mark.parametrize(("provider", "target"), [("found", RESPONSES), ("foundNative", MESSAGES)])
def test_providers_find_the_proxy_in_the_environment(asks, gateway, provider, target):
    """The native one appends no /v1 to what it finds there."""
    assert asks("stream", provider=provider)["text"]
    assert gateway.targets() == [target]


@EVERY
def test_a_tool_is_run_and_its_result_taken_back(asks, gateway, provider):
    answer = asks("tools", provider=provider, prompt="Ask weather for it.")
    assert answer["called"][0].startswith("rain in ")
    assert answer["text"]
    assert gateway.targets() == [PROVIDERS[provider]] * 2


@pytest.mark.parametrize("provider", ["chat", "compatible", "responses"])
def test_an_answer_fits_the_schema_of_the_caller(asks, provider):
    assert set(asks("object", provider=provider)) == {"name", "length_m"}


@EVERY
@pytest.mark.parametrize("case", ["text", "stream"])
@pytest.mark.parametrize(
    ("fault", "status", "sentence"),
    [
        ("402", 402, "Credit balance exhausted"),
        ("1010", 403, "error code: 1010"),
        ("422", 422, "body.messages: Field required"),
        ("429", 429, "Rate limit exceeded"),
    ],
)
def test_the_gateways_sentence_is_in_the_message(asks, gateway, case, provider, fault, status, sentence):
    """This SDK shows "Payment Required" for the gateway's own form."""
    gateway.arm(fault)
    with pytest.raises(Raised, match=sentence) as raised:
        asks(case, provider=provider)
    assert raised.value.status == status
    assert len(gateway.seen()) == 1


@EVERY
def test_one_refusal_of_pace_is_waited_out(asks, gateway, provider):
    gateway.arm("429", retry=1, times=1)
    assert asks("stream", provider=provider, retries=2)["text"]
    assert statuses(gateway) == [429, 200]


@EVERY
def test_an_empty_balance_is_asked_about_once(asks, gateway, provider):
    gateway.empty()
    with pytest.raises(Raised, match="Credit balance exhausted"):
        asks("text", provider=provider, retries=2)
    assert len(gateway.seen()) == 1


@EVERY
@pytest.mark.parametrize("fault", ["cut", "clean-cut"])
def test_a_stream_that_breaks_off_is_an_error(asks, gateway, provider, fault):
    gateway.arm(fault, after=4)
    with pytest.raises(Raised, match=BROKE):
        asks("stream", provider=provider)
