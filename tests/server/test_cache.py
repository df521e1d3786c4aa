"""A repeated deterministic call is answered with the same bytes, without the gateway and without a charge."""

import asyncio
import hashlib
from dataclasses import replace

import orjson
import pytest

from proxy.core.charges import Ending
from proxy.core.deterministic import CacheRule
from proxy.core.ledger import Void
from proxy.core.limits import Budget, Match
from proxy.core.policy import DEFAULT_POLICY, CacheScope, KeyRef, Policy, Steering, Storms, StreamUsage, Team
from proxy.core.prices import FLAT, PriceTable, Rule
from proxy.core.windows import Calendar, Per
from proxy.emulator.faults.asking import Armed, Recording
from proxy.stores.cache.memory import MemoryCache
from proxy.stores.cache.sqlite import SqliteCache
from proxy.stores.ledger.sqlite import SqliteLedger
from proxy.units import CREDIT
from tests.held import Held
from tests.proxies import AFTERNOON_S, CHAT, NATIVE, RESPONSE, proxied
from tests.raw import Raw, request

PATH = "/v1/chat/completions"
SURE = {**CHAT, "temperature": 0}
STREAM = {**SURE, "stream": True}

# fmt: off
ASKED = {
    "chat":       (PATH,                        SURE),
    "chat-sse":   (PATH,                        STREAM),
    "seeded":     (PATH,                        {**CHAT, "seed": 7}),
    "native":     ("/v1/messages",              {**NATIVE, "temperature": 0}),
    "native-sse": ("/v1/messages",              {**NATIVE, "temperature": 0, "stream": True}),
    "responses":  ("/v1/responses",             {**RESPONSE, "temperature": 0}),
    "resp-sse":   ("/v1/responses",             {**RESPONSE, "temperature": 0, "stream": True}),
    "count":      ("/v1/messages/count_tokens", {k: v for k, v in NATIVE.items() if k != "max_tokens"}),
}
# fmt: on

REPEATS_PASS = replace(DEFAULT_POLICY, storms=Storms.PASS)
"""A repeat of what the gateway refused goes to the gateway, so that it is seen what the cache does of it."""


@pytest.mark.parametrize("name", ASKED)
async def test_the_second_call_has_the_same_bytes_and_costs_nothing(gateway, name):
    path, body = ASKED[name]
    async with proxied(gateway.url, wall=lambda: AFTERNOON_S) as front:
        first = await front.post(path, body)
        entries, calls = len(front.entries), len(gateway.journal)
        second = await front.post(path, body)
    assert (second.status, second.body) == (first.status, first.body)
    assert second.headers["Content-Type"] == first.headers["Content-Type"]
    assert (len(front.entries), len(gateway.journal)) == (entries, calls)
    assert second.headers["Cache-Status"].startswith("sluicegate; hit; ttl=86400")
    assert second.headers["Age"] == "0"
    assert second.headers["X-Request-ID"] != first.headers["X-Request-ID"]
    if name != "count":
        assert second.headers["X-Sluicegate-Credits"].startswith("charged=0, saved=0.")
    story = front.requests[-1]
    assert (story["cache"], story["ending"]) == ("hit", Ending.HIT.value)


IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]}]


@pytest.mark.parametrize(("path", "body", "detail"), [
    (PATH,                    CHAT,                                                       "temperature"),
    (PATH,                    {**SURE, "n": 2},                                           "n"),
    (PATH,                    {**SURE, "store": True},                                    "store"),
    ("/v1/responses",         {**RESPONSE, "temperature": 0, "background": True},         "background"),
    ("/v1/responses",         {**RESPONSE, "temperature": 0, "conversation": "conv_1"},   "conversation"),
    (PATH, {**SURE, "messages": IMAGE}, "references"),
    ("/v1/audio/speech",      {"model": "speech-standard", "input": "hi", "voice": "Kore", "temperature": 0}, "route"),
])  # fmt: skip
async def test_what_is_not_deterministic_is_fetched_each_time_and_says_why(front, path, body, detail):
    for _ in range(2):
        reply = await front.post(path, body)
        assert reply.headers["Cache-Status"] == f"sluicegate; fwd=bypass; detail={detail}"


async def test_the_same_request_written_otherwise_is_a_hit(front, gateway):
    await front.post(PATH, SURE)
    for written in (
        orjson.dumps(dict(reversed(SURE.items())), option=orjson.OPT_INDENT_2),
        orjson.dumps({**SURE, "user": "somebody", "metadata": {"run": "7"}}),
        orjson.dumps(SURE).replace(b"hi", b"\\u0068i"),
    ):
        reply = await front.call("POST", PATH, data=written)
        assert "hit" in reply.headers["Cache-Status"]
    for other in ({**SURE, "temperature": 0.0, "top_p": 1}, STREAM, {**SURE, "model": "gpt-4o"}):
        assert "hit" not in (await front.post(PATH, other)).headers["Cache-Status"]
    assert len(gateway.journal) == 4


async def test_a_hit_outlives_the_process(gateway, tmp_path):
    bodies = []
    for _ in range(2):
        cache = await SqliteCache.open(tmp_path / "c.db", 64 * 1024 * 1024)
        async with proxied(gateway.url, cache=cache) as front:
            # The secret of keys lies beside the file; in a test that keeps the file it has to be kept too.
            front.running.parts.cache.__dict__["secret"] = b"s" * 32
            bodies.append([(await front.post(*ASKED[name])).body for name in ("chat", "chat-sse")])
    assert bodies[0] == bodies[1]
    assert len(gateway.journal) == 2


# --- teams ---

RED, BLUE = ({"x-api-key": name} for name in ("red-key", "blue-key"))


def teams(red=CacheScope.TEAM, blue=CacheScope.TEAM, **more):
    def team(name, scope, **given):
        return Team(name, (KeyRef("a", hashlib.sha256(f"{name}-key".encode()).digest()),), cache=scope, **given)

    return Policy({"red": team("red", red), "blue": team("blue", blue, **more)})


@pytest.mark.parametrize(
    ("red", "blue", "calls"),
    [
        (CacheScope.TEAM, CacheScope.TEAM, 2),
        (CacheScope.SHARED, CacheScope.SHARED, 1),
        (CacheScope.SHARED, CacheScope.TEAM, 2),
        (CacheScope.OFF, CacheScope.SHARED, 3),
    ],
)
async def test_answers_stay_with_their_team_unless_teams_share(gateway, red, blue, calls):
    async with proxied(gateway.url, teams(red, blue), auth="keys") as front:
        for headers in (RED, BLUE, RED, BLUE):
            assert (await front.post(PATH, SURE, headers=headers)).status == 200
        assert len(gateway.journal) == calls


async def test_a_team_that_may_not_use_a_model_never_gets_its_answers(gateway):
    policy = teams(CacheScope.SHARED, CacheScope.SHARED, deny_models=("gpt-*",))
    async with proxied(gateway.url, policy, auth="keys") as front:
        assert (await front.post(PATH, SURE, headers=RED)).status == 200
        assert (await front.post(PATH, SURE, headers=BLUE)).status == 403


async def test_lists_are_stored_whole_and_filtered_when_given(gateway):
    policy = teams(CacheScope.SHARED, CacheScope.SHARED, deny_models=("gpt-*",))
    async with proxied(gateway.url, policy, auth="keys") as front:
        for path in ("/v1/models", "/partner/v1/models"):
            red = {entry["id"] for entry in (await front.get(path, headers=RED)).json["data"]}
            reply = await front.get(path, headers=BLUE)
            assert "hit" in reply.headers["Cache-Status"]
            assert {entry["id"] for entry in reply.json["data"]} == {
                name for name in red if not name.startswith("gpt-")
            }
        assert len(gateway.journal) == 2


async def test_a_denial_after_a_reload_holds_for_what_is_stored(front):
    assert (await front.post(PATH, SURE)).status == 200
    assert "hit" in (await front.post(PATH, SURE)).headers["Cache-Status"]
    team = replace(DEFAULT_POLICY.teams["default"], deny_models=("gpt-*",))
    front.running.parts.state.policy = replace(DEFAULT_POLICY, teams={"default": team})
    assert (await front.post(PATH, SURE)).status == 403


# --- steering ---


async def asked(front, body=SURE, **lines):
    headers = {name.replace("_", "-"): value for name, value in lines.items()}
    return await front.post(PATH, body, headers=headers)


async def test_no_store_neither_looks_nor_keeps(front, gateway):
    await asked(front, cache_control="no-store")
    await asked(front)
    await asked(front, cache_control="no-store")
    assert len(gateway.journal) == 3


async def test_no_cache_fetches_anew_and_keeps_the_new_answer(front, gateway):
    await asked(front)
    reply = await asked(front, cache_control="no-cache")
    assert reply.headers["Cache-Status"].startswith("sluicegate; fwd=request; stored")
    assert "hit" in (await asked(front)).headers["Cache-Status"]
    assert len(gateway.journal) == 2


async def test_max_age_bounds_what_is_taken(gateway):
    now = [1000.0]
    async with proxied(gateway.url, wall=lambda: now[0]) as front:
        await asked(front)
        now[0] += 10
        assert (await asked(front, cache_control="max-age=10")).headers["Age"] == "10"
        assert "fwd=stale" in (await asked(front, cache_control="max-age=9")).headers["Cache-Status"]
        assert len(gateway.journal) == 2


async def test_only_if_cached_fetches_nothing(front, gateway):
    reply = await asked(front, cache_control="only-if-cached")
    assert (reply.status, reply.error["reason"]) == (504, "not_in_cache")
    assert (await asked(front, body=CHAT, cache_control="only-if-cached")).status == 504
    await asked(front)
    assert (await asked(front, cache_control="only-if-cached")).status == 200
    assert len(gateway.journal) == 1


async def test_a_team_whose_steering_is_ignored_gets_what_is_stored(gateway):
    team = replace(DEFAULT_POLICY.teams["default"], cache_control=Steering.IGNORE)
    async with proxied(gateway.url, replace(DEFAULT_POLICY, teams={"default": team})) as front:
        await asked(front)
        assert "hit" in (await asked(front, cache_control="no-store, no-cache, max-age=0")).headers["Cache-Status"]


# --- rules of the policy ---


async def test_rules_add_take_away_and_say_how_long(gateway):
    now = [1000.0]
    rules = (
        CacheRule(Match(model="gpt-4o"), ttl_s=0),
        CacheRule(Match(route="speech"), ttl_s=60),
        CacheRule(Match(route="chat"), deterministic=True, ttl_s=5),
    )
    speech = {"model": "speech-standard", "input": "hi", "voice": "Kore", "response_format": "wav"}
    async with proxied(gateway.url, replace(DEFAULT_POLICY, cache=rules), wall=lambda: now[0]) as front:
        reply = await front.post(PATH, {**SURE, "model": "gpt-4o"})
        assert reply.headers["Cache-Status"] == "sluicegate; fwd=bypass; detail=policy"
        first, second = [await front.post("/v1/audio/speech", speech) for _ in range(2)]
        assert first.status == 200
        assert second.body == first.body, "the header of the sound file included"
        assert "hit" in second.headers["Cache-Status"]
        await front.post(PATH, SURE)
        now[0] += 6
        assert "fwd=stale" in (await front.post(PATH, SURE)).headers["Cache-Status"]


async def test_an_old_answer_is_better_than_none_where_the_policy_says_so(gateway):
    now = [1000.0]
    rules = (CacheRule(Match(route="chat"), ttl_s=10, stale_if_error_s=50),)
    async with proxied(gateway.url, replace(DEFAULT_POLICY, cache=rules), wall=lambda: now[0]) as front:
        first = await front.post(PATH, CHAT)
        now[0] += 20
        for fault in ("500", "reset-before-head"):
            gateway.set_fault(fault)
            reply = await front.post(PATH, CHAT)
            assert (reply.status, reply.body) == (200, first.body)
            assert (reply.headers["Cache-Status"], reply.headers["Age"]) == ("sluicegate; hit; ttl=-10", "20")
        now[0] += 41
        assert (await front.post(PATH, CHAT)).status == 502


async def test_a_hit_passes_where_the_budget_is_gone(gateway):
    budget = Budget("day", CREDIT, Calendar(Per.DAY))
    prices = PriceTable((Rule("models", "*", replace(FLAT, output_tokens_max=100)),))
    async with proxied(gateway.url, replace(DEFAULT_POLICY, budgets=(budget,), prices=prices)) as front:
        assert (await front.post(PATH, SURE)).status == 200
        await front.running.parts.books.written()
        front.running.parts.books.accounts.spent(front.entries[0].facts, CREDIT, front.running.parts.wall())
        assert (await front.post(PATH, {**SURE, "seed": 1})).status == 402
        assert (await front.post(PATH, SURE)).status == 200


async def test_usage_that_was_asked_for_by_us_is_taken_out_of_a_hit_too(gateway):
    policy = replace(DEFAULT_POLICY, stream_usage=StreamUsage.INJECT)
    async with proxied(gateway.url, policy) as front:
        first, second = [await front.post(PATH, STREAM) for _ in range(2)]
        asked_for = await front.post(PATH, {**STREAM, "stream_options": {"include_usage": True}})
        assert first.body == second.body
        assert b'"usage"' not in first.body
        assert b'"usage"' in asked_for.body
        assert len(gateway.journal) == 1


# --- what is never stored ---


_OF_BOTH = ("empty", "cut", "400", "402", "429", "500", "html200", "empty-body")
_OF_STREAMS = ("error-midway", "clean-cut", "no-done")


@pytest.mark.parametrize(
    ("fault", "body"),
    [*((fault, body) for fault in _OF_BOTH for body in (SURE, STREAM)), *((fault, STREAM) for fault in _OF_STREAMS)],
)
async def test_only_whole_answers_that_say_something_are_kept(gateway, fault, body):
    gateway.set_fault(fault, times=1)
    async with proxied(gateway.url, REPEATS_PASS) as front:
        await front.post(PATH, body)
        reply = await front.post(PATH, body)
        assert "hit" not in reply.headers["Cache-Status"], reply.headers
        assert reply.status == 200
        assert len(gateway.journal) == 2


async def test_blanks_alone_are_not_kept_and_the_log_says_that_the_answer_was_empty(front, gateway):
    choice = {"index": 0, "message": {"role": "assistant", "content": " \n\n"}, "finish_reason": "stop"}
    whole = orjson.dumps({"id": "a", "object": "chat.completion", "model": CHAT["model"], "choices": [choice]})
    gateway.recordings["blank"] = Recording((whole,), headers=(("Content-Type", "application/json"),))
    gateway.armed.append(Armed("raw", {"name": "blank"}, times=1))
    body = {**CHAT, "seed": 1}
    assert (await front.post(PATH, body)).body == whole
    assert (await front.request())["empty"] is True
    assert "hit" not in (await front.post(PATH, body)).headers["Cache-Status"]
    assert "hit" in (await front.post(PATH, body)).headers["Cache-Status"]


async def test_an_answer_that_nobody_meters_is_kept_only_where_it_says_something(front, gateway):
    gateway.recordings["nothing"] = Recording((b"{}",), headers=(("Content-Type", "application/json"),))
    gateway.armed.append(Armed("raw", {"name": "nothing"}, times=1))
    path, body = ASKED["count"]
    assert (await front.post(path, body)).body == b"{}"
    assert "hit" not in (await front.post(path, body)).headers["Cache-Status"]
    assert "hit" in (await front.post(path, body)).headers["Cache-Status"]


async def test_nothing_is_kept_of_an_answer_whose_caller_left(front, gateway):
    gateway.set_fault("slow", gate="half", at=3)
    call = asyncio.create_task(front.post(PATH, STREAM))
    await gateway.wait_for_gate("half")
    call.cancel()
    await front.until(lambda: len(front.running.parts.exchanges.readers) == 1)
    gateway.open_gate("half")
    await front.running.parts.exchanges.finished()
    gateway.clear_faults()
    assert "hit" not in (await front.post(PATH, STREAM)).headers["Cache-Status"]


# --- many at once ---


class Slow(MemoryCache):
    """A file that is read long before its reader hears what was in it; the first one hears at once."""

    def __init__(self):
        super().__init__(64 * 1024 * 1024)
        self.reads, self.gate = 0, asyncio.Event()

    def may_have(self, key):
        return True

    async def get(self, key):
        found = await super().get(key)
        self.reads += 1
        if self.reads > 1:
            await self.gate.wait()
        return found


async def test_the_file_is_not_asked_about_what_it_cannot_have(gateway, tmp_path):
    cache = await SqliteCache.open(tmp_path / "cache.db", 1024 * 1024)
    await asyncio.wait([cache._learner])
    async with proxied(gateway.url, cache=cache) as front:
        for number in range(3):
            assert (await front.post(PATH, {**CHAT, "seed": number})).status == 200
        scraped = front.running.parts.metrics.render("")[0].decode()
        assert 'cache_operation_duration_seconds_count{op="put"} 3' in scraped
        assert 'op="get"' not in scraped


async def test_an_answer_that_came_while_the_file_was_read_is_not_fetched_again(gateway):
    store = Slow()
    gateway.set_fault("slow", gate="head")
    async with proxied(gateway.url, cache=store) as front:
        first = asyncio.create_task(front.post(PATH, STREAM))
        await gateway.wait_for_gate("head")
        others = [asyncio.create_task(front.post(PATH, STREAM)) for _ in range(5)]
        await front.until(lambda: store.reads == 6)
        gateway.open_gate("head")
        body = (await first).body
        await front.running.parts.exchanges.finished()
        store.gate.set()
        replies = await asyncio.gather(*others)
        assert [(reply.status, reply.body) for reply in replies] == [(200, body)] * 5
        assert ["hit" in reply.headers["Cache-Status"] for reply in replies] == [True] * 5
        assert (len(gateway.journal), len(front.entries)) == (1, 2)


async def test_two_hundred_at_once_whose_first_leaves_at_once_are_one_call(gateway, tmp_path):
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=0.0)
    cache = await SqliteCache.open(tmp_path / "cache.db", 1024 * 1024)
    asked = request("POST", PATH, body=orjson.dumps(STREAM))
    async with proxied(gateway.url, ledger=ledger, cache=cache) as front:
        first, *others = await asyncio.gather(*[Raw.open(front.address) for _ in range(201)])
        await first.send(asked)
        first.close()
        for one in others:
            await one.send(asked)
        replies = [await one.reply() for one in others]
        assert {(reply.status, reply.body) for reply in replies} == {(200, replies[0].body)}
        assert len(gateway.journal) == 1
        for one in others:
            one.close()


@pytest.mark.parametrize(
    ("body", "count"),
    [(SURE, 0), (STREAM, 0), (SURE, 200), (STREAM, 200), (CHAT, 0), ({**CHAT, "stream": True}, 0)],
)
async def test_who_leaves_before_its_call_is_sent_has_nothing_sent_and_pays_nothing(gateway, body, count):
    """Its hold was on its way to the disk. Whoever asks the same has a call of its own admitted."""
    ledger = Held()
    asked = request("POST", PATH, body=orjson.dumps(body))
    async with proxied(gateway.url, ledger=ledger) as front:
        first = await Raw.open(front.address)
        await first.send(asked)
        await ledger.asked.wait()
        others = [asyncio.create_task(front.post(PATH, body)) for _ in range(count)]
        await front.until(lambda: in_flight(front) == count + 1)
        first.close()
        # The proxy has seen the end of a connection that was closed before this was asked.
        await front.get("/v1/-/health")
        ledger.gate.set()
        replies = await asyncio.gather(*others)
        assert [reply.status for reply in replies] == [200] * count
        await front.until(lambda: in_flight(front) == 0)
        await front.running.parts.books.written()
        assert len(gateway.journal) == min(count, 1)
        (left,) = [event for event in front.requests if event.get("left")]
        assert (left["ending"], left["charged"]) == ("never_sent", "0")
        voided = [entry.ending for entry in front.entries if isinstance(entry, Void)]
        assert voided == [Ending.NEVER_SENT]
        failures = front.running.parts.metrics.rows("upstream_errors_total")
        assert not sum(count for _, count in failures), "it is no failure of the gateway"
        assert front.running.parts.books.open_holds == 0


def in_flight(front):
    return front.running.parts.metrics.total("requests_in_flight")


@pytest.mark.parametrize("body", [SURE, STREAM], ids=["json", "stream"])
async def test_five_hundred_at_once_are_one_call_and_one_charge(front, gateway, body):
    gateway.set_fault("slow", gate="head")
    calls = [asyncio.create_task(front.post(PATH, body)) for _ in range(500)]
    await gateway.wait_for_gate("head")
    await front.until(lambda: in_flight(front) == 500)
    gateway.open_gate("head")
    replies = await asyncio.gather(*calls)
    assert {(reply.status, reply.body) for reply in replies} == {(200, replies[0].body)}
    assert len(gateway.journal) == 1
    assert len(front.entries) == 2


def readers(front):
    """How many read the one call that is shared."""
    slots = front.running.parts.in_flight._slots.values()
    return next((slot.shared.readers for slot in slots if slot.shared is not None), 0)


async def test_a_request_whose_body_has_the_hash_of_another_is_another(front, gateway):
    other = orjson.dumps({**SURE, "max_tokens": 77})
    for _ in range(2):
        await front.post(PATH, SURE)
    ((place, road),) = front.running.parts.cache._roads.items()
    front.running.parts.cache._roads[*place[:4], hash(other)] = road
    reply = await front.call("POST", PATH, data=other)
    assert "hit" not in reply.headers["Cache-Status"]
    assert len(gateway.journal) == 2


async def joined(front, gateway, count, body=SURE, already=0):
    """So many calls that wait for one of them, or for one that is there already."""
    calls = [asyncio.create_task(front.post(PATH, body)) for _ in range(count)]
    await front.until(lambda: readers(front) == count + already)
    return calls


@pytest.mark.parametrize(
    ("stage", "body"), [("head", SURE), ("head", STREAM), ("half", STREAM)], ids=["json", "stream", "in a stream"]
)
async def test_whoever_called_first_may_leave_and_the_others_are_answered(front, gateway, stage, body):
    gateway.set_fault("slow", gate=stage, **({"at": 3} if stage == "half" else {}))
    first = asyncio.create_task(front.post(PATH, body))
    await gateway.wait_for_gate(stage)
    others = await joined(front, gateway, 499, body, already=1)
    first.cancel()
    await front.until(lambda: readers(front) == 499)
    gateway.open_gate(stage)
    replies = await asyncio.gather(*others)
    assert {(reply.status, reply.body) for reply in replies} == {(200, replies[0].body)}
    assert len(gateway.journal) == 1
    await front.running.parts.exchanges.finished()
    assert len(front.entries) == 2
    gateway.clear_faults()
    again = await front.post(PATH, body)
    assert again.body == replies[0].body
    assert "hit" in again.headers["Cache-Status"]


@pytest.mark.parametrize("fault", ["cut", "error-midway"])
async def test_when_the_call_fails_behind_its_first_byte_all_see_it_and_nothing_is_kept(front, gateway, fault):
    gateway.set_fault("slow", gate="half", at=2, times=1)
    gateway.set_fault(fault, times=1)
    first = asyncio.create_task(front.post(PATH, STREAM))
    await gateway.wait_for_gate("half")
    others = await joined(front, gateway, 20, STREAM, already=1)
    gateway.open_gate("half")
    replies = await asyncio.gather(first, *others)
    assert {(reply.status, reply.body) for reply in replies} == {(200, replies[0].body)}
    assert b'"error"' in replies[0].body
    await front.running.parts.exchanges.finished()
    assert (len(gateway.journal), len(front.entries)) == (1, 2)
    assert "hit" not in (await front.post(PATH, STREAM)).headers["Cache-Status"]


async def failing(front, gateway, count, times):
    """So many calls that wait for one of them, which fails before its first byte, and so do the next up to `times`."""
    gateway.set_fault("reset-before-head", times=times)
    gateway.set_fault("slow", gate="head", times=1)
    calls = await joined(front, gateway, count)
    gateway.open_gate("head")
    return calls


async def test_when_the_call_fails_before_a_byte_one_of_those_who_joined_begins_anew(front, gateway):
    calls = await failing(front, gateway, 6, times=1)
    replies = await asyncio.gather(*calls)
    assert sorted(reply.status for reply in replies) == [200] * 5 + [502]
    assert len(gateway.journal) == 2, "one that failed, one for all the others"
    assert sum("collapsed" in reply.headers["Cache-Status"] for reply in replies) == 4


@pytest.mark.parametrize("body", [SURE, STREAM], ids=["json", "stream"])
async def test_a_call_that_goes_back_to_the_queue_is_still_one_call_for_all_who_wait(front, gateway, body):
    gateway.recordings["full"] = Recording(
        (b'{"error":{"message":"no room"}}',),
        status=429,
        headers=(("Content-Type", "application/json"), ("Retry-After", "0")),
    )
    gateway.armed.append(Armed("raw", {"name": "full"}, times=1))
    gateway.set_fault("slow", gate="head", times=1)
    calls = await joined(front, gateway, 10, body)
    gateway.open_gate("head")
    replies = await asyncio.gather(*calls)
    assert {(reply.status, reply.body) for reply in replies} == {(200, replies[0].body)}
    assert len(gateway.journal) == 2, "one that was refused, one for all"
    assert len(front.entries) == 4
    assert not front.running.parts.in_flight._slots


async def test_whoever_began_anew_and_fails_again_is_told_so(front, gateway):
    calls = await failing(front, gateway, 4, times=2)
    replies = await asyncio.gather(*calls)
    assert [reply.status for reply in replies] == [502] * 4
    assert len(gateway.journal) == 2


async def test_an_answer_that_may_not_be_given_twice_sends_all_who_waited_on_their_own_way(front, gateway):
    """Together, not one after another: each would find the next empty answer useless too."""
    gateway.set_fault("empty")
    gateway.set_fault("slow", gate="head", times=1)
    calls = await joined(front, gateway, 5)
    gateway.open_gate("head")
    replies = await asyncio.gather(*calls)
    assert [reply.status for reply in replies] == [200] * 5
    assert len(gateway.journal) == 5
    assert sum("collapsed" in reply.headers["Cache-Status"] for reply in replies) == 0
    assert len(front.entries) == 10, "each has a hold of its own, and its ending"


async def test_a_refusal_of_the_gateway_goes_to_all_who_wait_and_to_nobody_later(gateway):
    async with proxied(gateway.url, REPEATS_PASS) as front:
        gateway.set_fault("slow", gate="head", times=1)
        gateway.set_fault("422", times=1)
        calls = await joined(front, gateway, 4)
        gateway.open_gate("head")
        replies = await asyncio.gather(*calls)
        assert [reply.status for reply in replies] == [422] * 4
        assert len(gateway.journal) == 1
        assert (await front.post(PATH, SURE)).status == 200


async def test_a_page_in_place_of_sound_is_kept_for_nobody(gateway):
    """Those who share the call are told so, and who asks next is given sound."""
    speech = {"model": "speech-standard", "input": "hi", "voice": "Kore"}
    policy = replace(DEFAULT_POLICY, cache=(CacheRule(Match(route="speech"), ttl_s=60),))
    async with proxied(gateway.url, policy) as front:
        gateway.set_fault("html200")
        gateway.set_fault("slow", gate="head")
        asking = [asyncio.create_task(front.post("/v1/audio/speech", speech)) for _ in range(2)]
        await gateway.wait_for_gate("head")
        await front.until(lambda: readers(front) == 2)
        gateway.open_gate("head")
        assert [(await one).status for one in asking] == [502, 502]
        gateway.clear_faults()
        reply = await front.post("/v1/audio/speech", speech)
        assert (reply.status, reply.headers["Content-Type"]) == (200, "audio/pcm")
