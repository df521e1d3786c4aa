"""Policies are swapped whole: when their files change, when asked, and never by a folder with a mistake."""

import hashlib

import pytest

from proxy.config.policyfile import digest, load_policies
from tests.proxies import CHAT, proxied

KEY = {"x-api-key": "red"}


def rules(budget, *, keys=True):
    shown = f'[{{ id: a, sha256: "{hashlib.sha256(b"red").hexdigest()}" }}]' if keys else "[]"
    return f"""
teams: {{ red: {{ keys: {shown}, wait_max: 0s }} }}
{budget}
prices: [{{ models: "image-*", per_image: 10 }}, {{ models: "gpt-*", input_per_million: 250, output_per_million: 1000 }}]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.yaml").write_text(rules("budgets: [{ name: day, credits: 1000, per: day }]"))
    return tmp_path


async def image(front):
    return (await front.post("/v1/images/generate", {"model": "image-lab-small", "prompt": "x"}, headers=KEY)).status


async def test_a_new_budget_begins_with_what_its_window_already_used(gateway, folder):
    async with proxied(gateway.url, load_policies(folder), auth="keys", policies=str(folder)) as front:
        assert [await image(front) for _ in range(3)] == [200] * 3
        await front.running.parts.books.written()
        (folder / "a.yaml").write_text(rules("budgets: [{ name: renamed, credits: 40, per: month }]"))
        async with front.client.post(front.running.admin_url + "/api/reload") as answer:
            assert (answer.status, await answer.json()) == (200, {"problems": []})
        assert [await image(front) for _ in range(3)] == [200, 402, 402]


async def test_a_mistake_keeps_the_old_policy_and_is_seen(gateway, folder):
    async with proxied(gateway.url, load_policies(folder), auth="keys", policies=str(folder)) as front:
        (folder / "a.yaml").write_text("teams: { red: { kyes: [] } }")
        async with front.client.post(front.running.admin_url + "/api/reload") as answer:
            assert answer.status == 422
            assert "teams.red.kyes: is not known" in (await answer.json())["problems"][0]
        assert await image(front) == 200
        async with front.client.get(front.running.admin_url + "/metrics") as answer:
            assert "sluicegate_policy_last_reload_successful 0.0" in await answer.text()
        assert any(event["event"] == "policy_refused" for event in front.events)


async def test_a_key_that_is_taken_out_is_refused_within_moments(gateway, folder):
    async with proxied(gateway.url, load_policies(folder), auth="keys", policies=str(folder)) as front:
        assert (await front.post("/v1/chat/completions", CHAT, headers=KEY)).status == 200
        (folder / "a.yaml").write_text(rules("", keys=False))
        await front.until(lambda: any(event["event"] == "policy_loaded" for event in front.events))
        assert (await front.post("/v1/chat/completions", CHAT, headers=KEY)).status == 401


async def test_a_change_between_reading_the_files_and_watching_them_is_seen(gateway, folder):
    policy = load_policies(folder)
    (folder / "a.yaml").write_text(rules("", keys=False))
    async with proxied(gateway.url, policy, auth="keys", policies=str(folder)) as front:
        await front.until(lambda: any(event["event"] == "policy_loaded" for event in front.events))
        assert (await front.post("/v1/chat/completions", CHAT, headers=KEY)).status == 401


async def test_a_web_page_cannot_reload(gateway, folder):
    async with proxied(gateway.url, policies=str(folder)) as front:
        headers = {"Origin": "http://localhost:1"}
        async with front.client.post(front.running.admin_url + "/api/reload", headers=headers) as answer:
            assert answer.status == 403


def test_the_digest_changes_with_what_files_hold_and_with_their_names(folder):
    first = digest(folder)
    (folder / "b.yaml").write_text("")
    second = digest(folder)
    (folder / "b.yaml").rename(folder / "c.yaml")
    assert len({first, second, digest(folder)}) == 3
