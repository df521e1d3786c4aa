"""Faults of the delivery: silence, resets, early ends, and heads that no server should send."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from proxy.emulator.answers import Answer
from proxy.emulator.faults.asking import Asked
from proxy.emulator.script import Close, End, Gate, Hang, Head, Pause, Raw, Reset, Script, Send, Step

Delivery = Callable[[Script, Answer, Asked], Script]

BAD_LINES: Final = {
    "nul": b"X-Odd: a\x00b",
    "nocolon": b"X-Odd without a colon",
    "space": b"X-Odd : a",
    "fold": b"X-Odd: a\r\n b",
    "twice": b"Content-Length: 1",
}
"""Header lines no server may send, by the word of `form=`."""


def slow(script: Script, _answer: Answer, asked: Asked) -> Script:
    """`gate=` holds before piece `at` (0 is before the head); `head=` and `every=` are seconds of silence."""
    return tuple(_slowed(script, asked))


def _slowed(script: Script, asked: Asked) -> Iterator[Step]:
    gate, at, every = asked.params.get("gate"), asked.count("at", 0), asked.number("every", 0)
    if head := asked.number("head", 0):
        yield Pause(head)
    if gate and at == 0:
        yield Gate(gate)
    pieces = 0
    for step in script:
        if isinstance(step, Send | End):
            pieces += 1
            if every and pieces > 1:
                yield Pause(every)
            # A stream shorter than `at` is held before its end.
            if gate and (at == pieces or (isinstance(step, End) and at > pieces)):
                yield Gate(gate)
        yield step


def hang(script: Script, _answer: Answer, asked: Asked) -> Script:
    """Silence instead of an answer, or after `after` pieces of it."""
    begun = _upto(script, asked.count("after", 0), None) if "after" in asked.params else ()
    return (*begun, Hang())


def cut(end: Step) -> Delivery:
    """The answer stops after `after` pieces, or after `bytes` bytes of the body."""

    def delivery(script: Script, _answer: Answer, asked: Asked) -> Script:
        kept = _upto(script, asked.count("after", 2), asked.params.get("bytes"))
        # A promised length would show the early end; only chunks can end cleanly in the middle.
        return (*(replace(step, length=None) if isinstance(step, Head) else step for step in kept), end)

    return delivery


def _upto(script: Script, pieces: int, count: str | None) -> Script:
    """The script up to so many pieces, or up to so many bytes of the body; the piece on the border is shortened."""
    left = int(count) if count is not None else None
    kept: list[Step] = []
    for step in script:
        if isinstance(step, End):
            break
        if not isinstance(step, Send):
            kept.append(step)
        elif left is None:
            if pieces <= 0:
                break
            pieces -= 1
            kept.append(step)
        else:
            if left <= 0:
                break
            kept.append(Send(step.data[:left]))
            left -= len(step.data)
    return tuple(kept)


def only(*steps: Step) -> Delivery:
    """These steps whatever was answered."""
    return lambda _script, _answer, _asked: steps


def reset_in_head(_script: Script, _answer: Answer, _asked: Asked) -> Script:
    return Raw(b"HTTP/1.1 200 OK\r\nContent-Ty"), Reset()


def bad_chunks(_script: Script, answer: Answer, _asked: Asked) -> Script:
    return _by_hand(answer, [b"Transfer-Encoding: chunked"], b"5\r\n: hi\n\r\nzz\r\nnot a chunk\r\n")


def bad_headers(_script: Script, answer: Answer, asked: Asked) -> Script:
    return _by_hand(answer, [_length(answer), BAD_LINES[asked.params.get("form", "nul")]])


def many_headers(_script: Script, answer: Answer, asked: Asked) -> Script:
    more = [b"X-Many-%d: x" % number for number in range(asked.count("n", 10_000))]
    return _by_hand(answer, [_length(answer), *more])


def lying_length(_script: Script, answer: Answer, _asked: Asked) -> Script:
    return _by_hand(answer, [_length(answer, 1)])


def replayed(_script: Script, _answer: Answer, asked: Asked) -> Script:
    """A recorded answer, byte for byte."""
    found = asked.recordings[asked.params["name"]]
    if found.past_http:
        return (*(Raw(piece) for piece in found.pieces), Close())
    return (Head(found.status, found.headers, None), *(Send(piece) for piece in found.pieces), End())


def _by_hand(answer: Answer, lines: Iterable[bytes], body: bytes | None = None) -> Script:
    """An answer written past HTTP: a head with these lines, the body, and then the connection is closed."""
    first = [b"HTTP/1.1 %d OK" % answer.status, b"Content-Type: " + answer.content_type.encode()]
    head = b"\r\n".join([*first, *lines]) + b"\r\n\r\n"
    return Raw(head + (answer.body if body is None else body)), Close()


def _length(answer: Answer, more: int = 0) -> bytes:
    return b"Content-Length: %d" % (len(answer.body) + more)
