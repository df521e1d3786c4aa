"""Small bodies are judged at once, large ones elsewhere, so that no stream waits for them."""

from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest

from proxy.core.body import LARGE, Dialect
from proxy.errors import ProxyError
from proxy.server.judge import Judge
from tests.proxies import CHAT, proxied


def sized(size):
    frame = len(orjson.dumps({"model": "a", "text": ""}))
    return orjson.dumps({"model": "a", "text": "x" * (size - frame)})


class Pools:
    """Threads stand in for processes, and are counted."""

    def __init__(self):
        self.made = 0

    def __call__(self):
        self.made += 1
        return ThreadPoolExecutor(1)


async def test_only_what_is_large_is_judged_elsewhere():
    pools = Pools()
    judge = Judge(pools)
    for body, elsewhere in ((sized(LARGE), 0), (sized(LARGE + 1), 1)):
        assert (judge.at_once(body, Dialect.CHAT) is None) == bool(elsewhere)
        assert (await judge.facts(body, Dialect.CHAT)).model == "a"
        assert pools.made == elsewhere
    with pytest.raises(ProxyError, match="strict JSON"):
        await judge.facts(sized(LARGE + 1) + b"}", Dialect.CHAT)
    await judge.close()


async def test_a_call_with_a_large_body_goes_the_same_way(gateway):
    pools = Pools()
    async with proxied(gateway.url) as front:
        front.running.parts.judge._make_pool = pools
        assert (await front.post("/v1/chat/completions", CHAT)).status == 200
        assert pools.made == 0
        large = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "x" * LARGE}]}
        assert (await front.post("/v1/chat/completions", large)).status == 200
        assert pools.made == 1
