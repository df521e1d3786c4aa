"""Spans of requests as a real collector gets them: names, parents, figures, and nothing that was said."""

import asyncio
import sys

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from proxy.config.sources import load
from proxy.core.policy import DEFAULT_POLICY
from proxy.observe import traces
from proxy.server.opening import at_rest
from tests.collector import attributes, collecting
from tests.proxies import CHAT, NATIVE, proxied

SERVER, CLIENT = Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}


async def test_a_call_is_a_span_and_its_call_to_the_gateway_a_child(gateway):
    async with collecting() as collector:
        async with proxied(gateway.url, otlp_endpoint=collector.url) as front:
            reply = await front.post(
                "/v1/chat/completions", CHAT, headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
            )
            event = await front.request()
        (served,), (sent,) = collector.of(SERVER), collector.of(CLIENT)
    assert event["trace"] == served.trace_id.hex() == sent.trace_id.hex() == TRACE
    assert served.parent_span_id.hex() == "00f067aa0ba902b7"
    assert sent.parent_span_id == served.span_id
    assert served.name == sent.name == "POST /v1/chat/completions"
    about, asked = attributes(served), attributes(sent)
    assert about["gen_ai.operation.name"] == "chat"
    assert about["gen_ai.request.model"] == CHAT["model"]
    assert about["http.response.status_code"] == asked["http.response.status_code"] == 200
    assert about["sluicegate.request_id"] == reply.headers["X-Request-ID"]
    assert about["sluicegate.ending"] == "answered"
    usage = reply.json["usage"]
    assert asked["gen_ai.usage.input_tokens"] == usage["prompt_tokens"]
    assert asked["gen_ai.usage.output_tokens"] == usage["completion_tokens"]
    assert served.start_time_unix_nano <= sent.start_time_unix_nano <= sent.end_time_unix_nano
    assert sent.end_time_unix_nano <= served.end_time_unix_nano
    assert served.status.code == Status.STATUS_CODE_UNSET


async def test_a_caller_without_a_trace_begins_one_and_the_log_names_it(gateway):
    async with collecting() as collector:
        async with proxied(gateway.url, otlp_endpoint=collector.url) as front:
            await front.post("/v1/messages", NATIVE)
            event = await front.request()
        (served,) = collector.of(SERVER)
    assert not served.parent_span_id
    assert event["trace"] == served.trace_id.hex()


async def test_a_tool_is_named_as_its_convention_says(gateway):
    async with collecting() as collector:
        async with proxied(gateway.url, otlp_endpoint=collector.url) as front:
            await front.post("/v1/mcp/calc", TOOL, headers={"Accept": "application/json, text/event-stream"})
        (served,), (sent,) = collector.of(SERVER), collector.of(CLIENT)
    assert served.name == sent.name == "tools/call add"
    about = attributes(served)
    assert about["mcp.method.name"] == "tools/call"
    assert about["gen_ai.tool.name"] == "add"
    assert about["gen_ai.operation.name"] == "execute_tool"
    assert about["sluicegate.suite"] == "calc"


async def test_a_refusal_is_an_error_without_a_call_to_the_gateway(gateway):
    async with collecting() as collector:
        async with proxied(gateway.url, otlp_endpoint=collector.url) as front:
            await front.post("/v1/nothing-such", CHAT)
        (first,) = collector.of(SERVER)
        assert not collector.of(CLIENT)
    assert attributes(first)["error.type"] == "unknown_route"
    assert first.status.code == Status.STATUS_CODE_ERROR
    assert "nothing-such" not in first.name


async def test_a_hit_asks_nobody(gateway):
    async with collecting() as collector:
        async with proxied(gateway.url, otlp_endpoint=collector.url) as front:
            for _ in range(2):
                await front.post("/v1/chat/completions", CHAT | {"temperature": 0})
        cached = [attributes(span)["sluicegate.cache"] for span in collector.of(SERVER)]
        assert len(collector.of(CLIENT)) == 1
    assert cached == ["miss", "hit"]


async def test_the_gateways_error_is_that_of_the_child(gateway):
    gateway.set_fault("402")
    async with collecting() as collector:
        async with proxied(gateway.url, otlp_endpoint=collector.url) as front:
            await front.post("/v1/chat/completions", CHAT)
        (sent,) = collector.of(CLIENT)
    assert attributes(sent)["error.type"] == "402"
    assert sent.status.code == Status.STATUS_CODE_ERROR


async def test_a_collector_that_refuses_is_told_of_in_the_log_and_slows_nobody(gateway):
    async with collecting() as collector:
        collector.status = 400
        async with proxied(gateway.url, otlp_endpoint=collector.url) as front:
            reply = await front.post("/v1/chat/completions", CHAT)
            assert reply.status == 200
            await asyncio.to_thread(front.running.parts.traces._provider.force_flush)
            await front.until(lambda: any(event["event"] == "spans_lost" for event in front.events))


async def test_a_proxy_without_a_collector_makes_no_spans(gateway):
    async with proxied(gateway.url) as front:
        await front.post("/v1/chat/completions", CHAT)
        assert "trace" not in await front.request()
        assert front.running.parts.traces is None


def test_the_extra_that_is_missing_is_named(monkeypatch):
    """As on a machine where it is not installed: the import fails."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(traces.ExtraMissing, match=r"pip install '\.\[otel\]'"):
        traces.Traces("http://127.0.0.1:4318", lambda _: None)


async def test_a_question_to_a_proxy_at_rest_makes_no_spans(tmp_path):
    (tmp_path / "policies").mkdir()
    flags = {"data": str(tmp_path), "policies": str(tmp_path / "policies"), "otlp_endpoint": "http://127.0.0.1:1"}
    async with at_rest(load(flags, {}, None), DEFAULT_POLICY) as parts:
        assert parts.traces is None
