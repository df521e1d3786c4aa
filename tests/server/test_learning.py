"""`estimate: learned`, on real sockets: what the gateway counted bounds later calls, also after a restart."""

import base64
import inspect
import random
from dataclasses import replace
from decimal import Decimal

import pytest

from proxy.core import pricing
from proxy.core.learned import SURE
from proxy.core.policy import DEFAULT_POLICY
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.pricing import Estimate
from proxy.stores.ledger.sqlite import SqliteLedger
from tests.proxies import proxied

CREDIT = 10**8
RULES = {
    estimate: replace(
        DEFAULT_POLICY,
        prices=PriceTable((Rule("models", "*", Price(1000 * CREDIT, 1000 * CREDIT, output_tokens_max=10)),)),
        estimate=estimate,
    )
    for estimate in Estimate
}
TEXTS = {
    "korean": "오늘은 봄바람이 불어서 강가를 따라 오래 걸었습니다. " * 40,
    "base64": base64.b64encode(random.Random(7).randbytes(2400)).decode(),
    "code": inspect.getsource(pricing),
}


def asking(text):
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], "max_tokens": 4}


async def spoken(front, text):
    """What one call held and was charged, in credits."""
    assert (await front.post("/v1/chat/completions", asking(text))).status == 200
    event = await front.request()
    return Decimal(event["held"]), Decimal(event["charged"])


async def home(folder):
    return await SqliteLedger.open(folder / "ledger.db", now_s=0.0)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_what_was_learned_bounds_the_next_call_and_outlives_a_restart(text, gateway, tmp_path):
    async with proxied(gateway.url, RULES[Estimate.STRICT]) as front:
        strict, _ = await spoken(front, text)
    async with proxied(gateway.url, RULES[Estimate.LEARNED], ledger=await home(tmp_path)) as front:
        first, charged = await spoken(front, text)
        for _ in range(SURE - 1):
            assert await spoken(front, text) == (first, charged), "until enough is known, a token has two bytes"
        known, charged = await spoken(front, text)
        assert charged <= known < first < strict
    async with proxied(gateway.url, RULES[Estimate.LEARNED], ledger=await home(tmp_path)) as front:
        assert await spoken(front, text) == (known, charged)
    async with proxied(gateway.url, RULES[Estimate.STRICT], ledger=await home(tmp_path)) as front:
        assert (await spoken(front, text))[0] == strict, "nothing that was learned lowers it"


async def test_nothing_is_learned_where_the_policy_does_not_ask(gateway):
    async with proxied(gateway.url, RULES[Estimate.BYTES]) as front:
        for _ in range(SURE):
            await spoken(front, TEXTS["code"])
        assert await front.ledger.learned() == []


async def test_an_image_in_a_call_teaches_nothing_about_text(gateway):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    async with proxied(gateway.url, RULES[Estimate.LEARNED]) as front:
        await spoken(front, [{"type": "text", "text": TEXTS["code"]}, image])
        assert await front.ledger.learned() == []
        await spoken(front, TEXTS["code"])
        assert [one.answers for one in await front.ledger.learned()] == [1]


@pytest.mark.parametrize(
    ("estimate", "words"),
    [(Estimate.BYTES, None), (Estimate.LEARNED, True), (Estimate.STRICT, None)],
    ids=lambda given: given.value if isinstance(given, Estimate) else "",
)
async def test_explain_tells_how_text_is_counted(estimate, words, gateway):
    async with proxied(gateway.url, RULES[estimate]) as front:
        for _ in range(SURE):
            await spoken(front, TEXTS["code"])
        said = {"method": "POST", "path": "/v1/chat/completions", "body": asking(TEXTS["code"])}
        status, told = await front.admin("POST", "/api/explain", said)
        assert status == 200, told
        assert told["ceiling"]["estimate"] == estimate.value
        assert (told["ceiling"]["learned_density"] is not None) is bool(words)
        held, _ = await spoken(front, TEXTS["code"])
        assert Decimal(told["ceiling"]["credits"]) == held
