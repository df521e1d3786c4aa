from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from proxy.emulator.mind import Finish, Question, canonical, reply_to

WHOLE = reply_to(Question(b"key", "hello", {}), 1).text
PARTS = st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(1, 12)).map(lambda at: WHOLE[at[0] : at[0] + at[1]])


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_an_answer_ends_right_before_the_first_stop_sequence(stop):
    reply = reply_to(Question(b"key", "hello", {}, stop=tuple(stop)), 1)
    assert WHOLE.startswith(reply.text)
    assert not any(word in reply.text for word in stop)
    assert (reply.finish, reply.sequence in stop) == (Finish.SEQUENCE, True)
    assert WHOLE[len(reply.text) :].startswith(reply.sequence)
    assert reply.output == len(reply.pieces)


@given(st.integers(0, 80))
def test_an_answer_never_outgrows_its_budget(budget):
    reply = reply_to(Question(b"key", "hello", {}, budget=budget), 1)
    assert WHOLE.startswith(reply.text)
    assert reply.output == min(budget, reply_to(Question(b"key", "hello", {}), 1).output)
    assert (reply.finish is Finish.LENGTH) == (reply.text != WHOLE)


def test_how_an_answer_is_sent_does_not_change_what_it_says():
    body = {"model": "m", "messages": [], "temperature": 0}
    sent = {"temperature": 0, "stream": True, "stream_options": {"include_usage": True}, "messages": [], "model": "m"}
    assert canonical(body) == canonical(sent) != canonical({**body, "temperature": 1})


def test_a_tool_is_called_by_name_only():
    question = Question(b"key", "please use look.up now", {"look": None, "look.up": None})
    assert reply_to(question, 1).call == ("look.up", "{}")
    assert reply_to(replace(question, text="overlook nothing"), 1).call is None
