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
def _names_secret(field: str) -> bool:
    return _SECRET_FIELD.search(field) is not None


_SECRET_TEXT: Final = re.compile(
    r"\b(Bearer|Basic)\s+\S+|\b(sk|pk|rk|sg)-[A-Za-z0-9_-]{8,}|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
)
_HINTS: Final = ("earer", "asic", "k-", "g-", "eyJ")
"""What `_SECRET_TEXT` finds has one of these in it. Looking for each is much quicker than for any."""

_FIGURES: Final = frozenset({int, float, bool, type(None)})

PLAIN_MAX: Final = 4096
"""Texts that are remembered to be plain, and names of fields to be no secrets': most come again in the next line."""

_MILLISECONDS: Final = tuple([f".{at:03}Z" for at in range(1000)])

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
        self._is_plain: Final = _plainness(known)
        self._clean = _cleaner(known, self._is_plain)
        self._render = _console if form is LogFormat.CONSOLE else _json
        self._plain: Final[set[str]] = set()
        self._names: Final[set[str]] = set()

    def request(self, event: Mapping[str, Any]) -> None:
        """The story of one request: id, team, key, route, model, stage, ending, status, held, charged, …"""
        if self._least <= 20:
            self._line("info", "request", event)

    def note(self, level: str, event: str, **fields: Any) -> None:
        """Something about the process. level: a word of `LogLevel`."""
        if self._least <= _RANK[LogLevel(level)]:
            self._line(level, event, fields)

    def _line(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        if "event" in fields or "level" in fields or "time" in fields:
            fields = {f"{key}_" if key in _TAKEN else key: value for key, value in fields.items()}
        now_s = self._clock()
        at = _second(int(now_s // 1)) + _MILLISECONDS[int(now_s % 1 * 1000)]
        if self._render is _json and fields and self._all_plain(fields):
            try:
                line = orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
            except TypeError:
                pass  # an integer beyond 64 bits
            else:
                # In front of the others, without a mapping of all.
                self._write(f'{{"time":"{at}","level":"{level}","event":"{name}",'.encode() + line[1:])
                return
        self._write(self._render(self._clean({"time": at, "level": level, "event": name, **fields})))

    def _all_plain(self, fields: Mapping[str, Any]) -> bool:
        """Whether nothing has to be masked, escaped or cut."""
        plain, names = self._plain, self._names
        for name, value in fields.items():
            kind = type(value)
            if kind is str:
                if value not in plain and not self._found_plain(value):
                    return False
            elif kind not in _FIGURES:
                return False
            if name not in names and not self._found_named(name):
                return False
        return True

    def _found_plain(self, text: str) -> bool:
        if not self._is_plain(text):
            return False
        _remember(text, self._plain)
        return True

    def _found_named(self, name: str) -> bool:
        if type(name) is not str or _names_secret(name):
            return False
        _remember(name, self._names)
        return True


def _remember(text: str, among: set[str]) -> None:
    if len(among) >= PLAIN_MAX:
        among.clear()
    among.add(text)


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


def _plainness(known: Sequence[str]) -> Callable[[str], bool]:
    """Tells of a text that nothing in it can be a secret or steer a terminal, as in nearly every field there is."""
    hints = (*_HINTS, *known)

    def is_plain(text: str) -> bool:
        if len(text) > TEXT_MAX or not text.isascii() or not text.isprintable():
            return False
        for hint in hints:
            # `any` would take as long as all of this.
            if text.find(hint) >= 0:
                return not _SECRET_TEXT.search(text) and not any(secret in text for secret in known)
        return True

    return is_plain


def _cleaner(known: Sequence[str], is_plain: Callable[[str], bool]) -> Callable[[_Event], _Event]:
    """Mask fields named like secrets, texts that look like one and known secrets; escape and bound what is left."""

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
