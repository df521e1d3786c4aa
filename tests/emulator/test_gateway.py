import asyncio
import io

import aiohttp
import pytest

from tests.ports import held_port

LIMIT = 26_214_400


@pytest.mark.fact("edge-block")
async def test_an_empty_user_agent_is_blocked_in_plain_text(api):
    reply = await api.get("models/", headers={"User-Agent": ""})
    assert (reply.status, reply.body) == (403, b"error code: 1010")
    assert reply.headers["Content-Type"].startswith("text/plain")


@pytest.mark.fact("edge-first")
async def test_the_edge_blocks_before_the_key_is_judged(api):
    reply = await api.get("models/", key=None, headers={"User-Agent": ""})
    assert (reply.status, reply.body) == (403, b"error code: 1010")


async def test_a_missing_user_agent_is_an_empty_one(api):
    answer = await api.raw(b"GET /v1/gateway/models/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert answer.endswith(b"error code: 1010")


@pytest.mark.fact("body-413-declared")
async def test_a_declared_length_above_25_mb_is_refused_unread(api):
    head = (
        b"POST /v1/gateway/chat/completions/ HTTP/1.1\r\nHost: a\r\nUser-Agent: t\r\nConnection: close\r\n"
        b"Authorization: Bearer sk-emu-alpha-1\r\nContent-Length: %d\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(api.gateway.options.host, api.gateway.port)
    writer.write(head % (LIMIT + 1))
    answer = await reader.readuntil(b"25MB.")
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(b'{"detail":"Request body too large. Maximum size is 25MB.')


@pytest.mark.fact("body-413-real")
async def test_a_body_that_grows_above_25_mb_is_refused(api):
    async def too_much():
        for _ in range(25):
            yield b" " * 1_048_576
        yield b" "

    reply = await api.call("POST", "chat/completions/", data=too_much())
    assert reply.refusal == (413, "Request body too large. Maximum size is 25MB.")


@pytest.mark.fact("body-limit")
async def test_exactly_25_mb_are_read(api):
    reply = await api.call("POST", "chat/completions/", data=io.BytesIO(b" " * LIMIT))
    assert reply.status == 422
    assert api.gateway.journal[-1].body_bytes == LIMIT


async def test_a_caller_who_waits_to_be_told_to_continue_is_told(api):
    head = (
        b"POST /v1/gateway/chat/completions/ HTTP/1.1\r\nHost: a\r\nUser-Agent: t\r\nConnection: close\r\n"
        b"Authorization: Bearer sk-emu-alpha-1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(api.gateway.options.host, api.gateway.port)
    writer.write(head)
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"{}")
    assert (await reader.read()).startswith(b"HTTP/1.1 422 ")
    writer.close()


@pytest.mark.fact("path-404")
async def test_a_wrong_path_is_404(api):
    for path in ("/v1/models/", "/", "embeddings/", "chat/completions/more/", "/v1/gateway"):
        assert (await api.get(path)).status == 404, path


@pytest.mark.fact("path-slash")
async def test_only_the_documented_form_of_a_path_answers(api):
    for path in ("models", "credits", "mcp", "models/gpt-4o", "models//", "models/%2F", "/v1//gateway/models/"):
        assert (await api.get(path)).status == 404, path
    assert (await api.post("chat/completions", {})).status == 404


@pytest.mark.fact("path-prefix")
async def test_every_path_begins_with_the_version_prefix(api):
    assert (await api.get("/v1/gateway/models/")).status == 200
    assert (await api.get("/v2/gateway/models/")).status == 404


async def test_slashes_can_be_forgiven(emulated):
    async with emulated(strict_slashes=False) as api:
        assert (await api.get("models")).status == 200
        assert (await api.get("models/")).status == 200


@pytest.mark.fact("error-500")
async def test_an_upstream_error_is_a_500_with_a_detail(api):
    reply = await api.chat("[[fault:500]]")
    assert reply.refusal == (500, "Internal server error")


@pytest.mark.fact("error-503")
async def test_maintenance_is_a_503(api):
    reply = await api.chat("[[fault:503]]")
    assert reply.refusal == (503, "Service is temporarily stopped for maintenance")


async def test_a_wrong_method_on_another_path_is_405(api):
    assert (await api.get("chat/completions/")).refusal == (405, "Method Not Allowed")


async def test_answers_repeat_with_the_seed_and_ids_tell_calls_apart(emulated):
    async with emulated(seed=7) as one, emulated(seed=7) as two, emulated(seed=8) as other:
        first, again = (await one.chat()).json, (await one.chat()).json
        assert (await two.chat()).json == first
        assert (await other.chat()).json["choices"] != first["choices"]
    assert again["choices"] == first["choices"]
    assert again["id"] != first["id"]


async def test_a_stream_says_what_the_json_answer_says(api):
    text = (await api.chat("hello")).json["choices"][0]["message"]["content"]
    chunks = (await api.chat("hello", stream=True)).events
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == text


async def test_the_gateway_can_be_taken_away_and_brought_back(emulated):
    with held_port() as port:
        async with emulated(port=port) as api:
            await api.chat()
            await api.gateway.stop()
            with pytest.raises(aiohttp.ClientConnectorError):
                await api.chat()
            await api.gateway.start()
            assert (await api.chat()).status == 200
            assert [seen.number for seen in api.gateway.journal] == [1, 2]


async def test_the_gateway_stops_at_once_with_answers_held_and_hanging(emulated):
    async with emulated() as api:
        held = asyncio.create_task(api.chat("[[fault:slow gate=never]]"))
        hung = asyncio.create_task(api.chat("[[fault:hang]]"))
        await api.gateway.wait_for(lambda journal: len(journal) == 2)
        await api.gateway.wait_for_gate("never")
        await api.gateway.stop()
        for task in (held, hung):
            with pytest.raises(aiohttp.ClientError):
                await task
