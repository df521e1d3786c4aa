"""A call leaves nothing behind that goes only when all of memory is searched for it.

Objects that hold on to each other keep a call's body and answer until then, and the search takes longer the more there
are of them.
"""

import asyncio
import gc
from collections import Counter

import orjson
import pytest

from tests.proxies import CHAT, proxied
from tests.raw import Raw, request

JSON = "Content-Type: application/json"
CALLS = 12


def chat(number, **more):
    body = {**CHAT, "messages": [{"role": "user", "content": f"asked {number}"}], **more}
    return request("POST", "/v1/chat/completions", JSON, body=orjson.dumps(body))


def message(number, **more):
    body = {"model": "claude-sonnet-x", "max_tokens": 9, "messages": [{"role": "user", "content": f"{number}"}], **more}
    return request("POST", "/v1/messages", JSON, body=orjson.dumps(body))


def response(number, **more):
    body = {"model": "gpt-5-mini", "input": f"asked {number}", **more}
    return request("POST", "/v1/responses", JSON, body=orjson.dumps(body))


# fmt: off
KINDS = {
    "chat":                 chat,
    "chat, streamed":       lambda number: chat(number, stream=True),
    "chat, kept":           lambda number: chat(number, temperature=0),
    "streamed, kept":       lambda number: chat(number, temperature=0, stream=True),
    "chat, a hit":          lambda _: chat(0, temperature=0),
    "messages":             message,
    "messages, streamed":   lambda number: message(number, stream=True),
    "responses":            response,
    "responses, streamed":  lambda number: response(number, stream=True),
    "credits":              lambda _: request("GET", "/v1/credits"),
    "models":               lambda _: request("GET", "/v1/models"),
    "refused by the judge": lambda _: request("POST", "/v1/chat/completions", JSON, body=b'{"model": nonsense}'),
    "refused by the route": lambda number: request("GET", f"/v1/nowhere/{number}"),
    "an idempotency key":   lambda number: chat(number).replace(b"Host:", b"Idempotency-Key: k%d\r\nHost:" % number),
}
# fmt: on


def of_each_call(found):
    """Classes of ours of which every call left one; a single one may be of a test before."""
    counted = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in found)
    return {
        name: count
        for name, count in counted.items()
        if count >= CALLS and name.startswith("proxy.") and not name.startswith("proxy.emulator")
    }


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_of_a_call_waits_for_a_search_of_memory(gateway, kind):
    async with proxied(gateway.url) as front:
        raw = await Raw.open(front.address)
        for number in range(3):
            await raw.send(KINDS[kind](number))
            await raw.reply()
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.disable()
        try:
            for number in range(3, 3 + CALLS):
                await raw.send(KINDS[kind](number))
                await raw.reply()
            await front.until(lambda: len(front.requests) == 3 + CALLS)
            await asyncio.sleep(0)
            gc.collect()
            found = of_each_call(gc.garbage)
        finally:
            gc.enable()
            gc.set_debug(0)
            gc.garbage.clear()
        raw.close()
        assert not found
