"""What an SDK asked once costs nothing the second time, in the next process too: the same objects, the gateway unasked."""

import pytest
from anthropic import Anthropic
from openai import OpenAI

from tests.journeys.programs import serving

SAY = [{"role": "user", "content": "Which mill turns when the river rests?"}]
CHAT = {"model": "gpt-4o-mini", "messages": SAY, "temperature": 0}
INPUT = {"model": "gpt-4o-mini", "input": SAY, "temperature": 0}
NATIVE = {"model": "claude-sonnet-x", "max_tokens": 64, "messages": SAY, "extra_body": {"temperature": 0}}

# fmt: off
ASKS = {
    "chat":             lambda url: OpenAI(base_url=url + "/v1", api_key="k", max_retries=0).chat.completions.create(**CHAT),
    "chat stream":      lambda url: list(OpenAI(base_url=url + "/v1", api_key="k", max_retries=0).chat.completions.create(**CHAT, stream=True)),
    "responses":        lambda url: OpenAI(base_url=url + "/v1", api_key="k", max_retries=0).responses.create(**INPUT),
    "responses stream": lambda url: list(OpenAI(base_url=url + "/v1", api_key="k", max_retries=0).responses.create(**INPUT, stream=True)),
    "native":           lambda url: Anthropic(base_url=url, api_key="k", max_retries=0).messages.create(**NATIVE),
    "native stream":    lambda url: list(Anthropic(base_url=url, api_key="k", max_retries=0).messages.create(**NATIVE, stream=True)),
}
# fmt: on


def told(answer):
    """What an SDK's object says, less what is of its own request."""
    if isinstance(answer, list):
        return [told(part) for part in answer]
    said = answer.to_dict()
    return {name: value for name, value in said.items() if name != "_request_id"}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_every_sdk_gets_the_same_objects_again_in_the_next_process_too(home, gateway, own_environment, tmp_path):
    (tmp_path / "none").mkdir()
    arguments = ("--auth", "open", "--data", str(tmp_path / "data"), "--policies", str(tmp_path / "none"))
    seen = []
    for _ in range(2):
        with serving(home, gateway.url, *arguments) as program:
            url = program.url("listens on")
            seen += [{name: told(ask(url)) for name, ask in ASKS.items()} for _ in range(2)]
            assert program.stop() == 0
    assert seen[1:] == seen[:1] * 3
    assert len(gateway.targets()) == len(ASKS)
