import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.config.secret import Secret
from proxy.config.settings import LogFormat, LogLevel
from proxy.observe.log import OURS, PLAIN_MAX, SHAPES_MAX, TEXT_MAX, RequestLog, open_log

KNOWN = Secret("gk-0123456789-known")


class Book:
    """Collects what was written."""

    def __init__(self, form=LogFormat.JSON, level=LogLevel.INFO):
        self.lines = []
        self.log = RequestLog(self.lines.append, form=form, level=level, secrets=(KNOWN, None), clock=lambda: 1e9)

    @property
    def events(self):
        return [json.loads(line) for line in self.lines]

    @property
    def text(self):
        return b"".join(self.lines).decode()


class Unprintable:
    def __str__(self):
        raise RuntimeError("no text")


STORY = {
    "id": "01J", "team": "red", "key": "9f2", "route": "chat", "model": "gpt-4o", "stage": "relay",
    "ending": "caller_left", "status": 200, "held": "0.42", "charged": "0.131", "waited_s": 0.42,
    "sent_bytes": 18211, "dur_s": 7.91, "reason": None, "user_agent": "curl/8",
}  # fmt: skip


def test_a_request_is_one_line_that_tells_its_story():
    book = Book()
    book.log.request(STORY)
    assert book.events == [{"time": "2001-09-09T01:46:40.000Z", "level": "info", "event": "request", **STORY}]
    assert book.lines[0].count(b"\n") == 1
    assert book.lines[0].endswith(b"\n")


def test_a_person_at_a_terminal_reads_words_and_pairs():
    book = Book(LogFormat.CONSOLE)
    book.log.request({"team": "red", "status": 200, "reason": None, "user_agent": 'a "b"'})
    assert book.text == '01:46:40 info    request team=red status=200 user_agent="a \\"b\\""\n'


_STEERING = set("\r\n\x1b\x9b\x07\x00\x7f\x85\u2028\u2029\u202e\u2066\u200f\ufeff")


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.CONSOLE])
@pytest.mark.parametrize(
    "text",
    [
        "x\r\nrequest team=forged",
        "\x1b[2J\x1b[31mred",
        "\x9b31m",
        "\x07\x00\x7f\x85",
        "\x7f",
        "\u2028\u2029\u202e\u2066\u200f",
        "\ud800\udfff",
        "\ufeff",
    ],
)
def test_nothing_from_outside_forges_a_line_or_steers_a_terminal(form, text):
    book = Book(form)
    book.log.request({"user_agent": text, "nested": {text: [text]}})
    (line,) = book.lines
    shown = line.decode()[:-1]
    assert not set(shown) & set("\r\n\x1b\x9b\x07\x00\x7f\x85\u2028\u2029\u202e\u2066\u200f\ufeff")

    book.log.request({"user_agent": text})
    assert not set(book.lines[1].decode()[:-1]) & _STEERING
    if form is LogFormat.JSON:
        # Nor once a program has read the line and shows what is in it.
        assert not set(book.events[1]["user_agent"]) & _STEERING


def test_text_is_bounded():
    book = Book()
    book.log.request({"user_agent": "x" * 10_000_000})
    assert book.events[0]["user_agent"] == "x" * TEXT_MAX + "…"


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.CONSOLE])
@pytest.mark.parametrize(
    "fields",
    [
        {"authorization": "CANARY"},
        {"X-API-Key": "CANARY"},
        {"upstream_key": "CANARY"},
        {"set-cookie": "CANARY"},
        {"password": "CANARY"},
        {"admin_token": b"CANARY"},
        {"headers": {"Authorization": "CANARY"}},
        {"headers": [{"x-api-key": ["CANARY"]}]},
        {"what": "Authorization was Bearer CANARY-1"},
        {"what": "got sk-CANARY12345 instead"},
        {"what": "got sg-CANARY12345 instead"},
        {"what": "Authorization was Basic CANARY-1"},
        {"what": f"sent {KNOWN.reveal()} to the gateway".replace("known", "known")},
        {"what": ["a", {"b": f"({KNOWN.reveal()})"}]},
        {"what": KNOWN},
        {"what": "eyJhbGciOiJIUzI1NiJ9.CANARY.CANARY"},
    ],
)
def test_secrets_are_masked_wherever_they_stand(form, fields):
    book = Book(form, LogLevel.DEBUG)
    book.log.request(fields)
    book.log.note("debug", "something", **fields)
    assert "CANARY" not in book.text
    assert KNOWN.reveal() not in book.text
    assert book.text.count("***") >= 2


def test_figures_under_such_names_stay():
    book = Book()
    book.log.request({"input_tokens": 12, "key": "9f2", "cached_tokens": None})
    assert book.events[0] | {"input_tokens": 12, "key": "9f2", "cached_tokens": None} == book.events[0]


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.CONSOLE])
@pytest.mark.parametrize(
    "value",
    [Unprintable(), 10**40, float("nan"), b"\xff", {1: 2}, {(1, 2): {3}}, object(), frozenset({1}), [[[[]]]], 1 + 2j],
)
def test_a_line_is_written_whatever_the_fields_hold(form, value):
    book = Book(form)
    book.log.request({"what": value})
    assert len(book.lines) == 1


def test_fields_do_not_replace_the_line_s_own():
    book = Book()
    book.log.request({"event": "forged", "level": "forged", "time": "forged"})
    assert book.events[0]["event"] == "request"
    assert book.events[0]["event_"] == "forged"


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        (LogLevel.DEBUG, ["request", "d", "w", "e"]),
        (LogLevel.INFO, ["request", "w", "e"]),
        (LogLevel.WARNING, ["w", "e"]),
        (LogLevel.ERROR, ["e"]),
    ],
)
def test_events_below_the_level_are_left_out(level, seen):
    book = Book(level=level)
    book.log.request({})
    for word, event in (("debug", "d"), ("warning", "w"), ("error", "e")):
        book.log.note(word, event)
    assert [event["event"] for event in book.events] == seen


def test_auto_is_json_where_no_person_reads(tmp_path):
    with (tmp_path / "log").open("w") as stream:
        log, sink = open_log(stream, LogFormat.AUTO, LogLevel.INFO)
        log.request({"team": "red"})
        sink.close()
    assert json.loads((tmp_path / "log").read_text())["team"] == "red"


def test_two_logs_do_not_share_settings():
    one, two = Book(LogFormat.CONSOLE), Book(LogFormat.JSON)
    one.log.request({"team": "red"})
    two.log.request({"team": "red"})
    assert not one.lines[0].startswith(b"{")
    assert two.lines[0].startswith(b"{")


def test_a_known_secret_is_masked_in_the_plainest_of_lines():
    """It looks like nothing but a word, and the line needs no other look."""
    lines = []
    log = RequestLog(lines.append, form=LogFormat.JSON, secrets=[Secret("correcthorsebattery")])
    log.request({"id": "a", "user_agent": "app correcthorsebattery 1"})
    log.request({"id": "b", "user_agent": "app 1"})
    assert b"correcthorse" not in b"".join(lines)
    assert b"app *** 1" in lines[0]
    assert b"app 1" in lines[1]


@pytest.mark.parametrize(
    "text",
    [
        "team-3",
        "big-model",
        "dark-blue",
        "basic",
        "a Bearer",
        "sk-short",
        'a "quoted" word',
        "a\\b",
        "{brace}",
        "x" * TEXT_MAX,
    ],
)
def test_what_only_looks_like_something_stands_as_it_is_however_often_it_comes(text):
    book = Book()
    for number in range(3):
        book.log.request({"id": str(number), "user_agent": text})
    assert [event["user_agent"] for event in book.events] == [text] * 3


@pytest.mark.parametrize(
    "text", ["Bearer abc", "sk-0123456789", "Basic abc", "eyJa.b.c", KNOWN.reveal(), "a\nb", "é\u202e"]
)
def test_a_text_is_looked_at_however_many_plain_ones_came_before(text):
    book = Book()
    for said in ("curl/8", text, "curl/8", text):
        book.log.request({"id": "a", "user_agent": said})
    first, second, third, fourth = [event["user_agent"] for event in book.events]
    assert first == third == "curl/8"
    assert second == fourth != text


@pytest.mark.parametrize("secret", ["gk_alpha_2x0", "deadbeef", "relay"])
def test_a_secret_that_is_learnt_later_is_masked_from_then_on(secret):
    """A gateway key that was replaced in its file while the proxy runs."""
    book = Book()
    story = {"id": secret, "user_agent": f"x {secret} y", "stage": secret}
    book.log.request(story)
    book.log.mask(Secret(secret), None)
    book.log.request(story)
    book.log.request({**story, "key": KNOWN.reveal()})
    assert secret in json.dumps(book.events[0])
    assert secret not in json.dumps(book.events[1:])
    assert KNOWN.reveal() not in book.text


def test_of_plain_texts_and_sets_of_fields_only_so_many_are_remembered():
    book = Book()
    for number in range(PLAIN_MAX + 10):
        book.log.request({"id": "a", "user_agent": f"agent {number}", f"name-{number}": 1})
    assert len(book.log._plain) <= PLAIN_MAX
    assert len(book.log._shapes) <= SHAPES_MAX
    assert book.events[-1]["user_agent"] == f"agent {PLAIN_MAX + 9}"


def test_ids_of_our_own_making_push_no_text_out_of_memory():
    book = Book()
    for number in range(PLAIN_MAX + 10):
        book.log.request({"id": f"01a226f5-182f-7845-913d-{number:012x}", "user_agent": "curl/8"})
    assert book.log._plain == {"curl/8"}


_KNOWN_ONES = (KNOWN.reveal(), "relay", "0.42", "deadbeef", "app")
"""One as secrets are, and some that look like words and amounts of ours, like an id and like what callers say."""

_PIECES = st.sampled_from([
    *_KNOWN_ONES, "Bearer x", "Basic ", "sk-0123456789", "k-", "g-", "eyJa.b.c", "é", "\n", "\x7f", "\u202e", '"', "\\", "-",
    "01a226f5", " ", "curl/8", "x" * TEXT_MAX,
])  # fmt: skip
_TEXTS = st.lists(_PIECES, min_size=1, max_size=3).map("".join)
_FIGURES = st.one_of(st.floats(), st.integers(-(2**70), 2**70), st.booleans(), st.none())
_FROM_OUTSIDE = ("team", "key", "model", "reason", "place", "user_agent", "method", "trace", "event", "api_key", "new")
_STORIES = st.builds(
    lambda parts, order: {name: parts[name] for name in order if name in parts},
    st.fixed_dictionaries(
        {"id": _TEXTS},
        optional=dict.fromkeys(_FROM_OUTSIDE, st.one_of(_TEXTS, _FIGURES, st.lists(_TEXTS)))
        | dict.fromkeys(
            OURS, st.one_of(_FIGURES, st.sampled_from(["relay", "answered", "caller_left", "0.42", "-10"]))
        ),
    ),
    st.permutations(["id", *_FROM_OUTSIDE, *sorted(OURS)]),
)


@given(st.lists(_STORIES, min_size=1, max_size=4), st.sets(st.sampled_from(_KNOWN_ONES)))
@example([{"id": "a", "stage": "relay"}], {"relay"})
@example([{"id": "a", "held": "10.42"}], {"0.42"})
@example([{"id": "01a226f5-deadbeef"}], {"deadbeef"})
@example([{"id": "a", "user_agent": "an app"}, {"id": "app", "user_agent": "an app"}], {"app"})
@example([{"id": "a", "new": ["Bearer x"]}], set())
@example([{"id": "a", "api_key": "hidden"}], set())
@example([{"id": "a", "event": "forged"}], set())
@example([{"id": "a", "status": 10**40}], set())
def test_a_line_is_what_a_look_at_everything_in_it_makes(stories, known):
    """Most fields of most requests are not looked at, and nobody can tell."""
    lines, careful_lines = [], []
    log, careful = (
        RequestLog(among.append, form=LogFormat.JSON, secrets=map(Secret, known), clock=lambda: 1e9 + 0.25)
        for among in (lines, careful_lines)
    )
    for story in stories:
        log.request(story)
        careful._line("info", "request", story)
    assert lines == careful_lines


@pytest.mark.parametrize("name", ["user_agent", "model", "id", "trace", "a_field_of_tomorrow"])
def test_a_field_that_nobody_declared_harmless_is_looked_at(name):
    assert name not in OURS
    book = Book()
    book.log.request({"id": "a", name: "Bearer abc"})
    assert book.events[0][name] == "***"
