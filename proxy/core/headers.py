"""Which header lines cross the proxy, in each direction, as allow-lists.

Upwards: what the gateway's own document names, plus trace context. A caller's key, cookies, telemetry and hop-by-hop
lines stay here. Downwards: content, rate and credit figures, request ids. Nothing passes because nobody thought of it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Final

NATIVE_VERSION: Final = "2023-06-01"
"""The only version value that the gateway's document names."""

VERSION_NAMES: Final = ("anthropic-version", "partner-version")
BETA_NAMES: Final = ("anthropic-beta", "partner-beta")

MCP_LEGACY_VERSIONS: Final = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
"""Protocol versions that a stateless suite of the older era accepts in `MCP-Protocol-Version`."""

_UP: Final = frozenset({"content-type", "traceparent", "tracestate"})

_RANGES: Final = frozenset({"range", "if-range"})

_DOWN: Final = frozenset(
    {
        "content-type", "content-disposition", "content-range", "accept-ranges", "etag", "last-modified",
        "x-credits-charged", "x-model", "x-input-tokens", "x-output-tokens", "x-music-structure",
        "request-id", "ratelimit", "ratelimit-policy", "x-should-retry",
    }
)  # fmt: skip
_DOWN_PREFIXES: Final = ("x-ratelimit-", "anthropic-ratelimit-", "partner-ratelimit-")

_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def headers_up(
    sent: Iterable[tuple[str, str]],
    *,
    native_segment: str | None,
    pin_version: bool,
    mcp: bool,
    ranges: bool = False,
) -> dict[str, str]:
    """The caller's header lines that go to the gateway, by lower-case name; the first of repeated lines counts.

    native_segment: prefix of the version and beta headers on the native routes, None on all others.
    pin_version:    send the documented version whatever came.
    ranges:         the route answers a part of its bytes when asked for it.
    """
    came: dict[str, str] = {}
    for name, value in sent:
        came.setdefault(name.lower(), value)
    up = {name: value for name, value in came.items() if name in _UP or (ranges and name in _RANGES)}
    if native_segment is not None:
        version = next((came[name] for name in VERSION_NAMES if name in came), NATIVE_VERSION)
        up[f"{native_segment}-version"] = NATIVE_VERSION if pin_version else version
        if beta := next((came[name] for name in BETA_NAMES if name in came), None):
            up[f"{native_segment}-beta"] = beta
    if mcp and came.get("mcp-protocol-version") in MCP_LEGACY_VERSIONS:
        up["mcp-protocol-version"] = came["mcp-protocol-version"]
    return up


class ForbiddenHeader(ValueError):
    """An answer of the gateway carries control bytes in a header line that would be passed on."""


def headers_down(received: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The gateway's header lines that go to the caller, by lower-case name; raises ForbiddenHeader.

    The gateway's own `X-Request-ID` goes out as `x-upstream-request-id`, because ours stands in its place.
    """
    down: dict[str, str] = {}
    for name, value in received:
        low = name.lower()
        if low == "x-request-id":
            low = "x-upstream-request-id"
        elif low not in _DOWN and not low.startswith(_DOWN_PREFIXES):
            continue
        # What is printable has no control bytes, and nearly every value is.
        if not value.isprintable() and _FORBIDDEN.search(value):
            raise ForbiddenHeader(low)
        down.setdefault(low, value)
    return down


RETRY_MIN_S, RETRY_MAX_S = 1, 60
"""Bounds of the `Retry-After` we send: older SDKs ignore more than 60 s and retry after half a second instead."""

RETRY_UNKNOWN_S: Final = 5
"""What we send when the gateway says 429 or 503 without a usable figure."""


@dataclass(frozen=True, slots=True)
class Retry:
    """What a 429 or 503 tells its caller: header lines, and the true figure in seconds (None: nobody knows)."""

    headers: Mapping[str, str]
    after_s: float | None


def retry(true_s: float | None, *, pointless: bool = False) -> Retry:
    """Header lines for a wait of `true_s` seconds, clamped to what SDKs obey.

    pointless: repeating the request cannot help, however long the caller waits.
    """
    shown_s = RETRY_UNKNOWN_S if true_s is None else min(max(ceil(true_s), RETRY_MIN_S), RETRY_MAX_S)
    lines = {"retry-after": str(shown_s), "retry-after-ms": str(shown_s * 1000)}
    if pointless or (true_s is not None and ceil(true_s) > RETRY_MAX_S):
        lines["x-should-retry"] = "false"
    return Retry(lines, true_s)


def retry_after_s(value: str | None, now_s: float) -> float | None:
    """Read a `Retry-After` of seconds or an HTTP date; None for nothing, text or a figure beyond belief (ten years)."""
    if value is None:
        return None
    text = value.strip()
    if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", text):
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    try:
        return max(0.0, at.timestamp() - now_s)
    except (OverflowError, OSError, ValueError):
        return None


def accepts(value: str | None) -> tuple[bool, bool]:
    """Whether an `Accept` header takes (JSON, event stream); absent or `*/*` takes both."""
    if value is None or not value.strip():
        return True, True
    json_ok = stream_ok = False
    for item in value.split(","):
        kind, *parameters = (part.strip().lower() for part in item.split(";"))
        if any(re.fullmatch(r"q=0(\.0*)?", parameter) for parameter in parameters):
            continue
        json_ok = json_ok or kind in ("application/json", "application/*", "*/*")
        stream_ok = stream_ok or kind in ("text/event-stream", "text/*", "*/*")
    return json_ok, stream_ok
