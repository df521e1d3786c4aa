"""What a suite of the older era says within a call, and what of it a caller of the newer revision is told."""

import json

import pytest

from proxy.core.jsonrpc import Call
from proxy.core.progress import Progress

ANSWER = {"jsonrpc": "2.0", "id": None, "result": {"content": []}}
LIFTED = {"jsonrpc": "2.0", "id": 7, "result": {"content": [], "resultType": "complete"}}


def call(progress=b'"t"', log_level=None):
    return Call("tools/call", b"7", "add", version="2026-07-28", progress=progress, log_level=log_level)


def step(token="t", number=1):
    return said("progress", progressToken=token, progress=number)


def log(level):
    return said("message", level=level, data="x")


def said(what, **params):
    return {"jsonrpc": "2.0", "method": f"notifications/{what}", "params": params}


def stream(*messages):
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in messages)


def told(asked, *messages, size=10_000_000):
    progress, sent = Progress(asked), stream(*messages)
    out = b"".join(progress.feed(sent[at : at + size]) for at in range(0, len(sent), size)) + progress.close()
    return [json.loads(event.partition(b"data: ")[2]) for event in out.split(b"\n\n") if event]


@pytest.mark.parametrize("size", [1, 7, 10_000_000])
def test_progress_comes_before_the_answer_in_the_form_of_the_revision(size):
    assert told(call(), step(number=1), step(number=2), ANSWER, size=size) == [step(number=1), step(number=2), LIFTED]


def test_an_answer_before_which_nothing_comes_is_left_to_whoever_gathers_it():
    assert told(call(), ANSWER) == []


@pytest.mark.parametrize(
    "other",
    [
        step("u"),
        step(3),
        log("info"),
        said("tools/list_changed"),
        {**step(), "id": 5},
        {"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {}},
        [step()],
        "x",
    ],
)
def test_nothing_else_is_told(other):
    assert told(call(), other, step(), other, ANSWER) == [step(), LIFTED]


def test_a_token_is_the_same_only_in_its_own_type():
    assert told(call(b"3"), step("3"), step(3), ANSWER) == [step(3), LIFTED]


def test_log_messages_come_from_the_level_on_that_was_asked_for():
    logs = [log(level) for level in ("debug", "warning", "error", "shouting")]
    assert told(call(None, "warning"), step(), *logs, ANSWER) == [log("warning"), log("error"), LIFTED]
    assert told(call(None, None), *logs, ANSWER) == []


def test_nothing_comes_after_the_answer():
    assert told(call(), step(), ANSWER, step(number=2), ANSWER) == [step(), LIFTED]


def test_a_message_longer_than_a_reader_keeps_and_one_on_several_lines_come_whole():
    long = {**step(), "params": {**step()["params"], "message": "x" * 600_000}}
    assert told(call(), long, ANSWER) == [long, LIFTED]
    progress = Progress(call())
    lines = json.dumps(step(), indent=1).encode().replace(b"\n", b"\ndata: ")
    assert progress.feed(b"data: " + lines + b"\n\n").count(b"\n") == 3
