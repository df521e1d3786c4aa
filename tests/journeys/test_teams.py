"""Two teams on one proxy: each key opens only what is its own, and calls are counted even when nobody stays for them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import openai
import pytest

from tests.journeys.programs import GATEWAY_KEY, serving

INPUT = {"model": "gpt-4o-mini", "input": [{"role": "user", "content": "hi"}]}
CHAT = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "[[words:300]]"}], "stream": True}
KEYS = {"red": "sk-red-0123456789", "blue": "sk-blue-0123456789"}


@dataclass(frozen=True)
class Place:
    url: str
    admin: str

    def client(self, key: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0)

    def budget(self, team: str) -> dict:
        headers = {"Authorization": f"Bearer {KEYS[team]}"}
        with httpx2.Client(headers=headers, timeout=60) as client:
            return client.get(f"{self.url}/-/budget").raise_for_status().json()


@pytest.fixture
def place(home, gateway, tmp_path) -> Iterator[Place]:
    rows = [
        f'  {team}: {{ keys: [{{ id: {team}-key, sha256: "{hashlib.sha256(key.encode()).hexdigest()}" }}] }}'
        for team, key in KEYS.items()
    ]
    (tmp_path / "teams.yaml").write_text("\n".join(["teams:", *rows, ""]))
    with serving(home, gateway.url, "--policies", str(tmp_path)) as program:
        yield Place(program.url("listens on"), program.url("admin"))
        assert program.stop() == 0
        assert not [word for word in (GATEWAY_KEY, *KEYS.values()) if word in program.said + program.logged]


def test_a_key_is_asked_for_and_what_belongs_to_one_team_is_not_there_for_another(place, gateway):
    with place.client(KEYS["red"]) as red, place.client(KEYS["blue"]) as blue, place.client("sk-none") as stranger:
        with pytest.raises(openai.AuthenticationError, match="The virtual key is unknown"):
            stranger.responses.create(**INPUT)
        assert not gateway.seen()
        own = red.responses.create(**INPUT, background=True)
        for foreign in (
            lambda: blue.responses.retrieve(own.id),
            lambda: blue.responses.cancel(own.id),
            lambda: blue.responses.create(**INPUT, previous_response_id=own.id),
        ):
            with pytest.raises(openai.NotFoundError, match="No such id for this team"):
                foreign()
        assert len(gateway.seen()) == 1, "the gateway was not asked"
        assert red.responses.retrieve(own.id).id == own.id
    assert {seen.headers["authorization"] for seen in gateway.seen()} == {f"Bearer {GATEWAY_KEY}"}


def test_a_caller_who_leaves_still_has_its_call_read_to_the_end_and_counted(place, gateway):
    """Whoever stays and whoever leaves after the first event pay the same."""
    with place.client(KEYS["red"]) as red:
        for _ in red.chat.completions.create(**CHAT):
            pass
    gateway.arm("slow", gate="left", at=2)
    with place.client(KEYS["blue"]) as blue, blue.chat.completions.create(**CHAT) as stream:
        next(iter(stream))
        gateway.wait_for_gate("left")
    gateway.open_gate("left")
    stayed, left = gateway.seen(over=2)
    assert (stayed.left, left.left) == (False, False)
    # The figures are there a moment after the last byte: nobody waits for them but this test.
    budgets = place.budget("red"), place.budget("blue")
    while budgets[1]["held_credits"] != "0":
        budgets = place.budget("red"), place.budget("blue")
    assert budgets[0]["spent_credits"] == budgets[1]["spent_credits"] != "0"


def test_metrics_and_log_tell_of_each_call(place, gateway):
    with place.client(KEYS["red"]) as red:
        red.responses.create(**INPUT)
    with httpx2.Client(timeout=60) as client:
        shown = client.get(f"{place.admin}/metrics").text
        assert client.get(f"{place.admin}/readyz").status_code == 200
    assert 'sluicegate_requests_total{code="200",route="responses",team="red"} 1.0' in shown
