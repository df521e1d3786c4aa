"""Everything that can go wrong, by name: one table, applied to one request or to a run.

A fault is asked for by a marker in any text of the body, `[[fault:NAME key=value ...]]`, by the header
`x-emulator-fault: NAME key=value; NAME ...`, or armed for a run. It acts at one of four places: on the request before a
room sees it, instead of the room, on the answer, or on the delivery.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from proxy.emulator.answers import Answer, Family, event, json_answer, refusal
from proxy.emulator.assumptions import PAUSE_S
from proxy.emulator.frames import edited, emptied, with_usage_twice, without_usage
from proxy.emulator.messages import (
    BAD_KEY,
    EDGE_BLOCK,
    INTERNAL,
    MAINTENANCE,
    MODEL_NOT_FOUND,
    NO_CREDITS,
    NOT_ENABLED,
    RATE_LIMIT,
    SUITE_FAILED,
    SUITE_PAUSED,
    TOOL_LIMIT,
    Message,
)
from proxy.emulator.script import Close, End, Gate, Hang, Head, Pause, Raw, Reset, Script, Send, Step
from proxy.emulator.world import Call

MARKER: Final = re.compile(rb"\[\[fault:([\w-]+)((?: +[\w-]+=[^\s\]]*)*) *]]")

RETRY: Final = {
    "past": "Wed, 21 Oct 2015 07:28:00 GMT",
    "date": "Wed, 21 Oct 2099 07:28:00 GMT",
    "decade": "315360000",
    "text": "soon",
    "none": None,
}
"""Words for `retry=`; anything else is sent as it stands."""

HTML: Final = (
    b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
)

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded answer, sent piece by piece. `past_http` sends the pieces as the whole of what is on the wire."""

    pieces: tuple[bytes, ...]
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/event-stream"),)
    past_http: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A fault as it was asked for, with what it may look at."""

    name: str
    params: Mapping[str, str] = field(default_factory=dict)
    call: Call | None = None
    recordings: Mapping[str, Recording] = field(default_factory=dict)

    def number(self, name: str, default: float) -> float:
        return float(self.params.get(name, default))

    def count(self, name: str, default: int) -> int:
        return int(self.params.get(name, default))

    @property
    def suite(self) -> str | None:
        return self.call.parts.get("suite") if self.call else None

    @property
    def model(self) -> str:
        """The model the request names, for sentences."""
        try:
            return str(orjson.loads(self.call.body if self.call else b"").get("model", "X"))
        except (orjson.JSONDecodeError, AttributeError):
            return "X"

    def retry(self, default: str | None) -> tuple[tuple[str, str], ...]:
        word = self.params.get("retry")
        value = default if word is None else RETRY.get(word, word)
        return () if value is None else (("Retry-After", value),)


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the table; exactly one of the four functions is there.

    call:     changes the request before the room sees it.
    instead:  answers in place of the room; nothing is charged.
    answer:   changes what the room answered; it was charged.
    delivery: changes how the answer reaches the caller; it was charged.
    """

    name: str
    help: str
    call: Callable[[Call], Call] | None = None
    instead: Callable[[Asked], Answer] | None = None
    answer: Callable[[Answer, Asked], Answer] | None = None
    delivery: Callable[[Script, Answer, Asked], Script] | None = None


def _plain(message: Message, retry: str | None = None) -> Callable[[Asked], Answer]:
    """A refusal of the documentation; `message=` changes its sentence, `retry=` its Retry-After."""

    def answer(asked: Asked) -> Answer:
        if text := asked.params.get("message"):
            return json_answer({"detail": text}, status=message.status, headers=asked.retry(retry))
        return refusal(message, headers=asked.retry(retry), model=asked.model)

    return answer


def _rate_limit(asked: Asked) -> Answer:
    if asked.suite:
        return refusal(TOOL_LIMIT, headers=asked.retry("1"), why="30 tools/call per minute for this API key")
    return _plain(RATE_LIMIT)(asked)


def _bad_gateway(asked: Asked) -> Answer:
    if asked.suite:
        return refusal(SUITE_FAILED, headers=asked.retry(None), suite=asked.suite)
    return json_answer({"detail": "Bad Gateway"}, status=502, headers=asked.retry(None))


def _paused(asked: Asked) -> Answer:
    seconds = asked.params.get("retry", str(PAUSE_S))
    return refusal(SUITE_PAUSED, headers=asked.retry(str(PAUSE_S)), suite=asked.suite or "calc", n=seconds)


def _unprocessable(asked: Asked) -> Answer:  # noqa: ARG001 - the form of the table
    item = {"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": {}}
    return json_answer({"detail": [item]}, status=422)


def _html(default: int) -> Callable[[Asked], Answer]:
    return lambda asked: Answer(asked.count("status", default), (HTML,), "text/html; charset=utf-8")


def _redirect(asked: Asked) -> Answer:
    target = asked.params.get("to", "/v1/gateway/elsewhere/")
    return Answer(asked.count("status", 307), (b"",), headers=(("Location", target),))


def _unstreamed(call: Call) -> Call:
    body = orjson.loads(call.body)
    return replace(call, body=orjson.dumps({**body, "stream": False}))


def _slow(script: Script, answer: Answer, asked: Asked) -> Script:  # noqa: ARG001 - the form of the table
    """`gate=` holds before piece `at` (0 is before the head); `head=` and `every=` are seconds of silence."""
    steps: list[Step] = []
    sent = 0
    if head := asked.number("head", 0):
        steps.append(Pause(head))
    gate, at = asked.params.get("gate"), asked.count("at", 0)
    if gate and at == 0:
        steps.append(Gate(gate))
    for step in script:
        if isinstance(step, Send | End):
            sent += 1
            if sent > 1 and (every := asked.number("every", 0)):
                steps.append(Pause(every))
            if gate and (at == sent or (isinstance(step, End) and at > sent)):
                steps.append(Gate(gate))
        steps.append(step)
    return tuple(steps)


def _hang(script: Script, answer: Answer, asked: Asked) -> Script:  # noqa: ARG001 - the form of the table
    return (
        (*_upto(script, asked.count("after", 0), asked.params.get("bytes")), Hang())
        if "after" in asked.params
        else (Hang(),)
    )


def _cut(end: Step) -> Callable[[Script, Answer, Asked], Script]:
    """The answer stops after `after` pieces, or after `bytes` bytes of the body."""

    def cut(script: Script, answer: Answer, asked: Asked) -> Script:  # noqa: ARG001 - the form of the table
        kept = _upto(script, asked.count("after", 2), asked.params.get("bytes"))
        # A promised length would show the early end; only chunks can end cleanly in the middle.
        kept = tuple(replace(step, length=None) if isinstance(step, Head) else step for step in kept)
        return (*kept, end)

    return cut


def _upto(script: Script, pieces: int, count: str | None) -> Script:
    left = 1 << 60 if count is None else int(count)
    kept: list[Step] = []
    for step in script:
        if isinstance(step, End):
            break
        if isinstance(step, Send):
            if (count is None and pieces <= 0) or left <= 0:
                break
            pieces -= 1
            step = Send(step.data[:left])  # noqa: PLW2901 - the piece that crosses the bound is shortened
            left -= len(step.data)
        kept.append(step)
    return tuple(kept)


def _error_midway(answer: Answer, asked: Asked) -> Answer:
    """After `after` events an error event in the form of the family, or in `form=` error, event, detail, failed."""
    text = asked.params.get("message", "upstream provider error")
    error = {"message": text, "type": "server_error", "code": "server_error"}
    forms = {
        "error": event({"error": error}),
        "detail": event({"detail": text}),
        "event": event({"type": "error", "error": {"type": "api_error", "message": text}}, "error"),
        "flat": event({"type": "error", "code": "server_error", "message": text, "sequence_number": 99}, "error"),
        "failed": event(
            {"type": "response.failed", "response": {"status": "failed", "error": error}}, "response.failed"
        ),
    }
    own = {Family.NATIVE: "event", Family.RESPONSES: "flat"}.get(answer.family, "error")
    kept = answer.frames[: asked.count("after", 2)]
    return replace(answer, frames=(*kept, forms[asked.params.get("form", own)]))


def _between(extra: bytes) -> Callable[[Answer, Asked], Answer]:
    """`extra` after every event of a stream."""

    def answer_with(answer: Answer, asked: Asked) -> Answer:  # noqa: ARG001 - the form of the table
        if not answer.streamed:
            return answer
        return replace(answer, frames=tuple(piece for frame in answer.frames for piece in (frame, extra)))

    return answer_with


def _frames(change: Callable[[tuple[bytes, ...], Asked], Iterable[bytes]]) -> Callable[[Answer, Asked], Answer]:
    return lambda answer, asked: replace(answer, frames=tuple(change(answer.frames, asked)))


def _pieces(frames: tuple[bytes, ...], asked: Asked) -> Iterable[bytes]:
    body, size = b"".join(frames), asked.count("size", 1)
    return (body[start : start + size] for start in range(0, len(body), size))


def _big(answer: Answer, asked: Asked) -> Answer:
    """One line of `mb` megabytes more, in a field nobody knows."""
    padding = "x" * int(asked.number("mb", 1) * MEGABYTE)
    if not answer.streamed:
        return edited(answer, lambda value: value.update(padding=padding))
    first, *rest = answer.frames
    padded = edited(replace(answer, frames=(first,)), lambda value: value.update(padding=padding))
    return replace(answer, frames=(*padded.frames, *rest))


def _bare_list(answer: Answer, asked: Asked) -> Answer:  # noqa: ARG001 - the form of the table
    value = orjson.loads(answer.body)
    bare = value["data"] if isinstance(value, dict) and "data" in value else value
    return replace(answer, frames=(orjson.dumps(bare),))


def _zipped(answer: Answer, asked: Asked) -> Answer:
    """The body in an encoding nobody asked for; `mb` makes it a bomb of that many megabytes."""
    body = answer.body + b" " * int(asked.number("mb", 0) * MEGABYTE)
    headers = (*answer.headers, ("Content-Encoding", "gzip"))
    return replace(answer, frames=(gzip.compress(body, mtime=0),), headers=headers)


def _head_text(answer: Answer, extra: Iterable[bytes]) -> bytes:
    lines = [b"HTTP/1.1 %d OK" % answer.status, b"Content-Type: " + answer.content_type.encode(), *extra]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _past_http(lines: Callable[[Answer, Asked], Iterable[bytes]], body: Callable[[Answer], bytes]) -> Any:
    """A delivery written by hand: the head with these lines, the body as given, then the connection is closed."""

    def delivery(script: Script, answer: Answer, asked: Asked) -> Script:  # noqa: ARG001 - the form of the table
        return Raw(_head_text(answer, lines(answer, asked)) + body(answer)), Close()

    return delivery


BAD_LINES: Final = {
    "nul": b"X-Odd: a\x00b",
    "nocolon": b"X-Odd without a colon",
    "space": b"X-Odd : a",
    "fold": b"X-Odd: a\r\n b",
    "twice": b"Content-Length: 1",
}
"""Header lines no server may send, by the word of `form=`."""


def _length(answer: Answer) -> bytes:
    return b"Content-Length: %d" % len(answer.body)


def _replayed(script: Script, answer: Answer, asked: Asked) -> Script:  # noqa: ARG001 - the form of the table
    """A recorded answer, byte for byte."""
    found = asked.recordings[asked.params["name"]]
    if found.past_http:
        return (*(Raw(piece) for piece in found.pieces), Close())
    return (Head(found.status, found.headers, None), *(Send(piece) for piece in found.pieces), End())


def _status(asked: Asked) -> Answer:
    text = asked.params.get("message", "as you wish")
    return json_answer({"detail": text}, status=asked.count("code", 418), headers=asked.retry(None))


# fmt: off
FAULTS: Final[Mapping[str, Fault]] = {fault.name: fault for fault in (
    Fault("400",               "a parameter is refused; message=",                     instead=_plain(Message(400, "invalid parameter"))),
    Fault("401",               "the key is refused",                                   instead=_plain(BAD_KEY)),
    Fault("402",               "the balance is gone",                                  instead=_plain(NO_CREDITS)),
    Fault("403",               "the model is not enabled",                             instead=_plain(NOT_ENABLED)),
    Fault("404",               "the model is not found",                               instead=_plain(MODEL_NOT_FOUND)),
    Fault("422",               "the body does not fit",                                instead=_unprocessable),
    Fault("429",               "over a limit; retry= seconds, past, date, decade, text, none", instead=_rate_limit),
    Fault("500",               "an internal error; message=",                          instead=_plain(INTERNAL)),
    Fault("502",               "bad gateway; on a suite: it did not respond",          instead=_bad_gateway),
    Fault("503",               "maintenance; retry=",                                  instead=_plain(MAINTENANCE)),
    Fault("paused",            "the suite is paused; retry=",                          instead=_paused),
    Fault("1010",              "the edge blocks, in plain text",                       instead=_plain(EDGE_BLOCK)),
    Fault("html",              "an HTML error page; status=502",                       instead=_html(502)),
    Fault("html200",           "an HTML page with status 200",                         instead=_html(200)),
    Fault("empty-body",        "200 and no body; status=",                             instead=lambda asked: Answer(asked.count("status", 200), ())),
    Fault("redirect",          "a redirect; status=307 to=",                           instead=_redirect),
    Fault("status",            "any status; code= message= retry=",                    instead=_status),
    Fault("json-for-stream",   "a JSON answer although a stream was asked for",        call=_unstreamed),
    Fault("empty",             "200 that says nothing, usage as it was",               answer=lambda answer, asked: emptied(answer)),
    Fault("no-usage",          "usage nowhere",                                        answer=lambda answer, asked: without_usage(answer)),
    Fault("usage-twice",       "the event with usage comes twice",                     answer=lambda answer, asked: with_usage_twice(answer)),
    Fault("no-done",           "the last event of the stream is missing",              answer=_frames(lambda frames, asked: frames[:-1])),
    Fault("error-midway",      "an error inside the stream; after=2 form= message=",   answer=_error_midway),
    Fault("comments",          "a comment line after every event",                     answer=_between(b": keep-alive\n\n")),
    Fault("ping",              "a ping event after every event",                       answer=_between(b'event: ping\ndata: {"type":"ping"}\n\n')),
    Fault("empty-data",        "an empty data line after every event",                 answer=_between(b"data:\n\n")),
    Fault("crlf",              "CRLF line ends",                                       answer=_frames(lambda frames, asked: (frame.replace(b"\n", b"\r\n") for frame in frames))),
    Fault("split",             "the body in pieces of size=1 bytes",                   answer=_frames(_pieces)),
    Fault("join",              "the whole body in one piece",                          answer=_frames(lambda frames, asked: (b"".join(frames),))),
    Fault("big",               "one line of mb=1 megabytes more",                      answer=_big),
    Fault("bare-list",         "a list without its wrapper",                           answer=_bare_list),
    Fault("gzip",              "an encoding nobody asked for",                         answer=_zipped),
    Fault("bomb",              "gzip of mb=100 megabytes of blanks",                   answer=lambda answer, asked: _zipped(answer, replace(asked, params={"mb": "100", **asked.params}))),
    Fault("slow",              "silence: head=S every=S, or gate=NAME at=N",           delivery=_slow),
    Fault("hang",              "never answers; after=N pieces it falls silent",        delivery=_hang),
    Fault("reset-before-head", "the connection is reset instead of an answer",         delivery=lambda script, answer, asked: (Reset(),)),
    Fault("close-before-head", "the connection is closed instead of an answer",        delivery=lambda script, answer, asked: (Close(),)),
    Fault("reset-in-head",     "the connection is reset inside the head",              delivery=lambda script, answer, asked: (Raw(b"HTTP/1.1 200 OK\r\nContent-Ty"), Reset())),
    Fault("cut",               "reset after=2 pieces, or after bytes=N",               delivery=_cut(Reset())),
    Fault("close",             "closed without an end after=2 pieces, or bytes=N",     delivery=_cut(Close())),
    Fault("clean-cut",         "a clean end after=2 pieces, or bytes=N",               delivery=_cut(End())),
    Fault("bad-chunks",        "a chunk size that is no number",                       delivery=_past_http(lambda answer, asked: [b"Transfer-Encoding: chunked"], lambda answer: b"5\r\n: hi\n\r\nzz\r\nnot a chunk\r\n")),
    Fault("bad-headers",       "a header line no server may send; form=nul, nocolon, space, fold, twice", delivery=_past_http(lambda answer, asked: [_length(answer), BAD_LINES[asked.params.get("form", "nul")]], lambda answer: answer.body)),
    Fault("many-headers",      "n=10000 headers",                                      delivery=_past_http(lambda answer, asked: [_length(answer), *(b"X-Many-%d: x" % number for number in range(asked.count("n", 10_000)))], lambda answer: answer.body)),
    Fault("lying-length",      "a Content-Length of one byte more than comes",         delivery=_past_http(lambda answer, asked: [b"Content-Length: %d" % (len(answer.body) + 1)], lambda answer: answer.body)),
    Fault("raw",               "the recording name=, byte for byte",                   delivery=_replayed),
)}
# fmt: on


@dataclass(slots=True)
class Armed:
    """A fault for a run: it meets requests whose target begins with `prefix`, `times` times (None: always)."""

    name: str
    params: Mapping[str, str]
    times: int | None = None
    prefix: str = ""
    method: str | None = None

    def meets(self, method: str, target: str) -> bool:
        return self.times != 0 and target.startswith(self.prefix) and self.method in (None, method)

    def spend(self) -> None:
        if self.times is not None:
            self.times -= 1


def read_fault(text: str) -> tuple[str, dict[str, str]]:
    """`NAME key=value ...` as name and parameters. Raises ValueError for a name that is not in the table."""
    name, *words = text.split()
    if name not in FAULTS:
        raise ValueError(f"there is no fault {name!r}; there are {', '.join(FAULTS)}")
    pairs = (word.partition("=") for word in words)
    return name, {key: value for key, _, value in pairs}


def armed(text: str) -> Armed:
    """A fault for a run from one line: the parameters `times`, `prefix` and `method` say when it acts."""
    name, params = read_fault(text)
    times, prefix, method = params.pop("times", None), params.pop("prefix", ""), params.pop("method", None)
    return Armed(name, params, None if times is None else int(times), prefix, method)


def marked(body: bytes, header: str | None) -> list[tuple[str, dict[str, str]]]:
    """The faults a request asks for itself; unknown names raise ValueError."""
    asked = [read_fault(part) for part in (header or "").split(";") if part.strip()]
    found = (read_fault((name + b" " + params).decode()) for name, params in MARKER.findall(body))
    return [*asked, *found]
