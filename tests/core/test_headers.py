"""What crosses the proxy in each direction, and what callers are told about waiting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.headers import ForbiddenHeader, accepts, headers_down, headers_up, retry, retry_after_s

NAMES = st.text(alphabet="abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
KEPT_UP = {"content-type", "traceparent", "tracestate"}


@given(st.lists(st.tuples(NAMES, st.text(alphabet="abc ", max_size=5)), max_size=12))
def test_nothing_goes_up_that_is_not_on_the_list(sent):
    assert set(headers_up(sent, native_segment=None, pin_version=True, mcp=False)) <= KEPT_UP


@pytest.mark.parametrize(
    "name", ["Authorization", "x-api-key", "Cookie", "Host", "Connection", "X-Stainless-OS", "Via"]
)
def test_what_is_the_callers_own_stays_here(name):
    assert headers_up([(name, "a")], native_segment="partner", pin_version=False, mcp=True) == {
        "partner-version": "2023-06-01"
    }


@pytest.mark.parametrize(
    ("sent", "pin", "expected"),
    [
        ([], True, {"acme-version": "2023-06-01"}),
        ([("Anthropic-Version", "2026-10-21")], True, {"acme-version": "2023-06-01"}),
        ([("partner-version", "2026-10-21")], False, {"acme-version": "2026-10-21"}),
        ([("anthropic-beta", "a,b")], True, {"acme-version": "2023-06-01", "acme-beta": "a,b"}),
    ],
)
def test_version_and_beta_go_out_under_the_segments_name(sent, pin, expected):
    assert headers_up(sent, native_segment="acme", pin_version=pin, mcp=False) == expected


@pytest.mark.parametrize(("version", "passed"), [("2025-11-25", True), ("2026-07-28", False), ("x", False)])
def test_only_protocol_versions_that_a_suite_knows_go_up(version, passed):
    up = headers_up([("MCP-Protocol-Version", version)], native_segment=None, pin_version=True, mcp=True)
    assert ("mcp-protocol-version" in up) is passed


def test_an_answer_with_control_bytes_in_a_passed_line_is_broken():
    with pytest.raises(ForbiddenHeader):
        headers_down([("X-Model", "a\x01b")])
    assert headers_down([("X-Odd", "a\x01b")]) == {}


@given(st.one_of(st.none(), st.floats(0, 1e9)), st.booleans())
def test_retry_after_is_always_a_whole_number_that_old_clients_obey(true_s, pointless):
    told = retry(true_s, pointless=pointless)
    shown = int(told.headers["retry-after"])
    assert 1 <= shown <= 60
    assert told.headers["retry-after-ms"] == str(shown * 1000)
    assert told.after_s == true_s
    if true_s is not None and true_s <= 60:
        assert shown >= true_s, "nobody is told to come too early"
    assert ("x-should-retry" in told.headers) is (pointless or (true_s is not None and true_s > 60))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0.5", 0.5),
        ("soon", None),
        ("-1", None),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("9" * 40, None),
        ("Thu, 99 Foo 1970", None),
    ],
)
def test_a_gateways_retry_after_is_read_or_ignored(value, seconds):
    assert retry_after_s(value, now_s=100.0) == seconds


@pytest.mark.parametrize(
    ("value", "json_ok", "stream_ok"),
    [
        (None, True, True),
        ("", True, True),
        ("*/*", True, True),
        ("application/json", True, False),
        ("text/event-stream", False, True),
        ("application/json, text/event-stream", True, True),
        ("application/json;q=0, text/event-stream;q=0.5", False, True),
        ("image/png", False, False),
    ],
)
def test_what_a_caller_takes(value, json_ok, stream_ok):
    assert accepts(value) == (json_ok, stream_ok)
