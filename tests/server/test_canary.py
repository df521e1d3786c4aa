"""Secrets and prompts driven through every route and every refusal are in no output: log, audit, metrics, errors, pages,
the whole admin API, spans, and the files of the data folder with their copies.
"""

import hashlib
import traceback

import orjson
import pytest

from proxy.admin.page.table import VIEWS
from proxy.admin.table import CALLS
from proxy.config.settings import LogFormat, LogLevel
from proxy.core.policy import KeyRef, Policy, Team
from proxy.observe.log import RequestLog
from proxy.server.routes import ROUTES
from proxy.stores.ledger.sqlite import SqliteLedger
from tests.collector import collecting
from tests.proxies import CHAT, afternoon_s, proxied
from tests.raw import Raw, request

VIRTUAL, GATEWAY, PROMPT = "canary-virtual-key-1234567", "sk-emu-alpha-1", "canary-prompt-text"
TOOL = "canary-tool-that-nobody-has"
"""A name that a caller made up: the books keep it, and nothing has it as a label."""
POLICY = Policy(
    teams={"red": Team("red", (KeyRef("laptop", hashlib.sha256(VIRTUAL.encode()).digest()),))}, open_team=None
)
BODIES = {
    "chat": CHAT,
    "native": {"model": "claude-sonnet-x", "max_tokens": 16},
    "native-count": {"model": "claude-sonnet-x"},
    "responses": {"model": "gpt-4o-mini"},
    "mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": TOOL, "arguments": {"q": PROMPT}}},
}
FAULTS = (None, "402", "1010", "html", "html200", "cut", "reset-before-head", "empty-body", "error-midway", "redirect")


def body_of(name, *, stream):
    prompt = [{"role": "user", "content": PROMPT}]
    body = {"messages": prompt, "input": prompt, "metadata": {"k": PROMPT}} | BODIES.get(name, {})
    if name == "mcp":
        return BODIES["mcp"]
    return body | {"messages": prompt, "stream": stream}


@pytest.mark.parametrize("level", ["debug"])
async def test_no_secret_and_no_prompt_is_in_any_output(gateway, level, tmp_path):
    lines: list[bytes] = []
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=afternoon_s())
    async with (
        collecting() as collector,
        proxied(
            gateway.url,
            POLICY,
            auth="keys",
            key=GATEWAY,
            ledger=ledger,
            data=str(tmp_path),
            otlp_endpoint=collector.url,
        ) as front,
    ):
        front.running.parts.log.__init__(lines.append, form=LogFormat.JSON, level=LogLevel(level))
        seen: list[bytes] = []
        for fault in FAULTS:
            gateway.clear_faults()
            if fault:
                gateway.set_fault(fault)
            for route in ROUTES:
                path = "/v1/" + route.path.replace("+", "").format(model="gpt-4o-mini", id="resp_canary", suite="calc")
                for stream in (False, True):
                    body = orjson.dumps(body_of(route.name, stream=stream)) if route.method == "POST" else b""
                    for key in (VIRTUAL, "canary-wrong-key"):
                        raw = await Raw.open(front.address)
                        lines_up = (f"Authorization: Bearer {key}", "Connection: close", f"X-Odd: {PROMPT}")
                        await raw.send(request(route.method, f"{path}?q={key}", *lines_up, body=body))
                        head, _, answer = (await raw.reader.read()).partition(b"\r\n\r\n")
                        # A gateway's answer may speak of what it was asked; what is ours may not.
                        seen.append(head if b"X-Sluicegate-Error" not in head else head + answer)
                        raw.close()
        malformed = await Raw.open(front.address)
        await malformed.send(f"GET /?key={VIRTUAL} HTTP/1.1\r\nAuthorization: Bearer {VIRTUAL}\x01\r\n\r\n".encode())
        seen.append(await malformed.reader.read())
        malformed.close()
        pages = [view.path.format(team="red") for view in VIEWS]
        twins = [view.twin.format(team="red") for view in VIEWS]
        status, issued = await front.admin("POST", "/api/keys", {"team": "red", "note": "canary"})
        assert status == 200
        assert (await front.admin("POST", "/api/ledger/backup"))[0] == 200
        exports = [row.path for row in CALLS if row.method == "GET" and "{" not in row.path]
        metrics = {"Accept": "application/openmetrics-text; version=1.0.0"}
        for page in (*pages, *twins, *exports, "/metrics", "/healthz", "/readyz"):
            async with front.client.get(front.running.admin_url + page, headers=metrics) as answer:
                assert answer.status in {200, 503}, page
                seen.append(await answer.read())
                if page == "/metrics":
                    labels = seen[-1]
        assert repr(front.running.parts.settings).count(GATEWAY) == 0
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any("backups" in path.parts for path in files)
    assert len(lines) > 200
    assert any(b'"audit"' in line for line in lines)
    assert len(collector.spans) > 200
    assert TOOL.encode() not in b"".join([labels, *lines, *collector.raw])
    canaries = (VIRTUAL, "canary-wrong-key", GATEWAY, PROMPT, issued["key"])
    for canary in map(str.encode, canaries):
        assert canary not in b"".join(lines), canary
        assert canary not in b"".join(seen), canary
        assert canary not in b"".join(collector.raw), canary
        assert not [path for path, held in files.items() if canary in held], canary


async def test_a_fault_of_ours_tells_its_place_to_the_log_and_nothing_to_the_caller(gateway):
    """A failing part stands in for a bug; its text holds a prompt."""
    lines: list[bytes] = []
    async with proxied(gateway.url) as front:

        def failing(*_):
            raise RuntimeError(PROMPT)

        front.running.parts.log.__init__(lines.append, form=LogFormat.JSON, level=LogLevel.DEBUG)
        front.running.parts.judge.at_once = failing
        reply = await front.post("/v1/chat/completions", CHAT)
    assert (reply.status, reply.error["reason"]) == (500, "fault")
    assert PROMPT.encode() not in reply.body + b"".join(lines)
    assert b"RuntimeError" in b"".join(lines)
    assert traceback.__name__.encode() not in reply.body


def test_the_log_masks_what_looks_like_a_secret_whatever_its_field():
    lines: list[bytes] = []
    log = RequestLog(lines.append, form=LogFormat.JSON, level=LogLevel.DEBUG)
    log.request({"user_agent": f"x Bearer {VIRTUAL}", "note": "sk-abcdefgh12345"})
    assert VIRTUAL.encode() not in lines[0]
    assert b"sk-abcdefgh12345" not in lines[0]
