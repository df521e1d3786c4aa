import json

import pytest

from proxy.core.answers import Family
from proxy.core.breakage import broken_event
from proxy.core.sse import Reader


def event(family, message="The gateway's answer broke off.", **said):
    """The event as a client reads it: its name and decoded data."""
    (read,) = Reader(list).feed(broken_event(family, message, **said))
    return read.name.decode(), json.loads(read.data)


def test_a_chat_learns_it_from_an_error_without_a_name():
    assert event(Family.CHAT, "gone") == (
        "", {"error": {"message": "gone", "type": "server_error", "param": None, "code": "upstream_disconnected"}})  # fmt: skip


def test_a_native_stream_learns_it_from_its_error_event():
    assert event(Family.MESSAGES, "gone") == (
        "error",
        {"type": "error", "error": {"type": "api_error", "message": "gone"}},
    )


def test_a_response_fails_under_its_own_id_and_the_next_number():
    name, data = event(Family.RESPONSES, "gone", response_id="resp_1", sequence=7, model="m", created_at=5)
    assert (name, data["type"], data["sequence_number"]) == ("response.failed", "response.failed", 7)
    response = data["response"]
    assert (response["id"], response["object"], response["status"]) == ("resp_1", "response", "failed")
    assert (response["model"], response["created_at"]) == ("m", 5)
    assert response["error"] == {"code": "server_error", "message": "gone"}


def test_a_response_that_never_began_fails_too():
    assert event(Family.RESPONSES)[1]["response"]["id"]


@pytest.mark.parametrize("rpc_id", [b"0", b'"i-1"', b"null", b"12345678901234567890"])
def test_a_tool_call_fails_under_the_caller_s_id(rpc_id):
    stream = broken_event(Family.MCP, "gone", rpc_id=rpc_id)
    assert b'"id":' + rpc_id + b"," in stream
    assert event(Family.MCP, "gone", rpc_id=rpc_id)[1]["error"] == {
        "code": -32004, "message": "gone", "data": {"reason": "upstream_broken"}}  # fmt: skip


@pytest.mark.parametrize("family", Family)
def test_a_message_of_many_lines_stays_one_event(family):
    assert "two\\nlines" in json.dumps(event(family, "two\nlines")[1])
