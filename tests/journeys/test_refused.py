"""An empty budget reaches people through real SDKs: tried once, with the sentence that says which budget and until when."""

import re
from datetime import UTC, datetime

import anthropic
import httpx2
import openai
import pytest

from tests.journeys.programs import serving

LATE = datetime.now(UTC).hour in (13, 14)
"""In Seoul the day ends soon, and with it would end what is spent."""
ZONE, MIDNIGHT = ("Asia/Kolkata", "18:30:00Z") if LATE else ("Asia/Seoul", "15:00:00Z")

RULES = f"""
gateway_limits: own
storms: pass
teams: {{ all: {{ wait_max: 0s }} }}
open_team: all
budgets: [{{ name: lunch, credits: 10, per: day, timezone: {ZONE} }}]
prices:
  - {{ models: "image-*", per_image: 9.999 }}
  - {{ models: "*", input_per_million: 250, output_per_million: 1000 }}
"""
SAID = [{"role": "user", "content": "hi"}]


@pytest.fixture
def place(home, gateway, tmp_path):
    (tmp_path / "a.yaml").write_text(RULES)
    with serving(home, gateway.url, "--auth", "open", "--policies", str(tmp_path)) as program:
        url = program.url("listens on")
        assert httpx2.post(
            f"{url}/v1/images/generate", json={"model": "image-lab-small", "prompt": "x"}, timeout=60
        ).is_success
        yield program


@pytest.mark.parametrize("stream", [False, True])
def test_openais_sdk_tries_once_and_says_which_budget_is_empty(place, gateway, stream):
    with (
        openai.OpenAI(base_url=place.url("listens on") + "/v1", api_key="x") as client,
        pytest.raises(openai.APIStatusError) as refused,
    ):
        client.chat.completions.create(model="gpt-4o", messages=SAID, max_tokens=100, stream=stream)
    judged(refused.value, place, gateway, "chat")
    assert (refused.value.code, refused.value.type) == ("insufficient_quota", "insufficient_quota")


@pytest.mark.parametrize("stream", [False, True])
def test_the_native_sdk_tries_once_and_says_which_budget_is_empty(place, gateway, stream):
    with (
        anthropic.Anthropic(base_url=place.url("listens on"), api_key="x") as client,
        pytest.raises(anthropic.APIStatusError) as refused,
    ):
        client.messages.create(model="claude-sonnet-x", messages=SAID, max_tokens=100, stream=stream)
    judged(refused.value, place, gateway, "native")


def judged(error, place, gateway, route):
    assert error.status_code == 402
    assert "The budget lunch has 0.001 of 10 credits left" in str(error)
    assert re.search(rf"20\d\d-\d\d-\d\dT{MIDNIGHT}", str(error))
    assert place.stop() == 0, "all is in the log"
    assert sum(event.get("route") == route for event in place.events if event["event"] == "request") == 1
    assert len(gateway.seen()) == 1, "the image alone"
