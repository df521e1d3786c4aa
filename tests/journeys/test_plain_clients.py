"""HTTP clients without an SDK, with their own ideas of header lines: each gets the same answer."""

import asyncio
import json
from collections.abc import Callable
from urllib.request import Request, urlopen

import aiohttp
import httpx2
import pytest

from tests.journeys.test_mcp import CLOSED

ASK = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}


def by_urllib(url: str, body: bytes) -> bytes:
    with urlopen(Request(url, body), timeout=60) as answer:
        return answer.read()


def by_httpx(url: str, body: bytes) -> bytes:
    with httpx2.Client(timeout=60) as client:
        return client.post(url, content=body).raise_for_status().content


def by_httpx_without_user_agent(url: str, body: bytes) -> bytes:
    with httpx2.Client(headers={"User-Agent": ""}, timeout=60) as client:
        return client.post(url, content=body).raise_for_status().content


def by_httpx_in_pieces(url: str, body: bytes) -> bytes:
    with httpx2.Client(timeout=60) as client:
        return client.post(url, content=iter([body[:9], body[9:]])).raise_for_status().content


def by_aiohttp(url: str, body: bytes) -> bytes:
    async def post() -> bytes:
        async with aiohttp.ClientSession() as session, session.post(url, data=body) as answer:
            assert answer.status == 200
            return await answer.read()

    return asyncio.run(post())


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/", "/chat/completions"])
@pytest.mark.parametrize(
    "post", [by_urllib, by_httpx, by_httpx_without_user_agent, by_httpx_in_pieces, by_aiohttp], ids=lambda f: f.__name__
)
def test_each_is_answered_and_looks_the_same_to_the_gateway(url, gateway, post: Callable[[str, bytes], bytes], path):
    answer = json.loads(post(url + path, json.dumps(ASK).encode()))
    assert answer["choices"][0]["message"]["content"]
    (seen,) = gateway.seen()
    assert (seen.method, seen.target) == ("POST", "/v1/gateway/chat/completions/")
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers["user-agent"].startswith("sluicegate/")


def test_an_answer_comes_plain_to_a_client_that_could_unpack_it(url):
    with httpx2.Client(headers={"Accept-Encoding": "gzip, deflate, br, zstd"}, timeout=60) as client:
        answer = client.post(f"{url}/v1/chat/completions", json=ASK)
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("rpc_id", [0, 1, -1, "0", "i-1", "", 2**53, 1.5])
def test_a_tool_call_is_answered_under_its_own_id(http, url, rpc_id):
    call = {"jsonrpc": "2.0", "id": rpc_id, "method": "tools/list"}
    answer = http.post(f"{url}/v1/mcp/calc", json=call, headers={"Accept": "application/json, text/event-stream"})
    told = json.loads(answer.text.partition("data: ")[2] or answer.text)
    assert told["id"] == rpc_id
    assert type(told["id"]) is type(rpc_id)


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/event-stream", "text/event-stream;q=0.5"])
def test_a_tool_call_is_answered_in_the_form_its_caller_takes(url, accept):
    """The gateway answers 406 to three of these and an event to all others."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    with httpx2.Client(timeout=60) as client:
        if accept is None:
            del client.headers["accept"]
        answer = client.post(f"{url}/v1/mcp/calc", json=call, headers={"Accept": accept} if accept else None)
    assert answer.status_code == 200
    events = accept is not None and accept.startswith("text/event-stream")
    assert answer.headers["content-type"].startswith("text/event-stream" if events else "application/json")
    told = json.loads(answer.text.partition("data: ")[2] if events else answer.text)
    assert told["result"]["content"] == [{"type": "text", "text": "3"}]


def test_a_notification_is_taken_here(http, url, gateway):
    """The gateway would refuse it, and with that end the session of most clients."""
    for method in ("notifications/initialized", "notifications/cancelled"):
        answer = http.post(f"{url}/v1/mcp/calc", json={"jsonrpc": "2.0", "method": method})
        assert (answer.status_code, answer.content) == (202, b"")
    assert not gateway.seen()


@pytest.mark.parametrize(("suite", "status"), [("mailbox", 403), ("desktop", 404), ("nowhere", 404)])
def test_a_suites_refusal_keeps_its_status_and_its_sentence(http, url, suite, status):
    """In both forms: the one that MCP clients show, and the gateway's own."""
    answer = http.post(f"{url}/v1/mcp/{suite}", json={"jsonrpc": "2.0", "id": 0, "method": "tools/list"})
    told = answer.json()
    assert (answer.status_code, told["detail"]) == (status, CLOSED[suite])
    assert (told["id"], told["error"]["message"]) == (0, CLOSED[suite])


def test_a_suites_own_json_rpc_error_comes_as_it_is(http, url, gateway):
    own = '{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no such cursor"}}'
    gateway.record("own", own, status=400, headers={"Content-Type": "application/json"})
    gateway.arm_line("raw name=own")
    answer = http.post(f"{url}/v1/mcp/calc", json={"jsonrpc": "2.0", "id": "i-1", "method": "tools/list"})
    assert (answer.status_code, answer.text) == (400, own.replace("null", '"i-1"'))


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_suite_takes_posts_only(http, url, gateway, method):
    answer = http.request(method, f"{url}/v1/mcp/calc", headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert "POST" in answer.json()["error"]["message"]
    assert not gateway.seen()


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"jsonrpc":"1.0","id":1,"method":"x"}', b'{"jsonrpc":"2.0","id":1}'])
def test_what_is_no_json_rpc_is_refused_here(http, url, gateway, body):
    answer = http.post(f"{url}/v1/mcp/calc", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in (-32700, -32600)
    assert not gateway.seen()
