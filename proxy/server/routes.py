"""Every path we answer, as one table, and the one place that reads a path.

A row answers under `/v1`, under `/v1/gateway` and bare, with and without a trailing slash. Matching is done on the raw
target, because ids hold encoded slashes and colons and must go out as they came. The native rows also answer under the
native segment and its well-known names, each with `/v1` once or twice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final


class Dialect(Enum):
    """Whose words a caller of a route reads, in answers and in errors."""

    __hash__ = object.__hash__  # by identity, which takes no call

    OPENAI = "openai"
    NATIVE = "native"
    RESPONSES = "responses"
    GATEWAY = "gateway"
    MCP = "mcp"


class Draws(Enum):
    """What a call of a route counts as under the gateway's own limits."""

    REQUEST = "request"
    RESERVATION = "reservation"
    CHATBOT = "chatbot"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the table.

    path:     below the prefix; `{name}` stands for one raw segment, `{name+}` for one or more.
    upstream: path of the gateway below `/v1/gateway/`; `{segment}` is the configured native segment. None: answered here.
    draws:    what the call counts as; empty for what never reaches the gateway.
    keyed:    False where a caller needs no virtual key.
    native:   True when the row also answers under the native segment.
    says:     what the route is for, for the documentation.
    """

    name: str
    method: str
    path: str
    upstream: str | None
    dialect: Dialect
    draws: tuple[Draws, ...]
    says: str
    keyed: bool = True
    native: bool = False

    @property
    def spends(self) -> bool:
        """True when the gateway may charge credits for the call."""
        return Draws.RESERVATION in self.draws or Draws.TOOL in self.draws


_REQ, _RES, _BOT, _TOOL = Draws.REQUEST, Draws.RESERVATION, Draws.CHATBOT, Draws.TOOL

# fmt: off
ROUTES: Final = (
    Route("models",        "GET",  "models",                  "models/",                            Dialect.GATEWAY,   (_REQ,),       "list of models"),
    Route("model",         "GET",  "models/{model}",          "models/{model}/",                    Dialect.GATEWAY,   (_REQ,),       "one model"),
    Route("chat",          "POST", "chat/completions",        "chat/completions/",                  Dialect.OPENAI,    (_REQ, _RES),  "chat completion"),
    Route("chatbot",       "POST", "chatbots/{id}/chat/completions", "chatbots/{id}/chat/completions/", Dialect.OPENAI, (_REQ, _RES, _BOT), "chat with a chatbot of the tenant"),
    Route("native",        "POST", "messages",                "{segment}/v1/messages/",             Dialect.NATIVE,    (_REQ, _RES),  "vendor-native message", native=True),
    Route("native-count",  "POST", "messages/count_tokens",   "{segment}/v1/messages/count_tokens/", Dialect.NATIVE,   (_REQ,),       "token count of a vendor-native message", native=True),
    Route("native-models", "GET",  "models",                  "{segment}/v1/models/",               Dialect.NATIVE,    (_REQ,),       "list of vendor-native models", native=True),
    Route("native-model",  "GET",  "models/{model}",          "{segment}/v1/models/",               Dialect.NATIVE,    (_REQ,),       "one vendor-native model, looked up in the list", native=True),
    Route("responses",     "POST", "responses",               "responses/",                         Dialect.RESPONSES, (_REQ, _RES),  "response"),
    Route("response",      "GET",  "responses/{id}",          "responses/{id}/",                    Dialect.RESPONSES, (_REQ,),       "poll of a background response"),
    Route("cancel",        "POST", "responses/{id}/cancel",   "responses/{id}/cancel/",             Dialect.RESPONSES, (_REQ,),       "cancel of a background response"),
    Route("speech",        "POST", "audio/speech",            "audio/speech/",                      Dialect.GATEWAY,   (_REQ, _RES),  "speech from text"),
    Route("music",         "POST", "audio/music",             "audio/music/",                       Dialect.GATEWAY,   (_REQ, _RES),  "music or a sound effect"),
    Route("images",        "POST", "images/generate",         "images/generate/",                   Dialect.GATEWAY,   (_REQ, _RES),  "images, generated or edited"),
    Route("images",        "POST", "images/generations",      "images/generate/",                   Dialect.GATEWAY,   (_REQ, _RES),  "the same under the name SDKs use"),
    Route("image",         "GET",  "images/generate/{id+}",   "images/generate/{id}/",              Dialect.GATEWAY,   (_REQ,),       "poll of an image"),
    Route("videos",        "POST", "video/generation",        "video/generation/",                  Dialect.GATEWAY,   (_REQ, _RES),  "a video"),
    Route("download",      "GET",  "video/generation/{id+}/download", "video/generation/{id}/download/", Dialect.GATEWAY, (_REQ,),     "download of a video"),
    Route("video",         "GET",  "video/generation/{id+}",  "video/generation/{id}/",             Dialect.GATEWAY,   (_REQ,),       "poll of a video"),
    Route("credits",       "GET",  "credits",                 "credits/",                           Dialect.GATEWAY,   (_REQ,),       "the gateway's credit balance"),
    Route("suites",        "GET",  "mcp",                     "mcp/",                               Dialect.GATEWAY,   (_REQ,),       "list of tool suites"),
    Route("merged",        "POST", "mcp",                     None,                                 Dialect.MCP,       (),            "one MCP server with the tools of all suites"),
    Route("mcp",           "POST", "mcp/{suite}",             "mcp/{suite}/",                       Dialect.MCP,       (_REQ, _TOOL), "MCP call of one suite"),
    Route("health",        "GET",  "-/health",                None,                                 Dialect.GATEWAY,   (),            "whether this proxy is up", keyed=False),
    Route("budget",        "GET",  "-/budget",                None,                                 Dialect.GATEWAY,   (),            "the team's own limits and what is left"),
    Route("root",          "GET",  "",                        None,                                 Dialect.GATEWAY,   (),            "a sign of life", keyed=False),
)
# fmt: on

ROUTE: Final[Mapping[str, Route]] = {row.name: row for row in ROUTES}

NATIVE_SEGMENTS: Final = ("partner", "anthropic")
"""Names under which clients reach the native routes, besides the configured segment."""

VERSION_HEADERS: Final = ("anthropic-version", "partner-version")
"""Either one present makes `models` the native list."""

OAUTH_PROBES: Final = re.compile(r"/\.well-known(/.*)?|/register/?|.*/\.well-known/.*")
"""Paths that MCP clients probe for OAuth: JSON 404 without a key, so that no login begins."""

_NOT_IDS: Final = frozenset({"input_tokens", "compact"})
"""Words in the place of a response id that are routes of other services, never ids: 404 rather than 405."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where a target leads: the row, raw path values by name, and the raw query without `?` ("" when there is none)."""

    route: Route
    values: Mapping[str, str]
    query: str


class Unmatched(Enum):
    """Why a target leads nowhere."""

    PATH = "path"
    METHOD = "method"


def _segments(path: str) -> list[str]:
    parts = path.split("/")[1:]
    if parts and parts[-1] == "" and len(parts) > 1:
        parts.pop()
    return [] if parts == [""] else parts


def _below_prefix(parts: Sequence[str], segment: str) -> tuple[list[str], bool]:
    """Take the prefix off: what is left, and whether it stood under the native segment."""
    rest = list(parts)
    if rest[:2] == ["v1", "gateway"]:
        rest = rest[2:]
    elif rest[:1] == ["v1"]:
        rest = rest[1:]
    native = rest[:1] in ([name] for name in (segment, *NATIVE_SEGMENTS))
    if native:
        rest = rest[1:]
        for _ in range(2):
            rest = rest[1:] if rest[:1] == ["v1"] else rest
    # A base URL that already ends in /v1, given to an SDK that adds its own.
    elif rest[:2] == ["v1", "messages"] or (rest[:2] == ["v1", "models"]):
        rest = rest[1:]
    return rest, native


def _fits(route: Route, rest: Sequence[str]) -> dict[str, str] | None:
    wanted = route.path.split("/") if route.path else []
    spare = len(rest) - len(wanted)
    values, at = {}, 0
    for want in wanted:
        # The one `{name+}` of a path takes what the others leave.
        width = 1 + spare if want.endswith("+}") else 1
        have = "/".join(rest[at : at + width])
        at += width
        if want.startswith("{"):
            if width < 1 or not have or (route.name in ("response", "cancel") and have in _NOT_IDS):
                return None
            values[want.strip("{+}")] = have
        elif want != have:
            return None
    return values if at == len(rest) else None


def _candidates(rest: Sequence[str], *, native: bool) -> Iterator[tuple[Route, dict[str, str]]]:
    for route in ROUTES:
        if native and not route.native:
            continue
        values = _fits(route, rest)
        if values is not None:
            yield route, values


def match(method: str, target: str, *, segment: str, native_header: bool) -> Match | Unmatched:
    """Find the row for a raw target in origin form.

    segment:       the configured native segment.
    native_header: a native version header came along, which turns `models` into the native list.
    """
    path, _, query = target.partition("?")
    found = _match_path(method, path, segment, native_header)
    return replace(found, query=query) if query and isinstance(found, Match) else found


@lru_cache(maxsize=1024)
def _match_path(method: str, path: str, segment: str, native_header: bool) -> Match | Unmatched:
    rest, native = _below_prefix(_segments(path), segment)
    found = list(_candidates(rest, native=native))
    wanted = "GET" if method == "HEAD" and not rest else method
    fitting = [(route, values) for route, values in found if route.method == wanted]
    if not fitting:
        return Unmatched.METHOD if found else Unmatched.PATH
    # Two rows share `models`: the native one is meant under the segment or with a version header.
    prefer_native = native or native_header
    for route, values in fitting:
        if route.native == prefer_native:
            return Match(route, values, "")
    route, values = fitting[0]
    return Match(route, values, "")


def allowed_methods(target: str, *, segment: str) -> tuple[str, ...]:
    """The methods a known path answers, for the `Allow` header; empty for an unknown path."""
    rest, native = _below_prefix(_segments(target.partition("?")[0]), segment)
    methods = {route.method for route, _ in _candidates(rest, native=native)}
    if not rest:
        methods.add("HEAD")
    return tuple(sorted(methods))


def upstream_target(found: Match, *, segment: str) -> str:
    """The gateway's own form of a matched target: raw values as they came, the query kept."""
    assert found.route.upstream is not None
    path = found.route.upstream.format(segment=segment, **found.values)
    return f"/v1/gateway/{path}" + (f"?{found.query}" if found.query else "")


def route_list() -> str:
    """The table's paths for the sentence of a 404."""
    shown = dict.fromkeys(f"{row.method} /v1/{row.path.replace('+', '')}" for row in ROUTES if row.upstream)
    return ", ".join(shown)
