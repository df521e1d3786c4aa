"""What the log takes for harmless without a look, since this code alone makes it; and what a call is counted in."""

import asyncio

import pytest

from proxy.core.charges import WORD, Basis, Charge
from proxy.observe import log
from proxy.observe.metrics import OTHER, Metrics
from proxy.observe.money import count_ending
from proxy.server.pipeline import STAGES
from proxy.units import CREDIT, credit_text
from tests.proxies import CHAT
from tests.server.test_relay import readers

CACHE_WORDS = ("bypass", "miss", "hit", "stale", "collapsed")


@pytest.mark.parametrize(
    "word", [*WORD.values(), *(name for name, _ in STAGES), *CACHE_WORDS, *map(credit_text, (0, 1, -150000000, 10**20))]
)
def test_a_word_of_ours_is_harmless_and_looks_like_one(word):
    assert log._plainness(())(word)
    assert log._OUR_WORD.fullmatch(word)


def counts(metrics, *names):
    return {(name, *labels): value for name in names for labels, value in metrics.rows(name) if value}


async def test_a_call_is_counted_and_timed_once_everywhere(front):
    assert (await front.post("/v1/chat/completions", CHAT)).status == 200
    await front.until(lambda: bool(front.requests))
    metrics, (told,) = front.running.parts.metrics, front.requests
    team, model = told["team"], told["model"]
    assert counts(metrics, "requests_total", "cache_requests_total", "tokens_total", "reservations_total") == {
        ("requests_total", team, "chat", "200"): 1,
        ("cache_requests_total", "chat", told["cache"]): 1,
        ("tokens_total", team, model, "input"): told["input"],
        ("tokens_total", team, model, "output"): told["output"],
        ("reservations_total", "settled"): 1,
    }
    shown = metrics.render("")[0].decode()
    for name, label in (("request_duration", "chat"), ("overhead", "chat"), ("upstream_duration", model)):
        (line,) = [line for line in shown.splitlines() if line.startswith(f"sluicegate_{name}_seconds_count")]
        assert f'"{label}"' in line
        assert line.endswith(" 1.0")


async def test_a_call_that_was_refused_is_timed_as_our_own(front):
    assert (await front.post("/v1/no-such-route", {})).status == 404
    await front.until(lambda: bool(front.requests))
    shown = front.running.parts.metrics.render("")[0].decode()
    assert 'sluicegate_overhead_seconds_count{route="_none"} 1.0' in shown
    assert "sluicegate_upstream_duration_seconds_count" not in shown


@pytest.mark.parametrize(
    ("charge", "outcome", "delta"),
    [
        (None, "released", {}),
        (Charge(3 * CREDIT, Basis.USAGE), "settled", {("settlement_delta_credits_total", "under"): 1.0}),
        (Charge(4 * CREDIT, Basis.HOLD), "settled", {}),
        (Charge(6 * CREDIT, Basis.USAGE), "overrun", {("settlement_delta_credits_total", "over"): 2.0}),
    ],
)
def test_money_is_counted_by_how_the_hold_ended(charge, outcome, delta):
    metrics = Metrics(process=False)
    count_ending(metrics, "red", "m", 4 * CREDIT, charge)
    spent = {} if charge is None else {("spent_credits_total", "red", "m"): charge.credits / CREDIT}
    names = "reservations_total", "settlement_delta_credits_total", "spent_credits_total"
    assert counts(metrics, *names) == {("reservations_total", outcome): 1} | delta | spent


def timed(front):
    """How many were timed, by metric and its labels' values."""
    times = front.running.parts.metrics.times
    return {(name, *labels): sum(one.counts) for name, series in times.items() for labels, one in series.items()}


async def test_calls_that_joined_another_are_timed_as_our_own_and_saved_what_it_cost(front, gateway):
    gateway.set_fault("slow", gate="head")
    calls = [asyncio.create_task(front.post("/v1/chat/completions", {**CHAT, "temperature": 0})) for _ in range(3)]
    await front.until(lambda: readers(front) == 3)
    gateway.open_gate("head")
    replies = await asyncio.gather(*calls)
    assert [reply.status for reply in replies] == [200] * 3
    await front.until(lambda: len(front.requests) == 3)
    metrics, told = front.running.parts.metrics, front.requests[-1]
    (spent,) = [value for _, value in metrics.rows("spent_credits_total") if value]
    assert spent
    assert [value for _, value in metrics.rows("saved_credits_total") if value] == [2 * spent]
    assert counts(metrics, "cache_requests_total", "reservations_total", "tokens_total") == {
        ("cache_requests_total", "chat", "miss"): 1,
        ("cache_requests_total", "chat", "collapsed"): 2,
        ("reservations_total", "settled"): 1,
        ("tokens_total", told["team"], told["model"], "input"): front.requests[0]["input"],
        ("tokens_total", told["team"], told["model"], "output"): front.requests[0]["output"],
    }
    seen = timed(front)
    assert (seen["overhead_seconds", "chat"], seen["upstream_duration_seconds", told["model"]]) == (3, 1)
    assert metrics.total("requests_in_flight") == 0
    cost = front.requests[0]["charged"]
    said = sorted(reply.headers["X-Sluicegate-Credits"] for reply in replies)
    assert said == [f"charged=0, saved={cost}"] * 2 + [f"charged={cost}, saved=0"]
    for field in ("charged", "input", "upstream_s"):
        assert sum(field in story for story in front.requests) == 1, "only one of them went to the gateway"


async def test_an_answer_that_is_not_kept_is_counted_as_that(front, gateway):
    gateway.set_fault("empty")
    assert (await front.post("/v1/chat/completions", {**CHAT, "temperature": 0})).status == 200
    await front.until(lambda: bool(front.requests))
    assert counts(front.running.parts.metrics, "cache_requests_total") == {
        ("cache_requests_total", "chat", "uncacheable"): 1
    }


async def test_a_model_has_series_of_its_own_once_the_gateway_has_answered_well_for_it(front, gateway):
    gateway.set_fault("status", code=500, times=1)
    assert (await front.post("/v1/chat/completions", CHAT)).status == 500
    await front.until(lambda: len(front.requests) == 1)
    assert ("upstream_duration_seconds", OTHER) in timed(front)
    assert ("upstream_duration_seconds", CHAT["model"]) not in timed(front)
    assert (await front.post("/v1/chat/completions", CHAT)).status == 200
    await front.until(lambda: len(front.requests) == 2)
    assert timed(front)["upstream_duration_seconds", CHAT["model"]] == 1
