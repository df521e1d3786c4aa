"""The gate every request head passes before routing: what the HTTP library lets through and we do not.

A head that two parsers can read in two ways is refused, never mended: the caller, this proxy, the gateway and whatever
stands between must see one request. Messages say what, where and what to do, and never repeat a header's value.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from proxy.errors import ProxyError

HEADER_BYTES_MAX: Final = 64 * 1024
"""All names and values together. Coding agents send below 4 KiB; betas and trace state have room."""
HEADERS_MAX: Final = 128
"""Lines; what the HTTP parser takes at most too."""
TARGET_MAX: Final = 8190

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Head:
    """What the gate learned on the way.

    host:         value of Host, None on HTTP/1.0 without one.
    key:          the caller's key from Authorization: Bearer or x-api-key, None when neither carries one.
    other_scheme: Authorization is there and says something else than Bearer.
    websocket:    an upgrade to WebSocket is asked for; a route may have an answer to that.
    """

    host: str | None
    key: str | None
    other_scheme: bool
    websocket: bool


_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_NAMES: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++\n)*+[!#$%&'*+\-.^_`|~0-9A-Za-z]++")
_BAD_VALUE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_DIGITS: Final = re.compile(rb"[0-9]{1,18}")
_HOST: Final = re.compile(rb"(?:[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_BAD_TARGET: Final = re.compile(r"[^!-~]|[#\\\"<>^`{|}]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|%[01][0-9A-Fa-f]|%7[Ff]")
_DOT: Final = re.compile(r"%2e", re.IGNORECASE)
_SEGMENT: Final = re.compile(r"/|%2f|%5c", re.IGNORECASE)

# fmt: off
_ONCE: Final[Mapping[bytes, str]] = {
    b"host":              "Host",
    b"authorization":     "Authorization",
    b"x-api-key":         "x-api-key",
    b"content-length":    "Content-Length",
    b"transfer-encoding": "Transfer-Encoding",
    b"content-type":      "Content-Type",
    b"content-encoding":  "Content-Encoding",
    b"expect":            "Expect",
    b"upgrade":           "Upgrade",
    b"origin":            "Origin",
    b"idempotency-key":   "Idempotency-Key",
}
# fmt: on


def gate(
    method: str, target: str, version: tuple[int, int], headers: Headers, *, bytes_max: int = HEADER_BYTES_MAX
) -> Head:
    """Raises ProxyError `bad_request`, `headers_too_large` or `ambiguous_key`; returns what later steps ask.

    target:    the request line's, undecoded.
    bytes_max: of all header names and values together.
    """
    if version not in ((1, 0), (1, 1)):
        raise _refusal("HTTP/1.0 and HTTP/1.1 are spoken here; use HTTP/1.1")
    if method not in METHODS:
        raise _refusal(f"the method is none of {', '.join(sorted(METHODS))}")
    _check_target(method, target)
    once = _lines(headers, bytes_max)
    _check_framing(version, once)
    host = _host(version, once)
    websocket = _check_upgrade(once)
    if once.get(b"content-encoding", b"identity").strip().lower() not in (b"", b"identity"):
        raise _refusal("Content-Encoding: compressed request bodies are not taken; send the body as it is")
    key, other_scheme = _key(once)
    return Head(host, key, other_scheme, websocket)


def _refusal(what: str) -> ProxyError:
    return ProxyError("bad_request", f"{what[0].upper()}{what[1:]}.")


def _check_target(method: str, target: str) -> None:
    if target == "*" and method == "OPTIONS":
        return
    if not target.startswith("/") or target.startswith("//"):
        raise _refusal("the request target must be a path that begins with one slash")
    if len(target) > TARGET_MAX:
        raise ProxyError("headers_too_large", f"The request target is longer than {TARGET_MAX} bytes.")
    if found := _BAD_TARGET.search(target):
        raise _refusal(f"the request target has a forbidden character at position {found.start()}; percent-encode it")
    if found := _BAD_ESCAPE.search(target):
        raise _refusal(f"the request target has a bad percent-escape at position {found.start()}")
    path = target.partition("?")[0]
    if ("." in path or "%" in path) and any(_DOT.sub(".", segment) in (".", "..") for segment in _SEGMENT.split(path)):
        raise _refusal("the request target has a dot segment; send the path it stands for")


def _lines(headers: Headers, bytes_max: int) -> dict[bytes, bytes]:
    """The values of names that may come once, by lower-case name; every line is checked on the way."""
    if len(headers) > HEADERS_MAX:
        raise ProxyError("headers_too_large", f"The request has more than {HEADERS_MAX} header lines.")
    names, values = b"\n".join([name for name, _ in headers]), b" ".join([value for _, value in headers])
    # All at once first; only what is wrong is looked for line by line.
    if headers and (not _NAMES.fullmatch(names) or _BAD_VALUE.search(values)):
        _check_lines(headers)
    once: dict[bytes, bytes] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in _ONCE:
            if lower in once:
                raise _refusal(f"{_ONCE[lower]} was sent twice; send it once")
            once[lower] = value
    if len(names) + len(values) > bytes_max + 2 * max(0, len(headers) - 1):
        raise ProxyError("headers_too_large", f"The header is larger than {bytes_max} bytes.")
    return once


def _check_lines(headers: Headers) -> None:
    for name, value in headers:
        if not _NAME.fullmatch(name):
            raise _refusal("a header name has a character that is not allowed in one")
        if _BAD_VALUE.search(value):
            raise _refusal(f"header {name[:64].decode()} has a control character in its value")


def _check_framing(version: tuple[int, int], once: Mapping[bytes, bytes]) -> None:
    length, encoding = once.get(b"content-length"), once.get(b"transfer-encoding")
    if length is not None and not _DIGITS.fullmatch(length):
        raise _refusal("Content-Length must be digits only")
    if encoding is None:
        return
    if version == (1, 0):
        raise _refusal("Transfer-Encoding does not exist in HTTP/1.0; use HTTP/1.1")
    if length is not None:
        raise _refusal("Content-Length and Transfer-Encoding exclude each other; send one")
    if encoding.lower() != b"chunked":
        raise _refusal("Transfer-Encoding must be chunked and nothing else")


def _host(version: tuple[int, int], once: Mapping[bytes, bytes]) -> str | None:
    host = once.get(b"host")
    if host is None:
        if version == (1, 1):
            raise _refusal("Host is missing; HTTP/1.1 needs one")
        return None
    if not _HOST.fullmatch(host):
        raise _refusal("Host must be a name or an address with an optional port")
    return host.decode()


def _check_upgrade(once: Mapping[bytes, bytes]) -> bool:
    if once.get(b"expect", b"100-continue").lower() != b"100-continue":
        raise _refusal("Expect: only 100-continue is known")
    upgrade = once.get(b"upgrade")
    if upgrade is None:
        return False
    if upgrade.strip().lower() != b"websocket":
        raise _refusal("Upgrade is not offered; use HTTP/1.1 as it is")
    return True


def _key(once: Mapping[bytes, bytes]) -> tuple[str | None, bool]:
    """The key, and whether Authorization is of another kind. One key in both headers is fine, two are two callers."""
    authorization = once.get(b"authorization", b"").strip()
    scheme, _, credential = authorization.partition(b" ")
    is_bearer = scheme.lower() == b"bearer"
    bearer = credential.strip() if is_bearer else b""
    api_key = once.get(b"x-api-key", b"").strip()
    says_nothing = is_bearer and not bearer  # an SDK whose token is empty
    if authorization and not says_nothing and api_key and bearer != api_key:
        raise ProxyError("ambiguous_key", "Authorization and x-api-key carry different keys; send one of them.")
    # Latin-1 keeps every byte apart; no key of ours has one above 0x7e, so such a key is simply unknown.
    return (bearer or api_key).decode("latin-1") or None, bool(authorization) and not is_bearer


# --- who may call from where ---


def host_name(host: str) -> str:
    """A Host value without its port, in lower case, without the dot at the end and an address's brackets."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name.lower().strip("[]").removesuffix(".")


def host_allowed(host: str | None, allowed: frozenset[str], *, any_ip: bool = False) -> bool:
    """Whether a Host header names us: a page that had its own name point here (DNS rebinding) names itself.

    host:    the header's value; None when an HTTP/1.0 caller sent none, which no browser does.
    allowed: names in lower case without port; `name:port` allows that port alone; `*` allows all.
    any_ip:  an IP address is fine: rebinding needs a name.
    """
    if host is None or "*" in allowed or host.lower() in allowed:
        return True
    name = host_name(host)
    return name in allowed or (any_ip and _is_ip(name))


def origin_allowed(origin: str | None, allowed_hosts: frozenset[str], cors_origins: frozenset[str]) -> bool:
    """Whether the page that a browser says it calls for may call. No Origin, no browser page: fine.

    An origin on one of our own hosts is fine with any port: a tool's page on this machine is as local as we are.
    """
    if origin is None:
        return True
    if origin.lower() == "null":
        return False  # a sandboxed frame or a local file: it could be anybody's
    if origin.lower() in cors_origins or "*" in cors_origins:
        return True
    try:
        parts = urlsplit(origin)
        name = parts.hostname
    except ValueError:
        return False
    plain = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc
    exact = plain and not (parts.path or parts.query or parts.fragment)
    return bool(exact and name and name.removesuffix(".") in allowed_hosts)


def _is_ip(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
