"""The words, numbers and amounts of a policy file: what each may be, and what to write instead.

A reader takes a value as it stands and raises ValueError with what is wrong and, as a second argument, what to do.
"""

import re
from datetime import UTC, datetime
from decimal import Context, Decimal
from difflib import get_close_matches
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from proxy.config.problem import did_you_mean
from proxy.core.facts import ROUTES
from proxy.core.jsonrpc import METHODS
from proxy.units import CREDITS_MAX, Credits, credit_text, credits_of, seconds_of

NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Names of teams and keys: they become labels, log fields and file names."""


_DIGITS: Final = r"(0|[1-9][0-9]*)(\.[0-9]+)?"
_DURATION: Final = re.compile(rf"{_DIGITS}|({_DIGITS}(ms|s|m|h|d|w))+")


def _duration(value: Any) -> Any:
    do = "write digits and one of ms, s, m, h, d, w, such as 30s or 1h30m"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a duration is a number of seconds or text such as 30s", do)
    if isinstance(value, str) and not _DURATION.fullmatch(value.lower()):
        raise ValueError(f"{value!r} is not a duration", do)
    try:
        return seconds_of(value)
    except ValueError as error:
        raise ValueError(str(error), do) from None


Name = Annotated[str, Field(strict=True, pattern=NAME)]
Duration = Annotated[
    float,
    BeforeValidator(_duration),
    WithJsonSchema({"type": ["number", "string"], "description": "Seconds, or text such as 500ms, 30s, 1h30m, 7d."}),
]


def _instant(value: Any) -> Any:
    """Seconds since the epoch. A day begins at its midnight in UTC; a time without a zone is UTC."""
    do = "write a day or an instant, such as 2027-01-31 or 2027-01-31T18:00:00+09:00"
    if not isinstance(value, str):
        raise ValueError(f"{_word(value)} is no instant", do)
    try:
        found = datetime.fromisoformat(value)
    except ValueError as error:
        # Python's own sentence says no more than this unless it is about a day that no calendar has.
        why = "" if "isoformat" in str(error) else f" ({error})"
        raise ValueError(f"{value!r} is no instant{why}", do) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


def _word(value: Any) -> str:
    return "this" if isinstance(value, list | dict) else str(value).lower() if value is None else repr(value)


Instant = Annotated[
    float,
    BeforeValidator(_instant),
    WithJsonSchema({"type": "string", "description": "Such as 2027-01-31 or 2027-01-31T18:00:00+09:00."}),
]
Digest = Annotated[str, Field(strict=True, pattern=r"^[0-9A-Fa-f]{64}$")]


_AMOUNT: Final = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_AMOUNT_DO: Final = "write an amount of credits in digits with a point, such as 3000 or 0.25"
PLACES: Final = 8
"""Decimals that an amount has at most: money is kept in units of 1e-8 credit."""


def _amount(value: Any) -> Any:
    """Credits from a number or from text, exactly as they stand in the file."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"expected an amount of credits, not {_word(value)}", _AMOUNT_DO)
    # A number with a point knows the digits it was written in.
    text = str(value)
    if not _AMOUNT.fullmatch(text):
        raise ValueError(f"{value!r} is not an amount of credits", _AMOUNT_DO)
    try:
        amount = credits_of(text)
    except ValueError:
        most = credit_text(CREDITS_MAX)
        raise ValueError(f"{text} is not an amount between 0 and {most} credits", _AMOUNT_DO) from None
    if amount != Decimal(text).scaleb(PLACES, Context(prec=60)):
        raise ValueError(f"{text} has more than {PLACES} decimals, the most that an amount has", "write fewer")
    return amount


def _zone(value: Any) -> Any:
    do = "write the name of one, such as Asia/Seoul"
    if not isinstance(value, str):
        raise ValueError(f"{_word(value)} is no time zone", do)
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = get_close_matches(value, available_timezones(), n=1, cutoff=0.8)
        raise ValueError(f"{value!r} is no time zone", f"did you mean {near[0]}?" if near else do) from None


def _ids(value: Any) -> Any:
    return [str(item) if type(item) is int else item for item in value] if isinstance(value, list | tuple) else value


def _share(value: Any) -> Any:
    if isinstance(value, str) and (percent := re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]+)?) ?%", value)):
        raise ValueError(f"{value!r} is text", f"write {float(percent[1]) / 100:g}, the share of the amount")
    if type(value) is int or isinstance(value, float):
        if 1 < value <= 100:
            do = f"write {value / 100:g} for {value!r} %"
            raise ValueError(f"{value!r} is more than the whole amount, which is 1", do)
        if not 0 < value <= 1:
            do = "write more than 0 and at most 1, such as 0.5 for half"
            raise ValueError(f"{value!r} is no share of the amount", do)
    return value


def _once(shares: tuple[float, ...]) -> tuple[float, ...]:
    """Each share once: it would be told, and counted, as often as it stands there."""
    for at, share in enumerate(shares):
        if share in shares[:at]:
            raise ValueError(f"{share:.15g} stands here twice", "take one of them out")
    return shares


def _literal(value: Any) -> Any:
    """One name, compared as it stands: a pattern would fit nothing."""
    if isinstance(value, str) and re.search(r"[*?\[]", value):
        do = "write the name; patterns are for models and tools"
        raise ValueError(f"{value!r} is a pattern, and here stands one name", do)
    return value


def _route(value: Any) -> Any:
    if isinstance(value, str) and value not in ROUTES:
        raise ValueError(f"there is no route {value!r}", did_you_mean(value, ROUTES))
    return value


def _method(value: Any) -> Any:
    """A method of MCP. Callers and suites can have some of their own, so only what is near a known one is misspelt."""
    if isinstance(value, str) and value not in METHODS:
        near = get_close_matches(value, sorted(METHODS), n=1, cutoff=0.8)
        if near or not re.fullmatch(r"[A-Za-z$][\w.$-]*(/[\w.$-]+)+", value):
            do = f"did you mean {near[0]}?" if near else did_you_mean(value, METHODS)
            raise ValueError(f"{value!r} is no method of MCP", do)
    return value


def hold_or_refuse(value: Any) -> Any:
    if value == "refuse":
        return None
    if not isinstance(value, dict):
        raise ValueError(f"{_word(value)} is not what can be said here", "write refuse, or { hold: 100 }")
    return value


def _group(value: Any) -> Any:
    if (type(value) is int and value >= 1) or (isinstance(value, str) and value):
        return value
    raise ValueError(f"{_word(value)} is no member group", "write its id, such as 12, or its name")


Amount = Annotated[
    Credits,
    BeforeValidator(_amount),
    WithJsonSchema({"type": ["number", "string"], "description": "Credits, such as 3000 or 0.25; at least 0."}),
]
Zone = Annotated[
    Any,
    BeforeValidator(_zone),
    WithJsonSchema({"type": "string", "description": "Such as Asia/Seoul; UTC if left out."}),
]
Glob = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Globs = tuple[Glob, ...]
_ID_SCHEMA: Final = {"type": ["string", "integer"]}
Ids = Annotated[Globs, BeforeValidator(_ids), WithJsonSchema({"type": "array", "items": _ID_SCHEMA})]
IdGlob = Annotated[
    Glob, BeforeValidator(lambda value: str(value) if type(value) is int else value), WithJsonSchema(_ID_SCHEMA)
]
Share = Annotated[float, BeforeValidator(_share), Field(strict=True, gt=0, le=1)]
Shares = Annotated[tuple[Share, ...], AfterValidator(_once)]
Literally = Annotated[Glob, BeforeValidator(_literal)]
LiteralId = Annotated[IdGlob, BeforeValidator(_literal)]
Route = Annotated[str, BeforeValidator(_route), Field(strict=True), WithJsonSchema({"enum": sorted(ROUTES)})]
Method = Annotated[Glob, BeforeValidator(_method)]
Tokens = Annotated[int, Field(strict=True, ge=1, le=100_000_000)]


TOOL_ALIAS: Final = r"^[A-Za-z0-9]([A-Za-z0-9-]|_[A-Za-z0-9-])*$"
"""Two underscores stand between suite and tool in the names that are made."""
ToolAlias = Annotated[str, Field(strict=True, pattern=TOOL_ALIAS, max_length=64)]
SUITE_TOOL: Final = r"^[^.\s]+\..+$"
SuiteTool = Annotated[str, Field(strict=True, pattern=SUITE_TOOL, max_length=200)]

Group = Annotated[Any, BeforeValidator(_group), WithJsonSchema({"type": ["integer", "string"]})]
"""Of the tenant's member groups, by id or by name in either language."""
