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

OURS: Final = frozenset({
    "stage", "ending", "status", "held", "charged", "basis", "asked_at", "waited_s", "wait_max_s", "ceiling", "head_s",
    "upstream_s", "input", "output", "cache", "sent_bytes", "dur_s", "empty", "left",
})  # fmt: skip
"""Fields of a request that hold figures, amounts and words of this code, whoever asks for whatever.

Nobody looks at them. A field that is not in this list is looked at, so one that holds anything else stays out of it.
"""

_OUR_WORD: Final = re.compile("[a-z_]+|[0-9.-]+")
"""A known secret that looks like this could be in one of them."""

_HEXADECIMAL: Final = re.compile(f"[0-9A-Fa-f-]{{1,{TEXT_MAX}}}")
"""Ids of requests and traces: plain, as no secret looks like this but one that is known."""

PLAIN_MAX: Final = 4096
"""Texts that are remembered to be plain: most come again in the next line."""

SHAPES_MAX: Final = 512
"""Sets of fields that are remembered: the few that stories have."""

_MILLISECONDS: Final = tuple([b".%03dZ" % at for at in range(1000)])

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
        self._json: Final = form is not LogFormat.CONSOLE
        self._plain: Final[set[str]] = set()
        self._shapes: Final[dict[tuple[str, ...], tuple[str, ...] | None]] = {}
        self._known: frozenset[str] = frozenset()
        self.mask(*secrets)

    def mask(self, *secrets: Secret | None) -> None:
        """Mask these, too, from now on."""
        self._known |= {secret.reveal() for secret in secrets if secret is not None}
        known = sorted(self._known, key=len, reverse=True)
        self._is_plain = _plainness(known)
        self._clean = _cleaner(known, self._is_plain)
        self._ours = OURS if not any(map(_OUR_WORD.fullmatch, known)) else frozenset()
        self._hexadecimal_is_plain = not any(map(_HEXADECIMAL.fullmatch, known))
        # What was found to be harmless may have one of them in it.
        self._plain.clear()
        self._shapes.clear()

    def request(self, event: Mapping[str, Any]) -> None:
        """The story of one request: id, team, key, route, model, stage, ending, status, held, charged, …"""
        if self._least > 20:
            return
        if self._json and self._all_plain(event):
            try:
                line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
            except TypeError:
                pass  # an integer beyond 64 bits
            else:
                # In front of the others, without a mapping of all.
                self._write(b"".join((b'{"time":"', self._now(), b'","level":"info","event":"request",', line[1:])))
                return
        self._line("info", "request", event)

    def note(self, level: str, event: str, **fields: Any) -> None:
        """Something about the process. level: a word of `LogLevel`."""
        if self._least <= _RANK[LogLevel(level)]:
            self._line(level, event, fields)

    def _line(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        """Write a line with a look at everything in it."""
        if not _TAKEN.isdisjoint(fields):
            fields = {f"{key}_" if key in _TAKEN else key: value for key, value in fields.items()}
        event = self._clean({"time": self._now().decode(), "level": level, "event": name, **fields})
        self._write(_json(event) if self._json else _console(event))

    def _now(self) -> bytes:
        now_s = self._clock()
        at_s = int(now_s)
        return _second(at_s) + _MILLISECONDS[int((now_s - at_s) * 1000)]

    def _all_plain(self, story: Mapping[str, Any]) -> bool:
        """Whether nothing of a request has to be masked, escaped or cut."""
        shape = tuple(story)
        try:
            looked_at = self._shapes[shape]
        except KeyError:
            looked_at = self._new_shape(shape)
        if looked_at is None or not self._is_plain_value(story["id"]):
            return False
        try:
            if self._plain.issuperset(map(story.__getitem__, looked_at)):
                return True
        except TypeError:
            return False  # a list or a mapping
        return all(map(self._is_plain_value, map(story.__getitem__, looked_at)))

    def _new_shape(self, shape: tuple[str, ...]) -> tuple[str, ...] | None:
        """Which fields of a story are looked at, besides its id; None for fields that no plain story has."""
        looked_at = None
        if "id" in shape and _TAKEN.isdisjoint(shape) and not any(map(_names_secret, shape)):
            looked_at = tuple(name for name in shape if name not in self._ours and name != "id")
        if len(self._shapes) >= SHAPES_MAX:
            self._shapes.clear()
        self._shapes[shape] = looked_at
        return looked_at

    def _is_plain_value(self, value: object) -> bool:
        if type(value) is not str:
            return type(value) in _FIGURES
        if self._hexadecimal_is_plain and _HEXADECIMAL.fullmatch(value):
            # Not to be remembered, as it hardly comes again.
            return True
        if value in self._plain:
            return True
        if not self._is_plain(value):
            return False
        if len(self._plain) >= PLAIN_MAX:
            self._plain.clear()
        self._plain.add(value)
        return True


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
def _second(at_s: int) -> bytes:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()


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
