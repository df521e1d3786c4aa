"""One body that every client shows in full, whatever the gateway answered."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.errorbody import DETAIL_CHARS_MAX, gateway_body, own_body, read_gateway_error
from proxy.errors import REASONS, ProxyError

KEYS = {"type", "message", "param", "code", "retry_after_s", "resets_at"}

# fmt: off
BODIES = [
    # status body                                                           message                              detail           code
    (402, b'{"detail":"Credit balance exhausted"}',                         "Credit balance exhausted",          "same",          "insufficient_quota"),
    (404, b'{"detail":"Model \'x\' not found"}',                            "Model 'x' not found",               "same",          "model_not_found"),
    (404, b'{"detail":"Not Found"}',                                        "Not Found",                         "same",          None),
    (422, b'{"detail":[{"loc":["body","a"],"msg":"bad","type":"t"}]}',      "body.a: bad",                       "kept",          None),
    (422, b'{"detail":[{"msg":"a"},{"msg":"b"},{"msg":"c"},{"msg":"d"}]}',  "a; b; c",                           "kept",          None),
    (529, b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', "busy",                      "busy",          "server_error"),
    (500, b'{"error":"boom"}',                                              "boom",                              "boom",          "server_error"),
    (500, b'{"message":"boom"}',                                            "boom",                              "boom",          "server_error"),
    (500, b"",                                                              "The gateway answered 500 without a body.", "",       "server_error"),
    (502, b"<html><h1>Bad</h1></html>",                                     "The gateway answered 502 with a page in place of an error message.", "<html><h1>Bad</h1></html>", "server_error"),
    (500, b"plain words",                                                   "plain words",                       "plain words",   "server_error"),
    (403, b"error code: 1010",                                              "edge block: empty or refused User-Agent (error code: 1010)", "error code: 1010", None),
    (500, b"[1,2]",                                                         "[1,2]",                             "[1,2]",         "server_error"),
]
# fmt: on


@pytest.mark.parametrize(("status", "body", "message", "detail", "code"), BODIES)
def test_every_shape_of_error_is_understood(status, body, message, detail, code):
    said = read_gateway_error(status, body, "")
    assert (said.message, said.code) == (message, code)
    expected = {"same": message, "kept": orjson.loads(body)["detail"] if detail == "kept" else None}.get(detail, detail)
    assert said.detail == expected
    value = orjson.loads(gateway_body(said, "id", after_s=7.0, resets_at_s=0.0))
    assert set(value) == {"type", "error", "detail", "request_id"}
    assert set(value["error"]) - {"reason"} == KEYS
    assert ("reason" in value["error"]) is (b"1010" in body)


@given(st.integers(400, 599), st.binary(max_size=200), st.sampled_from(["", "text/html", "application/json"]))
def test_no_body_makes_it_fail_and_every_answer_has_a_sentence(status, body, content_type):
    said = read_gateway_error(status, body, content_type)
    assert said.message
    orjson.loads(gateway_body(said, "id", after_s=None, resets_at_s=None))


def test_a_page_is_no_message_and_is_cut():
    said = read_gateway_error(500, b"<html>" + b"a" * 10_000, "text/html")
    assert len(said.detail) == DETAIL_CHARS_MAX


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", REASONS)
def test_every_error_of_ours_speaks_the_sdks_words_and_carries_our_reason(name, native):
    value = orjson.loads(own_body(ProxyError(name, "what, where, what to do"), "id", native=native))
    assert value["type"] == "error"
    assert value["detail"] == value["error"]["message"] == "what, where, what to do"
    assert value["error"]["reason"] == name
    if REASONS[name].status == 402:
        assert value["error"]["type"] == ("billing_error" if native else "insufficient_quota")


def test_reasons_and_statuses_are_those_of_the_documentation():
    """Clients and dashboards match on these; a change is a change of the border."""
    assert {name: row.status for name, row in REASONS.items()} == {
        "bad_request": 400, "ambiguous_key": 400, "unsupported_for_chatbot": 400, "missing_key": 401, "invalid_key": 401,
        "budget_exhausted": 402, "request_over_budget": 402, "unpriced_model": 402, "gateway_credits_exhausted": 402,
        "origin_refused": 403, "host_refused": 403, "model_not_allowed": 403, "tool_not_allowed": 403,
        "suite_not_allowed": 403, "chatbot_not_allowed": 403, "balance_hidden": 403, "edge_blocked": 403,
        "unknown_route": 404, "unknown_model": 404, "not_yours": 404, "method_not_allowed": 405, "request_timeout": 408,
        "idempotency_running": 409, "idempotency_lost": 409, "body_too_large": 413, "idempotency_mismatch": 422, "websocket_refused": 426,
        "turn_too_far": 429, "budget_busy": 429, "limit_exhausted": 429, "headers_too_large": 431,
        "upstream_unreachable": 502, "upstream_broken": 502, "upstream_redirect": 502, "gateway_key_refused": 502,
        "ledger_unavailable": 503, "draining": 503, "paused": 503, "upstream_timeout": 504, "not_in_cache": 504,
        "loop": 508,
    }  # fmt: skip
