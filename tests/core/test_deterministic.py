"""What is kept of an answer that was read to its end."""

import orjson
import pytest

from proxy.core.answers import Family
from proxy.core.deterministic import keepable
from proxy.core.usage import Meter

LINK = "https://files.example/a.png?X-Amz-Algorithm=AWS4{}X-Amz-Expires=600{}{}=6f2a"
NAMES = ["X-Amz-Signature", "x-goog-signature", "Signature", "sig", "token"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("joint", ["&", r"\u0026", "&amp;"], ids=["plain", "escaped in JSON", "escaped in HTML"])
def test_an_answer_with_a_link_that_will_not_last_is_not_kept(joint, name):
    body = b'{"data":[{"url":"%s"}]}' % LINK.format(joint, joint, name).encode()
    assert not keepable(200, None, body, is_json=True)


def test_an_answer_with_a_link_that_lasts_is_kept():
    assert keepable(200, None, b'{"data":[{"url":"https://files.example/a.png?size=2&page=1"}]}', is_json=True)


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
}
# fmt: on


@pytest.mark.parametrize("name", SAID)
def test_a_refusal_of_the_model_is_asked_for_again(name):
    (family, tree), kept = SAID[name]
    body = orjson.dumps(tree)
    meter = Meter(family, streamed=False)
    meter.feed(body)
    meter.close()
    assert keepable(200, meter, body, is_json=True) is kept


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


@pytest.mark.parametrize("name", STREAMS)
def test_so_is_one_that_is_streamed(name):
    family, events = STREAMS[name]
    body = b"".join(b"data: %s\n\n" % orjson.dumps(event) for event in events)
    body += b"data: [DONE]\n\n" if family is Family.CHAT else b""
    meter = Meter(family, streamed=True)
    meter.feed(body)
    meter.close()
    assert meter.terminal
    assert not keepable(200, meter, body, is_json=False)
