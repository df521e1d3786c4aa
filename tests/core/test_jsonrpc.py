import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.jsonrpc import (
    LEGACY_VERSIONS,
    Call,
    call_of,
    error,
    id_span,
    result,
    unsupported_version,
    unwrap,
    with_id,
)
from proxy.core.sse import Event
from proxy.errors import ProxyError


def call(body):
    return call_of(json.loads(body), body)


IDS = [
    b"0",
    b"1",
    b'"i-1"',
    b"null",
    b"12345678901234567890",
    b"1.0",
    b"-3",
    b'"\\u0041\\""',
    b'""',
    b'"server-discover-probe-1"',
]

# fmt: off
CALLS = (
    (b'{"jsonrpc":"2.0","id":0,"method":"ping"}',                                      Call("ping", b"0")),
    (b'{"method":"ping","params":{"id":7},"jsonrpc":"2.0","id":0}',                    Call("ping", b"0")),
    (b' { "jsonrpc" : "2.0" , "\\u0069d" : "a" , "method" : "ping" } ',                Call("ping", b'"a"')),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}',                                   Call("ping", b"null")),
    (b'{"jsonrpc":"2.0","method":"notifications/initialized"}',                        Call("notifications/initialized")),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}',                                          Call(id=b"1", is_response=True)),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',                     Call(id=b"1", is_response=True)),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}',        Call("tools/call", b"1", "add")),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/Call","params":{"name":"add"}}',        Call("tools/Call", b"1")),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"add"}}',        Call("tools/list", b"1")),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}',                            Call("x", b"1")),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":3,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
                                                                                       Call("x", b"1", version="2026-07-28", progress=b"3")),
    (b'[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]',                              Call(is_batch=True)),
)
INVALID = (
    b'"x"', b"1", b"null", b"{}",
    b'{"id":1,"method":"ping"}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":1,"method":7}',
    b'{"jsonrpc":"2.0","id":[1],"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"METHOD":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","Params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["add"]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b"}}' % (b"a" * 513),
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","Name":"delete"}}',
)
# fmt: on


@pytest.mark.parametrize(("body", "expected"), CALLS)
def test_a_message_is_read_as_what_it_is(body, expected):
    assert call(body) == expected


@pytest.mark.parametrize("body", INVALID)
def test_what_could_dodge_or_is_no_request_is_refused(body):
    with pytest.raises(ProxyError) as caught:
        call(body)
    assert caught.value.reason.name == "bad_request"


def test_a_request_without_an_id_is_a_notification_and_id_null_is_not():
    assert call(b'{"jsonrpc":"2.0","method":"x"}').is_notification
    assert not call(b'{"jsonrpc":"2.0","method":"x","id":null}').is_notification
    assert not call(b'{"jsonrpc":"2.0","result":{}}').is_notification


@pytest.mark.parametrize("call_id", IDS)
def test_the_caller_s_id_comes_back_byte_for_byte(call_id):
    body = b'{"jsonrpc":"2.0","method":"ping","id":%b}' % call_id
    assert call(body).id == call_id
    for answer in (result(call_id, {}), error(call_id, -32002, "no"), with_id(b'{"id":7,"result":1}', call_id)):
        start, end = id_span(answer)
        assert answer[start:end] == call_id


def test_an_answer_without_a_known_id_says_null():
    assert result(None, {}) == b'{"jsonrpc":"2.0","id":null,"result":{}}'
    assert json.loads(error(None, -32700, "Parse error")) == {
        "jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}  # fmt: skip


# fmt: off
REPLACED = (
    (b'{"jsonrpc":"2.0","id":null,"error":{"id":3}}',         b'{"jsonrpc":"2.0","id":"a","error":{"id":3}}'),
    (b'{"error":{"id":3,"x":["id",{"id":4}]}, "id" : 12 }',   b'{"error":{"id":3,"x":["id",{"id":4}]}, "id" : "a" }'),
    (b'{"x":"id","y":"\\"id\\":1","id":"b\\"c"}',             b'{"x":"id","y":"\\"id\\":1","id":"a"}'),
    (b'{"id":"a","result":{ }}',                              b'{"id":"a","result":{ }}'),
    (b'{"jsonrpc":"2.0"}',                                    b'{"id":"a","jsonrpc":"2.0"}'),
    (b" { } ",                                                b' {"id":"a" } '),
)
# fmt: on


@pytest.mark.parametrize(("answer", "expected"), REPLACED)
def test_only_the_id_of_an_upstream_answer_changes(answer, expected):
    assert with_id(answer, b'"a"') == expected


VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from(["id", '"id":', "a", "}{", "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "a", '"']), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.tuples(st.sampled_from(["x", "idx", '"id"']), VALUES), unique_by=lambda pair: pair[0]),
       st.sampled_from(IDS), st.integers(0, 3), st.sampled_from([None, 1]))  # fmt: skip
def test_the_id_is_found_among_any_members(pairs, call_id, place, indent):
    members = [json.dumps(name) + ":" + json.dumps(value, indent=indent) for name, value in pairs]
    members.insert(min(place, len(members)), '"id": ' + call_id.decode())
    body = ("{" + ",".join(members) + "}").encode()
    start, end = id_span(body)
    assert body[start:end] == call_id


def test_newer_clients_are_told_which_versions_there_are():
    answer = json.loads(unsupported_version(b'"probe"', "2026-07-28"))
    assert (answer["id"], answer["error"]["code"]) == ("probe", -32022)
    assert answer["error"]["data"] == {"supported": list(LEGACY_VERSIONS), "requested": "2026-07-28"}


def test_the_response_is_taken_out_of_the_events_around_it():
    response = b'{"jsonrpc":"2.0","id":null,"result":{"x":1}}'
    events = [Event(b"", b""), Event(b"message", b'{"jsonrpc":"2.0","method":"notifications/progress"}'), Event(b"", b"[1]"),
              Event(b"", b"x"), Event(b"message", response)]  # fmt: skip
    assert unwrap(events) == response
    assert unwrap(events[:-1]) is None
