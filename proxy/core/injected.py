"""Usage that we asked a chat stream for and the caller did not: asked for in the request, taken out of the answer.

The gateway reports a stream's usage in one more chunk, without choices, and puts `"usage":null` into all others.
Exactly these go out again, so the caller reads the stream it asked for. Of an event too long to be kept, the null goes
where it is the last member, as gateways write it; elsewhere only who reads the whole event can tell it from text.
"""

import re
from typing import Any, Final

import orjson

from proxy.core.splice import addition, members, removal, splice
from proxy.core.sse import EVENT_MAX

_BLANK_LINE: Final = re.compile(rb"(?>\r\n|\r|\n){2}")
_DATA: Final = re.compile(rb"^data:[ ]?", re.MULTILINE)
_LAST_NULL: Final = re.compile(rb',[ ]?"usage"[ ]?:[ ]?null(?=[ ]?\}[\r\n]*\Z)')
"""The last member of a whole object: what closes at the end of an event is the event's own object, and no text."""

_TAIL: Final = 64
"""Bytes of a long event that stay until more is known of it: its last member, and half a blank line."""


def asking(body: bytes) -> bytes:
    """The body with `stream_options.include_usage` asked for; every other byte as it came."""
    options = members(body).get("stream_options")
    if options is None:
        return splice(body, [addition(body, "stream_options", {"include_usage": True})])
    value = orjson.loads(body[options.start : options.end])
    kept = value if isinstance(value, dict) else {}
    return splice(body, [(options.start, options.end, orjson.dumps({**kept, "include_usage": True}))])


class UsageTaker:
    """Takes the usage out of one stream; a frame is held back until it is whole, a very long one is not."""

    __slots__ = ("_held", "_passing")

    def __init__(self) -> None:
        self._held = b""
        self._passing = False  # a frame too long to be a usage chunk goes through as it comes

    def feed(self, piece: bytes) -> bytes:
        """What of the stream may go on now."""
        self._held += piece
        out = []
        at = 0
        for blank in _BLANK_LINE.finditer(self._held):
            # A CR at the very end may be half of a CRLF that is still to come.
            if blank.end() == len(self._held) and self._held.endswith(b"\r"):
                break
            frame = self._held[at : blank.end()]
            out.append(_LAST_NULL.sub(b"", frame) if self._passing else _without_usage(frame))
            self._passing = False
            at = blank.end()
        self._held = self._held[at:]
        if len(self._held) > EVENT_MAX:
            self._passing = True
            out.append(self._held[:-_TAIL])
            self._held = self._held[-_TAIL:]
        return b"".join(out)

    def close(self) -> bytes:
        """What is left when the stream has ended."""
        rest, self._held = self._held, b""
        return _LAST_NULL.sub(b"", rest) if self._passing else _without_usage(rest)


def _without_usage(frame: bytes) -> bytes:
    if b"usage" not in frame:
        return frame
    starts = list(_DATA.finditer(frame))
    if len(starts) != 1:
        return frame
    start = starts[0].end()
    end = start + len(re.split(rb"[\r\n]", frame[start:], maxsplit=1)[0])
    try:
        chunk: Any = orjson.loads(frame[start:end])
    except orjson.JSONDecodeError:
        return frame
    if not isinstance(chunk, dict) or "usage" not in chunk:
        return frame
    if chunk["usage"] is None:
        text = frame[start:end]
        return frame[:start] + splice(text, [removal(text, members(text)["usage"])]) + frame[end:]
    return b"" if chunk.get("choices") == [] else frame
