"""The meter: what an answer of the gateway used, said and ended with, read on the side while its bytes pass.

`feed` every piece before it is sent on, `close` once at the end; then `usage`, `end` and the rest are final. The meter
looks and never touches, never raises on what the gateway sends, and holds a bounded part of it.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

import orjson

from proxy.core.answers import Answer, End, Failure, Family
from proxy.core.breakage import broken_event
from proxy.core.families import PATHS, READERS
from proxy.core.jsonscan import Paths, Scanner, scan
from proxy.core.sse import EVENT_MAX, Event, Reader
from proxy.core.tuples import maker

_ERROR, _CUT, _CANCELLED, _JSON = End.ERROR, End.CUT, End.CANCELLED, End.JSON
_CHAT, _RESPONSES, _MCP = Family.CHAT, Family.RESPONSES, Family.MCP
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

_GLIMPSE: Final = 4096
"""Bytes at the beginning of an unfinished text that are searched for a response id after each piece.

Responses begin with their id; one that stands further in is known with its whole event.
"""

_CREDITS: Final = Paths.of(("credits", "response.credits"))
_ID: Final = Paths.of(("id", "object", "response.id"))
_OPEN_STATUSES: Final = frozenset({"queued", "in_progress"})
_WHOLE: Final[Mapping[Family, frozenset[str]]] = {
    Family.CHAT: frozenset({"stop", "length", "tool_calls", "function_call"}),
    Family.MESSAGES: frozenset({"end_turn", "max_tokens", "stop_sequence", "tool_use"}),
    Family.RESPONSES: frozenset({"completed", "incomplete"}),
}
"""Why answers end that are all there is: others failed, were filtered, or go on with another call."""

_REFUSALS: Final = frozenset({"refusal", "content_filter"})


class Usage(NamedTuple):
    """Counts of tokens as the vendor reports them, None where the wire did not say.

    input:          chat and responses: includes cache_read. messages: without cache_read and cache_write.
    cache_write_1h: the part of cache_write that is kept for an hour.
    output:         includes reasoning.
    credits:        the gateway's own figure, exact.
    settled:        False: a running count, of which more may follow; charge no less than the metered output.
    """

    model: str | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    web_searches: int | None = None
    credits: Decimal | None = None
    settled: bool = False


_Counts = tuple[
    str | None,
    int | None,
    int | None,
    int | None,
    int | None,
    int | None,
    int | None,
    int | None,
    Decimal | None,
    bool,
]
_usage: Final[Callable[[_Counts], Usage]] = maker(Usage)


class Meter:
    """Reads one answer.

    family:   whose format it has.
    streamed: True for an event stream, False for a whole JSON body.
    """

    def __init__(self, family: Family, streamed: bool) -> None:
        self.family: Final = family
        self.streamed: Final = streamed
        self._answer = Answer()
        self._read = READERS[family]
        self._reader = Reader(_long_text) if streamed else None
        self._body = bytearray()
        self._scanner: Scanner | None = None  # of a long body
        self._wants_id = family is _RESPONSES
        self._clean = True
        self._whole = False  # the JSON body was a whole object
        self._odd = False  # an event was no JSON object, or bore the name of an error
        self._ended = False
        self._usage: Usage | None = None  # once it is final
        self._end: End | None = None  # once it is final

    def feed(self, chunk: bytes) -> None:
        if self._reader is not None:
            for event in self._reader.feed(chunk):
                self._event(event)
        elif self._scanner is not None:
            self._scanner.feed(chunk)
        else:
            self._body += chunk
            if len(self._body) > EVENT_MAX:
                self._scanner = _long_text()
                self._scanner.feed(bytes(self._body))
                self._body.clear()
        if self._wants_id:
            self._glimpse()
            self._wants_id = self._answer.response_id is None

    def close(self, *, clean: bool = True) -> None:
        """The answer has ended. clean: False when the connection broke instead of ending."""
        self._clean = clean
        self._ended = True
        if self._reader is not None:
            for event in self._reader.close():
                self._event(event)
        elif self._scanner is not None:
            self._whole = self._scanner.complete
            self._read(self._answer, b"", self._scanner.tree)
        else:
            self._whole = self._text(b"", bytes(self._body))
            self._body.clear()

    def _event(self, event: Event) -> None:
        if isinstance(event.sink, Scanner):
            self._read(self._answer, event.name, event.sink.tree)
        elif event.data.startswith(b"[DONE]"):
            if self.family is _CHAT and event.data.rstrip() == b"[DONE]":
                self._answer.ended = End.DONE
        elif event.data:
            whole = self._text(event.name, event.data)
            self._odd = self._odd or not whole or event.name == b"error"

    def _text(self, name: bytes, text: bytes) -> bool:
        """Read one JSON text; False when it is no object."""
        # Every event is decoded: 1.1 us for a usual chunk, less than looking for what would make it worth decoding.
        try:
            tree: Any = orjson.loads(text)
        except orjson.JSONDecodeError:
            return False
        if not isinstance(tree, dict):
            return False
        response = tree.get("response")
        if "credits" in tree or (isinstance(response, dict) and "credits" in response):
            _exact_credits(tree, text)
        self._read(self._answer, name, tree)
        return True

    def _glimpse(self) -> None:
        """A response id belongs to its team before the bytes that carry it are sent: look into what is unfinished."""
        if self._answer.response_id is not None:
            return
        reader, body = self._reader, self._body
        scanner = self._scanner if reader is None else reader.sink
        if isinstance(scanner, Scanner):
            found: Any = scanner.tree
        else:
            begun = body[:_GLIMPSE] if reader is None else reader.beginning(_GLIMPSE).removeprefix(b"data:")
            if not begun:
                return
            found = scan(bytes(begun), _ID)
        response = found if found.get("object") == "response" else found.get("response")
        identifier = response.get("id") if isinstance(response, dict) else None
        if isinstance(identifier, str) and identifier:
            self._answer.response_id = identifier

    @property
    def usage(self) -> Usage:
        if self._usage is not None:
            return self._usage
        said = self._answer
        # A zero that cannot be true is a relay's filling and means unknown.
        no_input = not said.input and not said.cache_read and not said.cache_write
        usage = _usage(
            (
                said.model,
                None if no_input else said.input,
                said.cache_read,
                said.cache_write,
                said.cache_write_1h,
                None if said.output == 0 and said.text_bytes else said.output,
                said.reasoning,
                said.web_searches,
                said.credits,
                said.settled,
            )
        )
        if self._ended:
            self._usage = usage
        return usage

    @property
    def end(self) -> End:
        """How the answer ended, or would have if it ended now."""
        if self._end is not None:
            return self._end
        end = self._end_now()
        if self._ended:
            self._end = end
        return end

    def _end_now(self) -> End:
        said = self._answer
        if said.failure is not None and self.family is not _MCP:
            return _ERROR
        if not self.streamed:
            return _JSON if self._whole else _CUT
        if said.ended is not None:
            return said.ended
        finished = said.finish_reason is not None and not said.open_choices
        return End.EOF_AFTER_FINISH if self.family is _CHAT and finished and self._clean else _CUT

    @property
    def terminal(self) -> bool:
        """The caller can see how the answer ended; nothing needs to be added."""
        end = self.end
        return self._answer.own_error if end is _ERROR and self.streamed else end is not _CUT

    @property
    def failure(self) -> Failure | None:
        """The error that was found inside the answer."""
        return self._answer.failure

    @property
    def own_error(self) -> bool:
        """The error came as the event this family's SDKs read as one."""
        return self._answer.own_error

    @property
    def response_id(self) -> str | None:
        """Id of a Responses object; known when `feed` returns from the piece that completes it."""
        return self._answer.response_id

    @property
    def status(self) -> str | None:
        """State word of a Responses object; of a tool call `result`, `tool_error` or `rpc_error`."""
        return self._answer.status

    @property
    def finish_reason(self) -> str | None:
        return self._answer.finish_reason

    @property
    def output_bytes(self) -> int:
        """UTF-8 bytes of text, thinking and arguments seen; in texts above `EVENT_MAX` their JSON form is counted."""
        return self._answer.text_bytes

    @property
    def empty_answer(self) -> bool:
        """A complete answer without text, tool call, refusal or media; blanks are no text."""
        said = self._answer
        if not said.begun or said.answered or said.status in _OPEN_STATUSES:
            return False
        return self.end not in (_CUT, _ERROR, _CANCELLED)

    @property
    def said_why_it_ended(self) -> bool:
        """An answer has begun, nothing in it was odd, and it ended for a reason of those that whole ones have."""
        said = self._answer
        reason = said.status if self.family is _RESPONSES else said.finish_reason
        return said.begun and not self._odd and reason in _WHOLE.get(self.family, (reason,))

    @property
    def at_boundary(self) -> bool:
        """The stream stands between two events, so a comment may be put in."""
        return self._reader is None or self._reader.at_boundary

    @property
    def refused(self) -> bool:
        """The model would not answer, or a filter cut what it said."""
        return self._answer.refused or self._answer.finish_reason in _REFUSALS

    def ending(self, message: str, *, rpc_id: bytes = b"null") -> bytes:
        """What to send after a stream that is not terminal: the family's error event, after what ends a half frame."""
        if self.terminal or self._reader is None:
            return b""
        said = self._answer
        return self._reader.terminator + broken_event(
            self.family,
            said.failure.message if said.failure else message,
            response_id=said.response_id,
            sequence=said.sequence + 1,
            model=said.model,
            created_at=said.created_at,
            rpc_id=rpc_id,
        )


def _long_text() -> Scanner:
    """Reads a JSON text that is too long to keep."""
    return Scanner(PATHS)


def _exact_credits(tree: dict[str, Any], text: bytes) -> None:
    """Put the figure as written in place of the float the decoder made of it."""
    exact = scan(text, _CREDITS)
    if "credits" in tree:
        tree["credits"] = exact.get("credits")
    if isinstance(tree.get("response"), dict) and "credits" in tree["response"]:
        tree["response"]["credits"] = exact.get("response", {}).get("credits")
