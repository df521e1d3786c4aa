import json
import tracemalloc
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.answers import End, Failure, Family
from proxy.core.sse import EVENT_MAX
from proxy.core.usage import Meter, Usage

WIRE = Path(__file__).parents[1] / "wire" / "sse"
EXPECTED = json.loads((WIRE / "expected.json").read_bytes())
SMALL = [name for name in EXPECTED if (WIRE / name).stat().st_size < 3000]


def metered(family, *chunks, streamed=True, clean=True):
    meter = Meter(family, streamed=streamed)
    for chunk in chunks:
        meter.feed(chunk)
    meter.close(clean=clean)
    return meter


def whole(family, value):
    return metered(family, value if isinstance(value, bytes) else orjson.dumps(value), streamed=False)


def events(*values):
    return b"".join(
        b"data: " + (value if isinstance(value, bytes) else orjson.dumps(value)) + b"\n\n" for value in values
    )


def facts(meter):
    """Everything a meter says, to compare two readings as one value."""
    names = ("usage", "end", "terminal", "failure", "own_error", "response_id", "status", "finish_reason",
             "output_bytes", "empty_answer")  # fmt: skip
    return {name: getattr(meter, name) for name in names}


def as_expected(meter, row):
    usage = meter.usage
    found = {key: getattr(usage, key) for key in row if key in Usage._fields}
    return {**row, **found, "end": meter.end.value, "credits": row.get("credits") and float(usage.credits)}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_recorded_habit_is_metered_as_expected(name):
    row = EXPECTED[name]
    meter = metered(Family(row["family"]), (WIRE / name).read_bytes())
    assert as_expected(meter, row) == {"credits": None, **row}


@pytest.mark.parametrize("name", SMALL)
def test_the_figures_do_not_depend_on_where_a_stream_is_cut(name):
    family, stream = Family(EXPECTED[name]["family"]), (WIRE / name).read_bytes()
    whole_stream = facts(metered(family, stream))
    for cut in range(len(stream) + 1):
        assert facts(metered(family, stream[:cut], stream[cut:])) == whole_stream, cut
    assert facts(metered(family, *(stream[at : at + 1] for at in range(len(stream))))) == whole_stream


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in SMALL])
def test_the_figures_of_long_streams_do_not_depend_on_the_pieces(name):
    family, stream = Family(EXPECTED[name]["family"]), (WIRE / name).read_bytes()
    whole_stream = facts(metered(family, stream))
    for step in (1021, 65536):
        pieces = (stream[at : at + step] for at in range(0, len(stream), step))
        assert facts(metered(family, *pieces)) == whole_stream, step
    single = [*range(min(len(stream), 9000)), *range(max(9000, len(stream) - 9000), len(stream)), len(stream)]
    pieces = (stream[at:end] for at, end in pairwise(single))
    assert facts(metered(family, *pieces)) == whole_stream


@pytest.mark.parametrize("name", SMALL)
def test_a_stream_cut_anywhere_raises_nothing_and_never_ends_quietly(name):
    family, stream = Family(EXPECTED[name]["family"]), (WIRE / name).read_bytes()
    for cut in range(len(stream)):
        meter = metered(family, stream[:cut], clean=False)
        assert meter.terminal or meter.ending("gone"), cut


# fmt: off
CHAT_BODY = {"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "héllo"}, "finish_reason": "stop"}],
             "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
MESSAGE = {"id": "m1", "type": "message", "model": "m", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn",
           "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 6, "cache_creation": {"ephemeral_1h_input_tokens": 2}}}
RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
            "usage": {"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 1}, "output_tokens_details": {"reasoning_tokens": 2}}}
BODIES = (
    (Family.CHAT,      CHAT_BODY,                        Usage("m", 9, output=2, settled=True)),
    (Family.CHAT,      CHAT_BODY | {"usage": None},      Usage("m")),
    (Family.CHAT,      CHAT_BODY | {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, Usage("m", settled=True)),
    (Family.MESSAGES,  MESSAGE,                          Usage("m", 3, 5, 6, 2, 4, settled=True)),
    (Family.RESPONSES, RESPONSE,                         Usage("m", 3, 1, output=4, reasoning=2, settled=True)),
)
# fmt: on


@pytest.mark.parametrize(("family", "body", "usage"), BODIES)
def test_whole_bodies_are_metered(family, body, usage):
    meter = whole(family, body)
    assert (meter.usage, meter.end, meter.terminal, meter.empty_answer) == (usage, End.JSON, True, False)


@pytest.mark.parametrize(("family", "body", "usage"), BODIES)
def test_a_body_too_long_to_decode_gives_the_same_figures(family, body, usage):
    padded = {"padding": "x" * EVENT_MAX} | body | {"tail": [{"usage": {"input_tokens": 777}}] * 9}
    meter = whole(family, padded)
    assert facts(meter) == facts(whole(family, body)) | {"output_bytes": meter.output_bytes}


@pytest.mark.parametrize(("family", "body", "usage"), BODIES)
def test_a_body_that_broke_off_is_cut_wherever_it_broke(family, body, usage):
    text = orjson.dumps(body)
    for cut in range(len(text)):
        assert whole(family, text[:cut]).end is End.CUT, cut


SILLY = [-1, 1.5, "12", True, None, 10**13, 10**40, [], {}, [7], {"a": 1}]


@pytest.mark.parametrize("silly", SILLY, ids=repr)
def test_a_silly_figure_is_as_good_as_none(silly):
    value = json.dumps(silly).encode()
    chat = b'{"model":"m","choices":[],"usage":{"prompt_tokens":%b,"completion_tokens":7,"prompt_tokens_details":%b},"credits":%b}'
    usage = whole(Family.CHAT, chat % (value, value, b'"1"' if silly == 1.5 else value)).usage
    assert usage == Usage("m", output=7, settled=usage.settled, credits=usage.credits)
    assert usage.credits in (None, 10**13)


def test_null_and_silly_figures_do_not_erase_what_was_known():
    good = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    stream = events({"choices": [], "usage": good})
    for later in (None, {}, {"prompt_tokens": None}, {"prompt_tokens": -3, "completion_tokens": "x"}, [], "x", 5,
                  {"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": None}):  # fmt: skip
        usage = metered(Family.CHAT, stream + events({"choices": [], "usage": later})).usage
        assert (usage.input, usage.output, usage.cache_read) == (9, 2, 4), later


# fmt: off
CREDITS = (
    (b"3.25",                       "3.25"),
    (b"0.1",                        "0.1"),
    (b"12345.67890123456789012345", "12345.67890123456789012345"),
    (b"5",                          "5"),
    (b"1e-8",                       "1E-8"),
    (b"0",                          "0"),
    (b"-1",                         None),
    (b"1e300",                      None),
    (b"1e999999",                   None),
    (b'"3"',                        None),
    (b"null",                       None),
    (b"true",                       None),
    (b"{}",                         None),
)
# fmt: on


@pytest.mark.parametrize(("written", "exact"), CREDITS)
def test_credits_are_read_from_the_wire_text_exactly(written, exact):
    body = b'{"choices":[{"message":{"content":"a \\"credits\\":9"}}],"credits":' + written + b"}"
    assert whole(Family.CHAT, body).usage.credits == (exact and Decimal(exact))
    assert metered(Family.CHAT, b"data: " + body + b"\n\n").usage.credits == (exact and Decimal(exact))


# fmt: off
EMPTY = (
    # what came                      family            whole body                                                                                  empty
    ("no text",                      Family.CHAT,      {"choices": [{"message": {"content": ""}, "finish_reason": "length"}]},                     True),
    ("null text",                    Family.CHAT,      {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},                     True),
    ("blanks",                       Family.CHAT,      {"choices": [{"message": {"content": " \n\t\r "}, "finish_reason": "length"}]},           True),
    ("a letter n",                   Family.CHAT,      {"choices": [{"message": {"content": "n"}, "finish_reason": "stop"}]},                      False),
    ("text behind blanks",           Family.CHAT,      {"choices": [{"message": {"content": "\n\n a"}, "finish_reason": "stop"}]},                 False),
    ("blanks in parts",              Family.CHAT,      {"choices": [{"message": {"content": [{"type": "text", "text": "\n"}]}}]},                  True),
    ("blanks beside a tool call",    Family.CHAT,      {"choices": [{"message": {"content": " ", "tool_calls": [{"function": {"name": "f"}}]}}]},  False),
    ("thoughts only",                Family.CHAT,      {"choices": [{"message": {"content": "", "reasoning": "hm"}, "finish_reason": "length"}]},  True),
    ("text",                         Family.CHAT,      {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]},                      False),
    ("text in parts",                Family.CHAT,      {"choices": [{"message": {"content": [{"type": "text", "text": "a"}]}}]},                   False),
    ("a tool call",                  Family.CHAT,      {"choices": [{"message": {"content": None, "tool_calls": [{"function": {"name": "f"}}]}}]}, False),
    ("a refusal",                    Family.CHAT,      {"choices": [{"message": {"content": None, "refusal": "no"}}]},                             False),
    ("an image",                     Family.CHAT,      {"choices": [{"message": {"content": "", "images": [{"type": "image_url"}]}}]},             False),
    ("text in the second choice",    Family.CHAT,      {"choices": [{"message": {"content": ""}}, {"message": {"content": "b"}}]},                 False),
    ("an error",                     Family.CHAT,      {"error": {"message": "x"}},                                                                False),
    ("no blocks",                    Family.MESSAGES,  MESSAGE | {"content": []},                                                                  True),
    ("a blank block",                Family.MESSAGES,  MESSAGE | {"content": [{"type": "text", "text": "\n\n"}]},                                  True),
    ("thinking only",                Family.MESSAGES,  MESSAGE | {"content": [{"type": "thinking", "thinking": "hm"}]},                            True),
    ("a tool use",                   Family.MESSAGES,  MESSAGE | {"content": [{"type": "tool_use", "name": "f", "input": {"a": 1}}]},              False),
    ("a refusal",                    Family.MESSAGES,  MESSAGE | {"content": [], "stop_reason": "refusal"},                                        False),
    ("a count of tokens",            Family.MESSAGES,  {"input_tokens": 12},                                                                       False),
    ("no items",                     Family.RESPONSES, RESPONSE | {"output": []},                                                                  True),
    ("a blank message",              Family.RESPONSES, RESPONSE | {"output": [{"type": "message", "content": [{"text": "  "}]}]},                  True),
    ("reasoning only",               Family.RESPONSES, RESPONSE | {"output": [{"type": "reasoning", "content": [{"text": "hm"}]}]},                True),
    ("a call",                       Family.RESPONSES, RESPONSE | {"output": [{"type": "function_call", "name": "f", "arguments": "{}"}]},         False),
    ("not yet",                      Family.RESPONSES, RESPONSE | {"output": [], "status": "queued"},                                              False),
    ("a tool's empty result",        Family.MCP,       {"jsonrpc": "2.0", "id": 1, "result": {"content": []}},                                     False),
)
# fmt: on


@pytest.mark.parametrize(
    ("family", "body", "empty"), [row[1:] for row in EMPTY], ids=[f"{row[1].value}: {row[0]}" for row in EMPTY]
)
def test_an_empty_answer_is_one_without_anything_to_use(family, body, empty):
    assert whole(family, body).empty_answer is empty
    padded = whole(family, {"padding": "x" * EVENT_MAX} | body)
    if "parts" not in str(body) and not isinstance(
        body.get("choices", [{}])[0].get("message", {}).get("content"), list
    ):
        assert padded.empty_answer is empty


# fmt: off
SPOKEN = {
    Family.CHAT: lambda text: [
        {"choices": [{"index": 0, "delta": {"content": text}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
    Family.MESSAGES: lambda text: [
        {"type": "message_start", "message": MESSAGE | {"content": []}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ],
    Family.RESPONSES: lambda text: [
        {"type": "response.created", "response": RESPONSE | {"output": [], "status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": text},
        {"type": "response.completed", "response": RESPONSE | {"output": [
            {"type": "message", "content": [{"type": "output_text", "text": text}]}]}},
    ],
}
# fmt: on


@pytest.mark.parametrize("family", SPOKEN)
@pytest.mark.parametrize(("text", "empty"), [("", True), (" ", True), ("\n\t", True), ("\n x", False)])
@pytest.mark.parametrize("long", [False, True])
def test_a_stream_of_blanks_is_an_empty_answer(family, text, empty, long):
    padding = {"padding": "x" * EVENT_MAX} if long else {}
    stream = events(*(padding | event for event in SPOKEN[family](text)))
    ending = b"data: [DONE]\n\n" if family is Family.CHAT else b""
    for step in (1 if not long else EVENT_MAX, 1021, len(stream)):
        pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
        assert metered(family, *pieces, ending).empty_answer is empty, step


# fmt: off
ERRORS = (
    # family, what the gateway sent midway                                                         own,   message
    (Family.CHAT,      b'data: {"error":{"message":"gone","code":502}}\n\n',                       True,  Failure("gone", None, "502")),
    (Family.CHAT,      b'event: error\ndata: {"type":"error","error":{"message":"gone"}}\n\n',     True,  Failure("gone")),
    (Family.CHAT,      b'data: {"error":"gone"}\n\n',                                              True,  Failure("gone")),
    (Family.CHAT,      b'data: {"detail":"gone"}\n\n',                                             False, Failure("gone")),
    (Family.CHAT,      b'data: {"detail":[{"loc":["a"],"msg":"one"},{"msg":"two"}]}\n\n',          False, Failure("one; two")),
    (Family.CHAT,      b'data: {"object":"error","message":"gone","type":"Bad"}\n\n',              False, Failure("gone", "Bad")),
    (Family.MESSAGES,  b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"gone"}}\n\n', True, Failure("gone", "overloaded_error")),
    (Family.MESSAGES,  b'data: {"type":"error","error":{"message":"gone"}}\n\n',                   False, Failure("gone")),
    (Family.MESSAGES,  b'data: {"error":{"message":"gone"}}\n\n',                                  False, Failure("gone")),
    (Family.MESSAGES,  b'event: error\ndata: {"detail":"gone"}\n\n',                               False, Failure("gone")),
    (Family.RESPONSES, b'data: {"type":"response.failed","response":{"error":{"code":"c","message":"gone"}}}\n\n', True, Failure("gone", None, "c")),
    (Family.RESPONSES, b'event: error\ndata: {"type":"error","code":"c","message":"gone"}\n\n',    False, Failure("gone", None, "c")),
    (Family.RESPONSES, b'data: {"error":{"message":"gone"}}\n\n',                                  False, Failure("gone")),
    (Family.RESPONSES, b'data: {"detail":"gone"}\n\n',                                             False, Failure("gone")),
)
# fmt: on


@pytest.mark.parametrize(("family", "stream", "own", "failure"), ERRORS)
def test_an_error_midway_gets_the_family_s_own_event_unless_it_was_one(family, stream, own, failure):
    meter = metered(family, stream)
    assert (meter.end, meter.own_error, meter.terminal, meter.failure) == (End.ERROR, own, own, failure)
    added = meter.ending("not this text")
    assert bool(added) is not own
    if added:
        again = metered(family, stream + added)
        assert (again.terminal, again.failure) == (True, failure)
        assert b"gone" in added or b"one; two" in added


ENDING_STARTS = {
    Family.CHAT: b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
    Family.MESSAGES: b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3}}}\n\n',
    Family.RESPONSES: b'data: {"type":"response.created","sequence_number":4,"response":{"id":"resp_9","model":"m"}}\n\n',
    Family.MCP: b'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n',
}


@pytest.mark.parametrize("family", [family for family in Family if family is not Family.MEDIA])  # never streamed
@pytest.mark.parametrize("half", [b"", b"data: {", b"data: {}\n", b"data: {}\r", b": pi"])
def test_a_stream_that_broke_off_ends_with_its_family_s_error(family, half):
    stream = ENDING_STARTS[family] + half
    meter = metered(family, stream, clean=False)
    assert (meter.end, meter.terminal) == (End.CUT, False)
    again = metered(family, stream + meter.ending("the gateway hung up", rpc_id=b'"i-1"'))
    assert again.terminal
    assert again.failure.message == "the gateway hung up"


def test_a_finished_chat_is_complete_at_a_clean_end_only():
    stream = events(
        {"choices": [{"index": 0, "delta": {"content": "a"}}]}, {"choices": [{"index": 0, "finish_reason": "stop"}]}
    )
    assert metered(Family.CHAT, stream).end is End.EOF_AFTER_FINISH
    assert metered(Family.CHAT, stream, clean=False).end is End.CUT


def test_a_chat_of_two_choices_is_finished_when_both_are():
    both = [{"choices": [{"index": i, "delta": {"content": "a"}}]} for i in (0, 1)]
    first, second = ({"choices": [{"index": i, "delta": {}, "finish_reason": "stop"}]} for i in (0, 1))
    assert metered(Family.CHAT, events(*both, first)).end is End.CUT
    assert metered(Family.CHAT, events(*both, first, second)).end is End.EOF_AFTER_FINISH


def test_a_running_count_is_not_settled():
    running = {
        "choices": [{"index": 0, "delta": {"content": "a"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
    assert metered(Family.CHAT, events(running), clean=False).usage == Usage(input=9, output=1)
    last = {"choices": [{"index": 0, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}
    assert metered(Family.CHAT, events(running, last)).usage == Usage(input=9, output=5, settled=True)


def test_an_output_of_zero_beside_text_is_unknown_and_without_text_is_zero():
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}
    text = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
    zero = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 0}}
    assert metered(Family.MESSAGES, events(start, zero)).usage.output == 0
    assert metered(Family.MESSAGES, events(text, zero)).usage.output is None
    assert metered(Family.MESSAGES, events(start, text, zero)).usage.output == 1


def test_text_that_the_closing_object_repeats_is_counted_once():
    meter = metered(Family.RESPONSES, (WIRE / "resp-08-data-only-done.sse").read_bytes())
    assert meter.output_bytes == len("Blue herons wade. 물가에 왜가리 🪶".encode())


@pytest.mark.parametrize("family", [Family.MESSAGES, Family.RESPONSES])
def test_the_end_mark_of_chat_ends_no_other_family(family):
    assert metered(family, ENDING_STARTS[family] + b"data: [DONE]\n\n").end is End.CUT


def test_a_long_body_that_broke_off_is_cut():
    text = orjson.dumps(CHAT_BODY | {"padding": "x" * EVENT_MAX})
    assert whole(Family.CHAT, text).end is End.JSON
    assert whole(Family.CHAT, text[:-1]).end is End.CUT


# fmt: off
SAID = (
    (Family.CHAT,      {"choices": [{"delta": {"content": "물가"}}]},                                                       6),
    (Family.CHAT,      {"choices": [{"delta": {"reasoning_content": "abc", "reasoning": "abc"}}]},                        3),
    (Family.CHAT,      {"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}}]},        3),
    (Family.MESSAGES,  {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "abc"}},           3),
    (Family.MESSAGES,  {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{}"}},      2),
    (Family.MESSAGES,  {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "abc"}},         0),
    (Family.RESPONSES, {"type": "response.output_text.delta", "delta": "abc"},                                            3),
    (Family.RESPONSES, {"type": "response.function_call_arguments.delta", "delta": "{}"},                                 2),
    (Family.RESPONSES, {"type": "response.output_text.done", "text": "abc"},                                              0),
)
# fmt: on


@pytest.mark.parametrize(("family", "event", "size"), SAID)
def test_generated_bytes_are_counted_for_an_estimate(family, event, size):
    assert metered(family, events(event)).output_bytes == size


@pytest.mark.parametrize(("family", "event", "size"), [row for row in SAID if row[2]])
def test_generated_bytes_of_an_event_too_long_to_decode_are_never_zero(family, event, size):
    assert metered(family, events({"padding": "x" * EVENT_MAX} | event)).output_bytes > 0


def test_a_response_id_is_known_with_the_piece_that_completes_it():
    stream = b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_7","object":"response"'
    end = stream.index(b'"resp_7"') + len(b'"resp_7"')
    for step in (1, 7, end):
        meter = Meter(Family.RESPONSES, streamed=True)
        for at in range(0, end - 1, step):
            meter.feed(stream[at : min(at + step, end - 1)])
            assert meter.response_id is None
        meter.feed(stream[end - 1 : end])
        assert meter.response_id == "resp_7"


def test_a_response_id_in_a_body_is_known_before_the_body_is_whole():
    meter = Meter(Family.RESPONSES, streamed=False)
    meter.feed(b'{"object":"response","id":"resp_7","status":"que')
    assert meter.response_id == "resp_7"


@pytest.mark.parametrize("spoof", [
    b'{"type":"x","text":"{\\"response\\":{\\"id\\":\\"resp_other\\"}}"',
    b'{"item":{"response":{"id":"resp_other"}},',
    b'{"id":"resp_other",',
])  # fmt: skip
def test_a_look_alike_of_an_id_claims_nothing(spoof):
    meter = Meter(Family.RESPONSES, streamed=True)
    meter.feed(b"data: " + spoof)
    assert meter.response_id is None


# fmt: off
RPC = (
    (b'{"jsonrpc":"2.0","id":0,"result":{"content":[]}}',                  "result"),
    (b'{"jsonrpc":"2.0","id":0,"result":{"content":[],"isError":false}}',  "result"),
    (b'{"jsonrpc":"2.0","id":0,"result":{"content":[],"isError":"no"}}',   "result"),
    (b'{"jsonrpc":"2.0","id":0,"result":{"content":[],"isError":true}}',   "tool_error"),
    (b'{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"bad"}}',  "rpc_error"),
)
# fmt: on


@pytest.mark.parametrize(("body", "status"), RPC)
def test_a_tool_call_was_executed_even_when_its_result_is_an_error(body, status):
    assert (whole(Family.MCP, body).status, whole(Family.MCP, body).end) == (status, End.JSON)
    progress = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n'
    stream = metered(Family.MCP, progress + b"event: message\ndata: " + body + b"\n\n")
    assert (stream.status, stream.end) == (status, End.DONE)
    padded = body.replace(b'"id":0', b'"id":0,"pad":"' + b"x" * EVENT_MAX + b'"')
    assert whole(Family.MCP, padded).status == status


KEYS = ["type", "choices", "delta", "message", "usage", "response", "error", "detail", "credits", "content", "output", "item",
        "input_tokens", "prompt_tokens", "index", "finish_reason", "tool_calls", "function", "content_block", "input"]  # fmt: skip
WORDS = ["message", "message_start", "message_delta", "content_block_start", "content_block_delta", "response.failed",
         "response.output_text.delta", "response.output_item.added", "error", "response", "tool_use", ""]  # fmt: skip
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)


@given(st.sampled_from(Family), st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=6))
def test_no_json_whatever_makes_the_meter_raise(family, tree):
    text = json.dumps(tree).encode()
    facts(metered(family, b"data: " + text + b"\n\n"))
    facts(whole(family, text))
    facts(whole(family, b'{"padding":"' + b"x" * EVENT_MAX + b'",' + text[1:]))


def test_a_deeply_nested_answer_raises_nothing():
    for depth in (200, 300, 1000, 5000):
        nested = b'{"type":"message","content":[{"type":"tool_use","input":' + b"[" * depth + b"]" * depth + b"}]}"
        facts(whole(Family.MESSAGES, nested))
        facts(metered(Family.MESSAGES, b"data: " + nested + b"\n\n"))


@pytest.mark.parametrize("streamed", [True, False])
def test_memory_stays_bounded_under_a_line_of_twenty_megabytes(streamed):
    meter, piece = Meter(Family.RESPONSES, streamed=streamed), b"x" * 65536
    head = b'{"type":"response.completed","response":{"object":"response","output":[{"content":[{"text":"'
    tail = b'"}]}],"usage":{"input_tokens":3,"output_tokens":4}}}'
    tracemalloc.start()
    meter.feed((b"data: " if streamed else b"") + head)
    for _ in range(320):
        meter.feed(piece)
    meter.feed(tail + (b"\n\n" if streamed else b""))
    meter.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20
    assert meter.output_bytes >= 320 * 65536 if streamed else meter.end is End.JSON
    assert not streamed or (meter.usage.input, meter.end) == (3, End.DONE)
