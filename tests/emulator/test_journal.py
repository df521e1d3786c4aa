import asyncio
import hashlib

import aiohttp
import pytest

from proxy.emulator.journal import REQUESTS_KEPT, Journal


async def test_a_request_is_remembered_as_it_came(api):
    body = b'{"model":"gpt-4o","messages":[{"role":"user","content":"a"}]}'
    reply = await api.call("POST", "chat/completions/?b=%2F", data=body, headers={"X-One": "1"})
    seen = api.gateway.journal[0]
    assert (seen.number, seen.method, seen.target) == (1, "POST", "/v1/gateway/chat/completions/?b=%2F")
    assert (seen.header("x-one"), seen.key, seen.member) == ("1", api.alpha, "alpha")
    assert (seen.body, seen.body_bytes, seen.body_sha256) == (body, len(body), hashlib.sha256(body).hexdigest())
    assert (seen.status, seen.answered_bytes) == (200, len(reply.body))
    await api.gateway.wait_for(lambda journal: journal[0].finished)
    assert not seen.caller_gone


async def test_a_request_tells_when_its_limits_were_looked_at(emulated):
    async with emulated(amount_scale=1 / 120) as api:
        for _ in range(2):
            await api.get("credits/")
            api.clock.forward(5.0)
        await api.get("credits/", key=None)
        assert [(seen.status, seen.judged_s) for seen in api.gateway.journal] == [
            (200, 1000.0),
            (429, 1005.0),
            (401, None),
        ]


async def test_a_long_body_is_remembered_by_its_digest_only(api):
    await api.call("POST", "chat/completions/", data=b" " * 65_537)
    assert (api.gateway.journal[0].body, api.gateway.journal[0].body_bytes) == (None, 65_537)


async def test_a_caller_who_leaves_a_silent_answer_is_noticed(api):
    task = asyncio.create_task(api.chat("[[fault:slow gate=a]]"))
    await api.gateway.wait_for_gate("a")
    task.cancel()
    await api.gateway.wait_for(lambda journal: journal[0].caller_gone)
    assert not api.gateway.journal[0].finished
    assert api.gateway.journal[0].charged > 0


async def test_a_caller_who_leaves_a_stream_is_noticed(api):
    url = f"{api.gateway.url}/v1/gateway/chat/completions/"
    said = {"role": "user", "content": "[[fault:slow gate=a at=3]]"}
    headers = {"Authorization": f"Bearer {api.alpha}"}
    body = {"model": "gpt-4o", "stream": True, "messages": [said]}
    async with api.session.post(url, json=body, headers=headers) as response:
        await response.content.readany()
        await api.gateway.wait_for_gate("a")
    await api.gateway.wait_for(lambda journal: journal[0].caller_gone)
    assert api.gateway.journal[0].answered_bytes > 0


async def test_only_the_newest_requests_are_kept_and_numbers_go_on():
    journal = Journal()
    for _ in range(REQUESTS_KEPT + 2):
        journal.open("GET", "/", [])
    assert (len(journal), journal[0].number, journal[-1].number) == (REQUESTS_KEPT, 3, REQUESTS_KEPT + 2)
    assert [seen.number for seen in journal[:2]] == [3, 4]


async def test_waiting_for_what_never_comes_ends(api):
    with pytest.raises(TimeoutError):
        await api.gateway.wait_for(lambda journal: len(journal) > 0, within_s=0.01)


async def test_reset_forgets_everything(api):
    await api.chat()
    await api.add()
    api.gateway.set_fault("429")
    api.gateway.reset()
    assert len(api.gateway.journal) == 0
    assert api.gateway.credits("alpha") == 1000 * 10**8
    assert not api.gateway.world.counters.used()
    assert (await api.chat()).status == 200


async def test_refused_requests_are_in_the_journal_too(api):
    await api.get("models/", key=None)
    await api.get("nowhere/")
    assert [(seen.status, seen.member) for seen in api.gateway.journal] == [(401, None), (404, None)]


async def test_a_connection_that_is_reset_while_reading_the_body_leaves_no_trace_of_an_answer(api):
    async def broken():
        yield b"{"
        raise ConnectionError

    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await api.call("POST", "chat/completions/", data=broken())
    await api.gateway.wait_for(lambda journal: any(seen.caller_gone for seen in journal))
    assert api.gateway.journal[0].status is None
