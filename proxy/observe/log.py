"""One log event per request, at its end, and notes about the process.

Whatever comes in from outside is escaped and bounded, what looks like a secret is masked, and a reader of the log that
is slow, gone or out of disk never slows or stops the service: lines are dropped and counted instead.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TextIO

import orjson

from proxy.config.secret import Secret
from proxy.config.settings import LogFormat, LogLevel
from proxy.observe.sink import Sink

TEXT_MAX: Final = 512
"""Longest text in one field, in characters; a User-Agent or a gateway's sentence fits."""

_RANK: Final = {LogLevel.DEBUG: 10, LogLevel.INFO: 20, LogLevel.WARNING: 30, LogLevel.ERROR: 40}

# C0 and C1 controls steer terminals and forge lines, the direction marks reorder what a person reads, and lone
# surrogates are not text at all.
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")

_SECRET_FIELD: Final = re.compile(
    "authorization|cookie|credential|passw|secret|token|api[_-]?key|[_-]key", re.IGNORECASE
)
"""Field names whose text is masked; numbers under such names (tokens) are figures and stay."""

_TEXTUAL: Final = (str, bytes, list, tuple, set, frozenset, Mapping)


@lru_cache(maxsize=512)
def _frame(names: tuple[Any, ...]) -> int:
    """How long a line is at least that has fields of these names, without their values; 0 where one of them is no text,
    or names a secret.
    """
    if not all(type(name) is str and not _names_secret(name) for name in names):
        return 0
    return sum(len(name) + len('"":,') for name in names)


@lru_cache(maxsize=512)
def _names_secret(field: str) -> bool:
    return _SECRET_FIELD.search(field) is not None


_SECRET_TEXT: Final = re.compile(
    r"\b(Bearer|Basic)\s+\S+|\b(sk|pk|rk|sg)-[A-Za-z0-9_-]{8,}|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
)
_MAYBE_SECRET: Final = re.compile("earer|asic|[sprg][kg]-|eyJ")
"""A quick look: what `_SECRET_TEXT` finds has one of these in it."""

_NEEDS_A_LOOK: Final = _MAYBE_SECRET.pattern.encode() + rb"|[\\{\x7f]"
"""Pattern of what in a line needs one: what may be a secret, an escape of something, a mapping in a field, or the one
control character that JSON lets stand."""

_HINTS: Final = (b"earer", b"asic", b"k-", b"g-", b"eyJ", b"\\", b"\x7f")
"""One of these is in whatever the pattern finds, a brace aside. Looking for each costs a tenth of looking for all."""

_FIGURES: Final = frozenset({int, float, bool, type(None)})

MASK: Final = "***"

_Event = MutableMapping[str, Any]


class RequestLog:
    """Writes one line per event to a sink. Nothing here raises, whatever the fields hold."""

    def __init__(
        self,
        write: Callable[[bytes], object],
        *,
        form: LogFormat,
        level: LogLevel = LogLevel.INFO,
        secrets: Iterable[Secret | None] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """secrets: known ones, masked wherever they appear. clock: seconds since the epoch."""
        self._least = _RANK[level]
        self._write = write
        self._clock = clock
        known = sorted({secret.reveal() for secret in secrets if secret is not None}, key=len, reverse=True)
        written = [re.escape(orjson.dumps(secret)[1:-1]) for secret in known]
        self._needs_a_look: Final = re.compile(b"|".join([_NEEDS_A_LOOK, *written]))
        self._hints: Final = (*_HINTS, *[orjson.dumps(secret)[1:-1] for secret in known])
        self._clean = _cleaner(known)
        self._render = _console if form is LogFormat.CONSOLE else _json

    def request(self, event: Mapping[str, Any]) -> None:
        """The story of one request: id, team, key, route, model, stage, ending, status, held, charged, …"""
        if self._least <= 20:
            self._line("info", "request", event)

    def note(self, level: str, event: str, **fields: Any) -> None:
        """Something about the process. level: a word of `LogLevel`."""
        if self._least <= _RANK[LogLevel(level)]:
            self._line(level, event, fields)

    def _line(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        if not _TAKEN.isdisjoint(fields):
            fields = {f"{key}_" if key in _TAKEN else key: value for key, value in fields.items()}
        now_s = self._clock()
        event = {
            "time": f"{_second(int(now_s // 1))}.{int(now_s % 1 * 1000):03}Z",
            "level": level,
            "event": name,
            **fields,
        }
        if self._render is _json and (line := self._at_once(event)) is not None:
            self._write(line)
            return
        self._write(self._render(self._clean(event)))

    def _at_once(self, event: _Event) -> bytes | None:
        """The line, where one look at the whole of it shows that nothing has to be masked, escaped or cut."""
        if not (frame := _frame(tuple(event))):
            return None
        try:
            line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:
            return None
        if not line.isascii() or (self._may_need_a_look(line) and self._needs_a_look.search(line, 1)):
            return None
        # A line up to this length has no text in it that would have to be cut.
        return line if len(line) <= TEXT_MAX + frame or all(map(_short, event.values())) else None

    def _may_need_a_look(self, line: bytes) -> bool:
        # `in` would first try the text as a number, which takes longer than the search.
        for hint in self._hints:
            if line.find(hint) >= 0:
                return True
        return line.find(b"{", 1) > 0


_TAKEN: Final = frozenset({"event", "level", "time"})
"""Names of the line's own fields; a field of the same name gets an underscore."""


def open_log(
    stream: TextIO, form: LogFormat, level: LogLevel, secrets: Iterable[Secret | None] = ()
) -> tuple[RequestLog, Sink]:
    """A log on an open stream, and the sink to close at the end. AUTO is decided here, by whether a person reads."""
    if form is LogFormat.AUTO:
        form = LogFormat.CONSOLE if stream.isatty() else LogFormat.JSON
    sink = Sink(stream.fileno())
    return RequestLog(sink.write, form=form, level=level, secrets=secrets), sink


@lru_cache(maxsize=64)
def _second(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _cleaner(known: Sequence[str]) -> Callable[[_Event], _Event]:
    """Mask fields named like secrets, texts that look like one and known secrets; escape and bound what is left."""

    def is_plain(text: str) -> bool:
        """Nothing in it could be a secret or steer a terminal: nearly every field of nearly every event."""
        short = len(text) <= TEXT_MAX and text.isascii() and text.isprintable()
        return short and not _MAYBE_SECRET.search(text) and not any(secret in text for secret in known)

    def mask(value: Any) -> Any:
        if isinstance(value, bytes):
            value = value.decode("utf-8", "backslashreplace")
        if isinstance(value, str):
            for secret in known:
                value = value.replace(secret, MASK)
            return _SECRET_TEXT.sub(MASK, value)
        if isinstance(value, Mapping):
            return {str(name): mask_named(str(name), item) for name, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [mask(item) for item in value]
        return value if value is None or isinstance(value, bool | int | float) else mask(_text(value))

    def mask_named(name: str, value: Any) -> Any:
        return MASK if isinstance(value, _TEXTUAL) and _names_secret(name) else mask(value)

    def clean(event: _Event) -> _Event:
        for name, value in event.items():
            kind = type(value)
            if kind in _FIGURES or (kind is str and is_plain(value) and not _names_secret(name)):
                continue
            event[name] = printable(mask_named(name, value))
        return event

    return clean


def _short(value: Any) -> bool:
    """A figure, or a text that fits."""
    return type(value) in _FIGURES or (type(value) is str and len(value) <= TEXT_MAX)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  (a value whose own text fails must not fail the request it tells about)
        return f"<{type(value).__name__}>"


def printable(value: Any) -> Any:
    """Texts, also inside lists and mappings, bounded, on one line, what steers a terminal escaped."""
    if isinstance(value, str):
        # Cut before escaping too: a huge text must not cost its length.
        cut = value if len(value) <= TEXT_MAX else f"{value[:TEXT_MAX]}…"
        return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", cut)
    if isinstance(value, Mapping):
        return {printable(str(name)): printable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [printable(item) for item in value]
    return value


def _json(event: _Event) -> bytes:
    try:
        return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # An integer beyond 64 bits, or nesting beyond orjson's bound.
        return orjson.dumps({name: printable(_text(value)) for name, value in event.items()}) + b"\n"


def _console(event: _Event) -> bytes:
    words = [str(event.pop("time"))[11:19], f"{event.pop('level'):7}", str(event.pop("event"))]
    words += [f"{name}={_quoted(value)}" for name, value in event.items() if value is not None]
    return (" ".join(words) + "\n").encode("utf-8", "backslashreplace")


def _quoted(value: Any) -> str:
    text = str(value)
    return text if re.fullmatch(r'[^\s"=]+', text) else '"' + text.replace('"', '\\"') + '"'
