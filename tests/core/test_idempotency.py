"""What a repeated key leads to, and what becomes of a key, as tables."""

import pytest

from proxy.core.charges import CHARGE, Ending, Rule
from proxy.core.idempotency import (
    BODY_MAX,
    KEPT_S,
    Fate,
    Recording,
    Verdict,
    digest_of,
    fate,
    is_key,
    judge,
)
from proxy.core.riders import Keep, KeptOutcome, Promise
from tests.stories import play

PROMISE = Promise("red", "k", "d1", 100.0)


def kept(body):
    return KeptOutcome(PROMISE, Keep("red", "k", 200, (), body, 101.0))


@pytest.mark.parametrize(
    ("found", "digest", "at_s", "says"),
    [
        (None, "d1", 200.0, Verdict.NEW),
        (kept(b"x"), "d1", 200.0, Verdict.REPLAY),
        (kept(b""), "d1", 200.0, Verdict.REPLAY),
        (kept(None), "d1", 200.0, Verdict.TOO_LONG),
        (KeptOutcome(PROMISE), "d1", 200.0, Verdict.UNKNOWN),
        (kept(b"x"), "d2", 200.0, Verdict.MISMATCH),
        (KeptOutcome(PROMISE), "d2", 200.0, Verdict.MISMATCH),
        (kept(b"x"), "d1", 100.0 + KEPT_S, Verdict.REPLAY),
        (kept(b"x"), "d2", 100.1 + KEPT_S, Verdict.NEW),
    ],
)
def test_what_a_key_leads_to(found, digest, at_s, says):
    assert judge(found, digest, at_s) is says


# fmt: off
FATES = """
    # ending           whole  call  | fate
    -                  no     no    | release
    never_sent         no     no    | release
    gateway_refused    no     no    | release
    gateway_failed     no     no    | release
    gateway_failed     no     yes   | unknown
    gateway_refused    no     yes   | release
    answered           yes    no    | keep
    answered           no     no    | unknown
    upstream_broke     no     no    | unknown
    upstream_broke     yes    no    | keep
    timed_out          no     no    | unknown
    caller_left        yes    no    | keep
    caller_left        no     no    | unknown
    proxy_stopped      no     yes   | unknown
"""
# fmt: on


def test_what_becomes_of_a_key():
    def step(row):
        ending = None if row["ending"] == "-" else Ending(row["ending"])
        return {"fate": fate(ending, whole=row["whole"] == "yes", is_call=row["call"] == "yes").value}

    play(FATES, step)


@pytest.mark.parametrize("ending", Ending)
def test_what_may_have_been_charged_is_never_sent_again(ending):
    if CHARGE[ending] not in (Rule.NOTHING, Rule.NOTHING_UNCERTAIN):
        assert fate(ending, whole=False, is_call=False) is not Fate.RELEASE


@pytest.mark.parametrize(
    ("text", "right"), [("a", True), ("x" * 255, True), ("x" * 256, False), ("", False), ("a b", False), ("é", False)]
)
def test_what_can_be_a_key(text, right):
    assert is_key(text) is right


def test_the_same_bytes_elsewhere_are_another_request():
    assert len({digest_of("/a", b"1"), digest_of("/b", b"1"), digest_of("/a", b"2")}) == 3


def test_an_answer_is_kept_up_to_a_bound():
    recording = Recording()
    recording.add(b"a")
    recording.add(b"b" * (BODY_MAX - 1))
    assert recording.body == b"a" + b"b" * (BODY_MAX - 1)
    recording.add(b"c")
    assert recording.body is None
    assert not recording.pieces
