"""A head that was judged before is not judged again, and nothing that differs is taken for it."""

import pytest

from proxy.config.secret import Secret
from proxy.server.normalise import KINDS_MAX
from tests.proxies import CHAT
from tests.raw import Raw, request

BODY = b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}]}'


def heads(front):
    return front.running.parts.heads._known


async def test_the_same_lines_are_judged_once_whatever_the_length_of_the_body(front):
    for content in ("hi", "hi there", "hi again"):
        body = {**CHAT, "messages": [{"role": "user", "content": content}]}
        assert (await front.post("/v1/chat/completions", body)).status == 200
    assert len(heads(front)) == 1


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["Host: evil.example"], b"403"),
        (["Host: localhost", "Origin: https://evil.example"], b"403"),
        (["Host: localhost", "Content-Length: 5"], b"400"),
        (["Host: localhost", "Authorization: Bearer a", "x-api-key: b"], b"400"),
        (["Host: localhost", "Upgrade: h2c"], b"400"),
        (["Host: localhost", "Idempotency-Key: a", "Idempotency-Key: b"], b"400"),
    ],
)
async def test_a_head_that_is_refused_is_refused_again_after_a_good_one(front, lines, status):
    assert (await front.post("/v1/chat/completions", CHAT)).status == 200
    for _ in range(2):
        raw = await Raw.open(front.address)
        head = "POST /v1/chat/completions HTTP/1.1\r\n" + "".join(f"{line}\r\n" for line in lines)
        await raw.send(head.encode() + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        assert (await raw.reader.readline()).split()[1] == status
        raw.close()


async def test_other_methods_targets_and_versions_are_other_heads(front):
    for method, target in (("GET", "/v1/models"), ("GET", "/v1/models/"), ("GET", "/v1/models?x=1")):
        raw = await Raw.open(front.address)
        await raw.send(request(method, target, "Connection: close"))
        assert b"200" in await raw.reader.readline()
        raw.close()
    assert len(heads(front)) == 3


async def test_what_is_remembered_is_bounded(front):
    limit = 1024
    for number in range(limit + 5):
        await front.get(f"/v1/nowhere-{number}")
    assert len(heads(front)) == 0, "what leads nowhere is not kept"
    for number in range(limit + 5):
        await front.get("/-/health", headers={"traceparent": str(number)})
    assert len(heads(front)) == limit


async def test_lines_for_keys_that_were_replaced_do_not_pile_up(front):
    raw = await Raw.open(front.address)
    for number in range(2 * KINDS_MAX):
        front.running.parts.state.gateway_key = Secret(f"sk-replaced-{number}")
        await raw.send(request("GET", "/v1/credits"))
        await raw.reply()
    raw.close()
    (known,) = front.running.parts.heads._known.values()
    assert 0 < len(known.up) <= KINDS_MAX
