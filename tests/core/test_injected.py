"""A stream with injected usage, once the usage is taken out, is the stream that was asked for."""

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core.injected import UsageTaker, asking
from proxy.core.sse import EVENT_MAX

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
TEXTS = st.sampled_from(["hi", '"usage":null', "data: [DONE]", "usage", "\u2028", ""])
DELTAS = st.lists(TEXTS, max_size=6)


def stream(deltas, end, *, usage):
    """A chat stream as a gateway writes it, with or without usage asked for."""
    out = []
    for text in deltas:
        chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}
        out.append(b"data: " + orjson.dumps({**chunk, "usage": None} if usage else chunk) + end + end)
    if usage:
        out.append(b"data: " + orjson.dumps({"id": "c", "choices": [], "usage": USAGE}) + end + end)
    return b"".join([*out, b": comment", end, end, b"data: [DONE]", end, end])


def taken(pieces):
    taker = UsageTaker()
    return b"".join(taker.feed(piece) for piece in pieces) + taker.close()


@given(DELTAS, ENDS)
@example(["hi"], b"\r")
def test_the_caller_reads_the_stream_it_asked_for_wherever_it_is_cut(deltas, end):
    wanted, sent = stream(deltas, end, usage=False), stream(deltas, end, usage=True)
    for cut in range(len(sent) + 1):
        assert taken([sent[:cut], sent[cut:]]) == wanted, cut
    assert taken([bytes([byte]) for byte in sent]) == wanted


@given(st.binary(max_size=300), st.integers(0, 300))
def test_what_is_no_usage_passes_unchanged(junk, cut):
    if b"usage" not in junk:
        assert taken([junk[:cut], junk[cut:]]) == junk


def test_usage_beside_choices_is_part_of_the_answer_and_stays():
    frame = b"data: " + orjson.dumps({"choices": [{"delta": {}}], "usage": USAGE}) + b"\n\n"
    assert taken([frame]) == frame


def long_event(last, end=b"\n"):
    return b'data: {"choices":[{"delta":{"content":"' + b"a" * (EVENT_MAX + 100) + b'"}}]' + last + b"}" + end + end


def test_a_frame_beyond_the_bound_passes_as_it_comes_and_is_not_kept():
    taker = UsageTaker()
    long = long_event(b"")[:-100]
    assert len(taker.feed(long)) > EVENT_MAX - 100
    rest = b'"}}],"usage":{"x":1}}\n\ndata: {"choices":[],"usage":{"x":1}}\n\n'
    assert taker.feed(rest).endswith(b'"usage":{"x":1}}\n\n')


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("null", [b',"usage":null', b', "usage": null'])
def test_a_null_at_the_end_of_a_long_event_goes_out_wherever_it_is_cut(null, end):
    sent, rest = long_event(null, end), b"data: [DONE]" + end + end
    for cut in range(len(sent) - 30, len(sent) + 1):
        assert taken([sent[:cut], sent[cut:] + rest]) == long_event(b"", end) + rest, cut
    assert taken([sent[:-30], sent[-30:].rstrip(b"\r\n")]) == long_event(b"", end).rstrip(b"\r\n")


@pytest.mark.parametrize("last", [b',"usage":null,"x":1', b',"x":{"usage":null}', b',"x":",\\"usage\\":null}"', b',"usage":{"x":1}',
                                  b',"x":"usage:null"'])  # fmt: skip
def test_of_a_long_event_nothing_else_goes_out(last):
    sent = long_event(last)
    assert taken([sent[:-40], sent[-40:]]) == sent


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (b'{ "model":"m" , "stream":true}', b'{"stream_options":{"include_usage":true}, "model":"m" , "stream":true}'),
        (b'{"a":1,"stream_options":null}', b'{"a":1,"stream_options":{"include_usage":true}}'),
        (b'{"stream_options":{"include_usage":false,"x":1}}', b'{"stream_options":{"include_usage":true,"x":1}}'),
        (b"{}", b'{"stream_options":{"include_usage":true}}'),
    ],
)
def test_asking_changes_nothing_else(body, asked):
    assert asking(body) == asked
