"""Rules that keep answers keep none that says that work goes on, and give nobody the id of another's work."""

import asyncio
import hashlib

import orjson
import pytest

from proxy.core.deterministic import CacheRule
from proxy.core.limits import Match
from proxy.core.policy import CacheScope, KeyRef, Policy, Team
from proxy.emulator.faults.asking import Armed, Recording
from tests.proxies import RESPONSE, proxied

RED, BLUE = ({"x-api-key": name} for name in ("red", "blue"))
KEPT_S = 3600.0

# fmt: off
RULES = {
    "all calls":      (CacheRule(ttl_s=KEPT_S),),
    "all models":     (CacheRule(Match(model="*"), ttl_s=KEPT_S),),
    "a team":         (CacheRule(Match(team="red"), ttl_s=KEPT_S), CacheRule(Match(team="blue"), ttl_s=KEPT_S)),
    "anything else":  (CacheRule(deterministic=False, ttl_s=KEPT_S),),
    "stale":          (CacheRule(ttl_s=KEPT_S, stale_if_error_s=KEPT_S),),
    "routes":         tuple(CacheRule(Match(route=route), ttl_s=KEPT_S)
                            for route in ("images", "image", "videos", "video", "responses", "response", "cancel")),
}
WORK = {
    # kind       start                   body                                              poll
    "image":    ("/v1/images/generate",  {"model": "image-a-sdxl", "prompt": "a heron"},   "/v1/images/generate/{}"),
    "video":    ("/v1/video/generation", {"model": "video-97", "prompt": "a heron"},       "/v1/video/generation/{}"),
    "response": ("/v1/responses",        {**RESPONSE, "background": True, "store": True},  "/v1/responses/{}"),
}
# fmt: on
IMAGES, VIDEO = WORK["image"], WORK["video"]


def teams(scope, rules):
    def team(name):
        return Team(name, (KeyRef("k", hashlib.sha256(name.encode()).digest()),), cache=scope)

    return Policy({name: team(name) for name in ("red", "blue")}, cache=rules)


def id_of(begun):
    return begun.json.get("operation_id") or begun.json["id"]


@pytest.mark.parametrize("scope", [CacheScope.TEAM, CacheScope.SHARED])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("kind", WORK)
async def test_every_start_has_work_of_its_own_and_every_poll_says_how_it_stands(gateway, kind, rules, scope):
    start, body, poll = WORK[kind]
    async with proxied(gateway.url, teams(scope, RULES[rules]), auth="keys") as front:
        begun = [(key, await front.post(start, body, headers=key)) for key in (RED, RED, BLUE)]
        ids = [id_of(reply) for _, reply in begun]
        assert len(set(ids)) == 3
        for key, reply in begun:
            target = poll.format(id_of(reply))
            said = [(await front.get(target, headers=key)).json["status"] for _ in range(5)]
            assert said[-1] == "completed", said
            assert said[0] != "completed", said
        assert not len(front.running.parts.operations), "each one is settled"
        for identifier in ids[:2]:
            reply = await front.get(poll.format(identifier), headers=BLUE)
            assert (reply.status, reply.error["reason"]) == (404, "not_yours"), "kept or not"


@pytest.mark.parametrize(
    ("kind", "model", "kept"),
    [("video", "video-200", True), ("video", "video-97", False), ("response", "gpt-4o", True)],
)
async def test_the_last_poll_is_kept_where_a_rule_says_so(gateway, kind, model, kept):
    """A film of the one is fetched here, of the other at a link that works for a while."""
    start, body, poll = WORK[kind]
    async with proxied(gateway.url, teams(CacheScope.SHARED, RULES["routes"]), auth="keys") as front:
        target = poll.format(id_of(await front.post(start, {**body, "model": model}, headers=RED)))
        replies = [await front.get(target, headers=RED) for _ in range(6)]
        assert [reply.json["status"] for reply in replies[-2:]] == ["completed"] * 2
        assert ("hit" in replies[-1].headers["Cache-Status"]) is kept
        assert (await front.get(target, headers=BLUE)).error["reason"] == "not_yours"


@pytest.mark.parametrize("scope", [CacheScope.TEAM, CacheScope.SHARED])
async def test_who_waited_for_the_start_of_anothers_work_begins_its_own(gateway, scope):
    start, body, poll = IMAGES
    async with proxied(gateway.url, teams(scope, RULES["all calls"]), auth="keys") as front:
        gateway.set_fault("slow", gate="head", times=1)
        first = asyncio.create_task(front.post(start, body, headers=RED))
        await gateway.wait_for_gate("head")
        other = BLUE if scope is CacheScope.SHARED else RED
        others = [asyncio.create_task(front.post(start, body, headers=other)) for _ in range(3)]
        await front.until(lambda: readers(front) == 4)
        gateway.open_gate("head")
        begun = await asyncio.gather(first, *others)
        assert len({id_of(reply) for reply in begun}) == 4
        assert front.running.parts.books.open_holds == 4
        for key, reply in zip((RED, other, other, other), begun, strict=True):
            assert (await front.get(poll.format(id_of(reply)), headers=key)).status == 200


def readers(front):
    slots = front.running.parts.in_flight._slots.values()
    return next((slot.shared.readers for slot in slots if slot.shared is not None), 0)


async def test_so_does_who_waited_in_vain_before(gateway):
    """The call that it joined first failed, and the one that it joined then began work."""
    start, body, _ = IMAGES
    async with proxied(gateway.url, teams(CacheScope.SHARED, RULES["all calls"]), auth="keys") as front:
        gateway.set_fault("reset-before-head", times=1)
        gateway.set_fault("slow", gate="first", times=1)
        calls = [asyncio.create_task(front.post(start, body, headers=key)) for key in (RED, BLUE, BLUE, BLUE)]
        await gateway.wait_for_gate("first")
        await front.until(lambda: readers(front) == 4)
        gateway.set_fault("slow", gate="second", times=1)
        gateway.open_gate("first")
        await gateway.wait_for_gate("second")
        await front.until(lambda: readers(front) == 3)
        gateway.open_gate("second")
        replies = await asyncio.gather(*calls)
        begun = [id_of(reply) for reply in replies if reply.status == 200]
        assert sorted(reply.status for reply in replies) == [200] * 3 + [502]
        assert len(set(begun)) == 3


async def test_who_waited_for_a_poll_asks_by_itself_when_the_work_goes_on(gateway):
    start, body, poll = VIDEO
    async with proxied(gateway.url, teams(CacheScope.TEAM, RULES["routes"]), auth="keys") as front:
        target = poll.format(id_of(await front.post(start, body, headers=RED)))
        gateway.set_fault("slow", gate="head", times=1)
        asked = len(gateway.journal)
        calls = [asyncio.create_task(front.get(target, headers=RED)) for _ in range(3)]
        await front.until(lambda: readers(front) == 3)
        gateway.open_gate("head")
        replies = await asyncio.gather(*calls)
        assert [reply.status for reply in replies] == [200] * 3
        assert len(gateway.journal) == asked + 3


async def test_images_that_are_made_at_once_are_kept_and_shared(gateway):
    body = {"model": "image-search-flash", "prompt": "a heron"}
    async with proxied(gateway.url, teams(CacheScope.SHARED, RULES["routes"]), auth="keys") as front:
        first, second = [await front.post(IMAGES[0], body, headers=key) for key in (RED, BLUE)]
        assert second.body == first.body
        assert "hit" in second.headers["Cache-Status"]


@pytest.mark.parametrize("status", ["queued", "in_progress"])
async def test_an_answer_that_turns_out_to_be_in_the_background_is_one_callers(gateway, status):
    """Nobody asked for that, and what the gateway answers is what counts."""
    said = {"id": "resp_1", "object": "response", "status": status, "model": RESPONSE["model"], "output": []}
    headers = (("Content-Type", "application/json"),)
    gateway.recordings["open"] = Recording((orjson.dumps(said),), headers=headers)
    gateway.armed.append(Armed("raw", {"name": "open"}, times=1))
    asked = {**RESPONSE, "temperature": 0}
    async with proxied(gateway.url, teams(CacheScope.SHARED, RULES["all calls"]), auth="keys") as front:
        assert (await front.post("/v1/responses", asked, headers=RED)).json["status"] == status
        reply = await front.post("/v1/responses", asked, headers=BLUE)
        assert (reply.json["status"], "hit" in reply.headers["Cache-Status"]) == ("completed", False)
