"""What is kept of an answer that was read to its end."""

import orjson
import pytest

from proxy.core.answers import Family
from proxy.core.body import Dialect, judge
from proxy.core.deterministic import BUILT_IN, CacheRule, decide, keepable, reason_against
from proxy.core.facts import Facts
from proxy.core.limits import Match
from proxy.core.usage import Meter
from proxy.server.admit import FAMILIES

ROUTES = {Family.CHAT: "chat", Family.MESSAGES: "native", Family.RESPONSES: "responses"}
LINK = "https://files.example/a.png?X-Amz-Algorithm=AWS4{}X-Amz-Expires=600{}{}=6f2a"
NAMES = ["X-Amz-Signature", "x-goog-signature", "Signature", "sig", "token"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("joint", ["&", r"\u0026", "&amp;"], ids=["plain", "escaped in JSON", "escaped in HTML"])
def test_an_answer_with_a_link_that_will_not_last_is_not_kept(joint, name):
    body = b'{"data":[{"url":"%s"}]}' % LINK.format(joint, joint, name).encode()
    assert not keepable("models", 200, None, body, is_json=True)


def test_an_answer_with_a_link_that_lasts_is_kept():
    assert keepable(
        "models", 200, None, b'{"data":[{"url":"https://files.example/a.png?size=2&page=1"}]}', is_json=True
    )


# fmt: off
def _chat(message, reason="stop"):
    return Family.CHAT, {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def _native(reason):
    return Family.MESSAGES, {"type": "message", "content": [{"type": "text", "text": "No."}], "stop_reason": reason}


def _response(part, **more):
    output = [{"type": "message", "content": [part]}]
    return Family.RESPONSES, {"object": "response", "status": "completed", "output": output, **more}


TEXT = {"type": "output_text", "text": "No."}
FILTERED = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
SAID = {
    # what it is                    the answer                                                 kept
    "chat":                         (_chat({"content": "No.", "refusal": None}),               True),
    "chat, refused":                (_chat({"content": None, "refusal": "No."}),               False),
    "chat, filtered":               (_chat({"content": "N"}, "content_filter"),                False),
    "native":                       (_native("end_turn"),                                      True),
    "native, refused":              (_native("refusal"),                                       False),
    "responses":                    (_response(TEXT),                                          True),
    "responses, refused":           (_response({"type": "refusal", "refusal": "No."}),         False),
    "responses, filtered":          (_response(TEXT, **FILTERED),                              False),
    "chat, at its bound":           (_chat({"content": "N"}, "length"),                        True),
    "chat, failed":                 (_chat({"content": "N"}, "error"),                         False),
    "chat, for no reason":          (_chat({"content": "N"}, None),                            False),
    "chat, nothing":                ((Family.CHAT, {"object": "chat.completion"}),             False),
    "native, goes on":              (_native("pause_turn"),                                    False),
    "responses, goes on":           (_response(TEXT, status="in_progress"),                    False),
}
# fmt: on


@pytest.mark.parametrize("name", SAID)
def test_a_refusal_of_the_model_is_asked_for_again(name):
    (family, tree), kept = SAID[name]
    body = orjson.dumps(tree)
    meter = Meter(family, streamed=False)
    meter.feed(body)
    meter.close()
    assert keepable(ROUTES[family], 200, meter, body, is_json=True) is kept


# fmt: off
WORK = {
    # what it is                    route        the answer                                                     kept
    "images, made at once":         ("images",   {"created": 1, "data": [{"b64_json": "aGk="}]},                True),
    "images, made and said so":     ("images",   {"status": "completed", "data": [{"b64_json": "aGk="}]},       True),
    "images, begun":                ("images",   {"operation_id": "img_1", "status": "processing"},             False),
    "images, begun, without a word": ("images",  {"operation_id": "img_1"},                                     False),
    "images, made under an id":     ("images",   {"operation_id": "img_1", "status": "completed", "data": [1]}, False),
    "images, on their way":         ("images",   {"status": "queued"},                                          False),
    "image, on its way":            ("image",    {"operation_id": "img_1", "status": "processing"},             False),
    "image, made":                  ("image",    {"operation_id": "img_1", "status": "completed", "data": [1]}, True),
    "image, failed":                ("image",    {"operation_id": "img_1", "status": "failed"},                 False),
    "image, a word of tomorrow":    ("image",    {"operation_id": "img_1", "status": "polishing"},              False),
    "image, without a word":        ("image",    {"operation_id": "img_1"},                                     False),
    "video, on its way":            ("video",    {"operation_id": "v/1", "status": "in_progress"},              False),
    "video, made":                  ("video",    {"operation_id": "v/1", "status": "completed"},                True),
    "response, queued":             ("response", {"object": "response", "id": "resp_1", "status": "queued"},    False),
    "response, on its way":         ("response", {"object": "response", "id": "resp_1", "status": "in_progress", "output": []}, False),
    "response, there":              ("response", {"object": "response", "id": "resp_1", **_response(TEXT)[1]},  True),
    "responses, queued":            ("responses", {"object": "response", "id": "resp_1", "status": "queued"},   False),
}
# fmt: on


@pytest.mark.parametrize("name", WORK)
def test_what_says_that_work_goes_on_or_hands_out_its_id_is_not_kept(name):
    route, tree, kept = WORK[name]
    body = orjson.dumps(tree)
    meter = Meter(FAMILIES[route], streamed=False)
    meter.feed(body)
    meter.close()
    assert keepable(route, 200, meter, body, is_json=True) is kept


@pytest.mark.parametrize("route", ["images", "image", "video", "responses", "response"])
def test_what_may_tell_of_work_is_not_kept_unread(route):
    assert not keepable(route, 200, None, b'{"data":[1]}', is_json=True)


@pytest.mark.parametrize(
    "rule", [{}, {"match": Match(model="*")}, {"match": Match(team="red")}, {"deterministic": False}]
)
@pytest.mark.parametrize("route", ["videos", "cancel"])
def test_a_call_that_begins_or_ends_work_is_kept_under_no_rule(route, rule):
    facts = Facts("red", "k", route, "m")
    assert decide(facts, None, (CacheRule(ttl_s=60.0, **rule),)).detail == "operation"
    assert not decide(facts, None, (CacheRule(routes=frozenset({route}), ttl_s=60.0),)).may


# fmt: off
STREAMS = {
    "chat":      (Family.CHAT,      [{"choices": [{"index": 0, "delta": {"refusal": "No."}}]},
                                     {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]),
    "native":    (Family.MESSAGES,  [{"type": "message_start", "message": {"model": "m"}},
                                     {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
                                     {"type": "message_stop"}]),
    "responses": (Family.RESPONSES, [{"type": "response.refusal.delta", "delta": "No."},
                                     {"type": "response.completed", "response": {"status": "completed"}}]),
}
# fmt: on


def streamed(family, events, last=b""):
    """A whole stream and its meter. events: trees, or bytes as they are."""
    written = (event if isinstance(event, bytes) else b"data: %s\n\n" % orjson.dumps(event) for event in events)
    body = b"".join(written) + (b"data: [DONE]\n\n" if family is Family.CHAT else b"") + last
    meter = Meter(family, streamed=True)
    meter.feed(body)
    meter.close()
    return meter, body


@pytest.mark.parametrize("name", STREAMS)
def test_so_is_one_that_is_streamed(name):
    family, events = STREAMS[name]
    meter, body = streamed(family, events)
    assert meter.terminal
    assert not keepable(ROUTES[family], 200, meter, body, is_json=False, streamed=True)


# fmt: off
def _piece(text, reason=None):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


def _delta(text):
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


BEGIN = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}
END = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
       {"type": "message_stop"}]
SAID_ERROR = b'event: error\ndata: {"message":"too busy"}\n\n'
KEPT_STREAMS = {
    # what it is                 family           events                                                          kept
    "chat":                     (Family.CHAT,     [_piece("No."), _piece("", "stop")],                             True),
    "a tool call":              (Family.CHAT,     [{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}}]},
                                                   _piece(None, "tool_calls")],                                    True),
    "native":                   (Family.MESSAGES, [BEGIN, _delta("No."), *END],                                    True),
    "nothing but the end":      (Family.CHAT,     [],                                                              False),
    "no reason at its end":     (Family.CHAT,     [_piece("No.")],                                                 False),
    "an error by its name":     (Family.CHAT,     [_piece("N"), SAID_ERROR, _piece("", "stop")],                   False),
    "an event that is no JSON": (Family.CHAT,     [_piece("N"), b'data: {"cho\n\n', _piece("", "stop")],          False),
    "a link in pieces":         (Family.CHAT,     [_piece("https://b.example/x?X-Amz-"), _piece("Signature=ab"),
                                                   _piece("", "stop")],                                            False),
    "native, link in pieces":   (Family.MESSAGES, [BEGIN, _delta("https://b.example/x?si"), _delta("g=ab"), *END], False),
    "names alike, apart":       (Family.CHAT,     [_piece("?si"), _piece("ze=2&page"), _piece("", "stop")],        True),
}
# fmt: on


@pytest.mark.parametrize("name", KEPT_STREAMS)
def test_a_stream_is_kept_that_is_whole_and_stays_true(name):
    family, events, kept = KEPT_STREAMS[name]
    meter, body = streamed(family, events)
    assert keepable(ROUTES[family], 200, meter, body, is_json=False, streamed=True) is kept
    assert not keepable(ROUTES[family], 200, meter, body, is_json=False, streamed=False), (
        "somebody who wants JSON is given JSON"
    )


def test_who_asks_for_a_stream_is_not_given_json():
    family, tree = _chat({"content": "No."})
    body = orjson.dumps(tree)
    meter = Meter(family, streamed=False)
    meter.feed(body)
    meter.close()
    assert not keepable(ROUTES[family], 200, meter, body, is_json=True, streamed=True)


@pytest.mark.parametrize("route", ["chat", "native", "responses", "native-count"])
def test_what_may_be_answered_otherwise_is_kept_where_a_rule_of_the_policy_says_so_and_nowhere_else(route):
    facts = Facts("red", "k", route, "m")
    body = judge(b'{"model":"m","messages":[],"n":2}', Dialect.CHAT)._replace(background=route == "native-count")
    assert not any(rule.takes(facts, deterministic=False) for rule in BUILT_IN)
    assert not decide(facts, body, ()).may
    assert decide(facts, body, (CacheRule(ttl_s=60.0),)).may is (route != "native-count")


def test_a_seed_counts_where_the_format_has_one():
    seeded = judge(b'{"model":"m","messages":[],"seed":7}', Dialect.CHAT)
    assert reason_against("chat", seeded) == ""
    for route in ("native", "responses"):
        assert reason_against(route, seeded) == "temperature"
    true = judge(b'{"model":"m","messages":[],"seed":true}', Dialect.CHAT)
    assert reason_against("chat", true) == "temperature"


# fmt: off
NAMED = {
    # what a body asks with                                           what keeps it from being deterministic
    '"input":"hi"':                                                   "",
    '"input":[{"type":"message","content":"item_reference"}]':        "",
    '"input":"hi","prompt":null':                                     "",
    '"input":"hi","prompt":{"id":"pmpt_1"}':                          "references",
    '"input":[{"type":"item_reference","id":"msg_1"}]':               "references",
}
# fmt: on


@pytest.mark.parametrize("asked", NAMED)
def test_what_only_the_gateway_has_makes_no_call_deterministic(asked):
    body = b'{"model":"m","temperature":0,%s}' % asked.encode()
    assert reason_against("responses", judge(body, Dialect.RESPONSES)) == NAMED[asked]
