"""What MCP proxies have tripped over, one test each; `docs/mcp.md` says which test is about what."""

import gzip
from dataclasses import replace

import orjson
import pytest

from proxy.core.limits import Counts, Excess, Rate, RateMatch
from proxy.core.policy import DEFAULT_POLICY
from tests.proxies import proxied
from tests.raw import Raw, request
from tests.suites import call, listing, suites, tool

BOTH = {"Accept": "application/json, text/event-stream"}
PLAIN = {"Accept": "application/json"}
DONE = {"content": []}


@pytest.mark.parametrize("number", [0, -1, "", "0", "i-1", 12345678901234567890])
@pytest.mark.parametrize("accept", [PLAIN, BOTH], ids=["json", "both"])
@pytest.mark.parametrize("path", ["/mcp/calc", "/mcp"])
async def test_every_id_is_an_id_and_comes_back_as_it_was(number, accept, path):
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url) as front:
        name = "add" if path == "/mcp/calc" else "calc__add"
        reply = await front.post(path, call(name, number), headers=accept)
        assert orjson.dumps({"jsonrpc": "2.0", "id": number, "result": DONE}) in reply.body
        assert gateway.asked[-1][1]["id"] == number


async def test_an_error_under_no_id_is_told_under_the_callers():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url) as front:
        gateway.raw["calc"] = [b'data: {"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}\n\n']
        told = (await front.post("/mcp/calc", call("add", "mine"), headers=PLAIN)).json
        assert (told["id"], told["error"]["message"]) == ("mine", "no")


@pytest.mark.parametrize(
    "stream",
    [
        b'\xef\xbb\xbfdata: {"jsonrpc":"2.0","id":1,"result":{"x":"%s"}}\n\n',
        b'data: {"jsonrpc":"2.0","id":1,\r\ndata: "result":{"x":"%s"}}\r\n\r\n',
        b'id: 1\nretry: 100\ndata:\n\n: hello\n\nevent: message\ndata:{"jsonrpc":"2.0","id":1,"result":{"x":"%s"}}\n\n',
        b'data: {"jsonrpc":"2.0","id":1,"result":{"x":"%s"}}\r\r',
    ],
    ids=["byte-order mark", "two lines and CRLF", "priming and comments", "CR"],
)
async def test_every_way_to_write_an_event_is_read(stream):
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url) as front:
        gateway.raw["calc"] = [stream % "수문".encode()]
        assert (await front.post("/mcp/calc", call("add", 7), headers=PLAIN)).json["result"] == {"x": "수문"}


async def test_a_session_id_is_neither_taken_up_nor_given():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url) as front:
        headers = {**BOTH, "Mcp-Session-Id": "somebody's", "Last-Event-ID": "4"}
        reply = await front.post("/mcp/calc", call("add"), headers=headers)
        assert reply.status == 200
        assert "mcp-session-id" not in {name.lower() for name in reply.headers}
        assert not {"mcp-session-id", "last-event-id"} & gateway.headers[-1].keys()


@pytest.mark.parametrize("status", [403, 404, 429, 500, 502])
async def test_a_failure_of_a_list_is_over_when_the_suite_is_back(status):
    now_s = [1_800_000_000.0]
    async with (
        suites(calc=[tool("add")]) as gateway,
        proxied(gateway.url, wall=lambda: now_s[0]) as front,
    ):
        gateway.statuses["calc"] = status
        reply = await front.post("/mcp/calc", listing(), headers={"X-Sluicegate-Wait-Max": "0"})
        assert "result" not in reply.json
        gateway.statuses.clear()
        reply = await front.post("/mcp/calc", listing(2), headers={"Cache-Control": "max-age=60"})
        assert reply.json["result"]["tools"] == [tool("add")]


async def test_refusals_of_pace_do_not_make_a_suite_look_broken():
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url) as front:
        gateway.statuses["calc"] = 429
        for number in range(8):
            told = (await front.post("/mcp/calc", call("add", number), headers={"X-Sluicegate-Wait-Max": "0"})).json
            assert told["error"]["code"] == -32003
        gateway.statuses.clear()
        assert (await front.post("/mcp/calc", call("add", 9))).json["result"] == DONE


async def test_a_limit_is_the_teams_and_a_new_session_does_not_reset_it():
    limit = Rate("calls", Counts.REQUESTS, 2, 600.0, RateMatch(method="tools/call"), excess=Excess.REFUSE)
    policy = replace(DEFAULT_POLICY, rates=(limit,))
    async with suites(calc=[tool("add")]) as gateway, proxied(gateway.url, policy) as front:
        told = []
        for session in ("a", "b", "c"):
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
            await front.post("/mcp/calc", body)
            reply = await front.post("/mcp/calc", call("add", 1), headers={"Mcp-Session-Id": session})
            told.append(reply.json.get("error", {}).get("data", {}).get("reason"))
        assert told == [None, None, "limit_exhausted"]
        assert gateway.methods.count("calc tools/call") == 2


async def test_an_answer_in_an_encoding_nobody_asked_for_is_an_error_of_the_gateway(front, gateway):
    gateway.set_fault("gzip", times=1)
    reply = await front.post("/mcp/calc", call("add", 4, a=1, b=2), headers=PLAIN)
    told = reply.json
    assert told["id"] == 4
    assert "error" in told or told["result"]["content"][0]["text"] == "3"
    assert not reply.body.startswith(gzip.compress(b"")[:3])
    assert (await front.post("/mcp/calc", call("add", 5, a=1, b=2))).json["result"]


async def test_proxies_in_between_are_told_not_to_hold_a_stream_back(front):
    reply = await front.post("/mcp/calc", call("add", 1, a=1, b=2), headers=BOTH)
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    assert reply.headers["X-Accel-Buffering"] == "no"
    assert "no-cache" in reply.headers["Cache-Control"]
    assert "Content-Encoding" not in reply.headers


@pytest.mark.parametrize("path", ["/mcp", "/mcp/calc", "/v1/mcp/calc/"])
@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"])
async def test_other_methods_have_an_answer_and_reach_no_suite(front, gateway, path, method):
    reply = await front.call(method, path)
    assert reply.status == (204 if method == "OPTIONS" else 405)
    assert "POST" in reply.headers["Allow"]
    assert not gateway.journal


async def test_a_client_without_a_name_is_served(front, gateway):
    body = orjson.dumps(call("add", 1, a=1, b=2))
    raw = await Raw.open(front.address)
    await raw.send(request("POST", "/mcp/calc", f"Content-Length: {len(body)}", "Accept: application/json") + body)
    reply = await raw.reply()
    assert reply.status == 200
    raw.close()
    sent = {name.lower(): value for name, value in gateway.journal[-1].headers}
    assert sent["user-agent"].startswith("sluicegate/")


@pytest.mark.parametrize("method", ["resources/list", "prompts/get", "completion/complete", "tools/invented"])
async def test_a_method_nobody_here_knows_passes_and_costs_nothing(front, gateway, method):
    told = (await front.post("/mcp/calc", {"jsonrpc": "2.0", "id": 1, "method": method}, headers=PLAIN)).json
    assert told["error"]["code"] == -32601
    assert len(gateway.journal) == 1
    assert not front.entries


async def test_the_tool_is_read_from_the_body_and_never_from_a_header():
    team = replace(DEFAULT_POLICY.teams["default"], deny_tools=("calc.wipe",))
    policy = replace(DEFAULT_POLICY, teams={"default": team})
    async with suites(calc=[tool("add"), tool("wipe")]) as gateway, proxied(gateway.url, policy) as front:
        headers = {"Mcp-Method": "tools/list", "Mcp-Name": "add"}
        told = (await front.post("/mcp/calc", call("wipe"), headers=headers)).json
        assert told["error"]["data"]["reason"] == "tool_not_allowed"
        assert not gateway.asked
