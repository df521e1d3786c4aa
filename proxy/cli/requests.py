"""Requests to imagine: a smallest body for each route, filled in from flags."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import click

SAID: Final = "Hello."
"""Stands for the text of a request that was not given."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What flags say of a request; None where they say nothing. target: suite, chatbot or id in the path."""

    model: str | None = None
    max_tokens: int | None = None
    target: str | None = None
    tool: str | None = None


def _messages(_: Wanted) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": SAID}]}


def _prompt(_: Wanted) -> dict[str, Any]:
    return {"prompt": SAID}


def _tool(wanted: Wanted) -> dict[str, Any]:
    if wanted.tool is None:
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": wanted.tool, "arguments": {}}}


@dataclass(frozen=True, slots=True)
class Sample:
    """One route. body: None where it has none. bound: its word for the most output, "" where there is none."""

    route: str
    method: str
    path: str
    body: Callable[[Wanted], dict[str, Any]] | None
    bound: str = ""


# fmt: off
SAMPLES: Final[Mapping[str, Sample]] = {row.route: row for row in (
    Sample("chat",         "POST", "/v1/chat/completions",              _messages,                 "max_tokens"),
    Sample("native",       "POST", "/v1/messages",                      _messages,                 "max_tokens"),
    Sample("native-count", "POST", "/v1/messages/count_tokens",         _messages),
    Sample("responses",    "POST", "/v1/responses",                     lambda _: {"input": SAID}, "max_output_tokens"),
    Sample("chatbot",      "POST", "/v1/chatbots/{}/chat/completions",  _messages),
    Sample("speech",       "POST", "/v1/audio/speech",                  lambda _: {"input": SAID}),
    Sample("music",        "POST", "/v1/audio/music",                   _prompt),
    Sample("images",       "POST", "/v1/images/generate",               _prompt),
    Sample("videos",       "POST", "/v1/video/generation",              _prompt),
    Sample("mcp",          "POST", "/v1/mcp/{}",                        _tool),
    Sample("models",       "GET",  "/v1/models",                        None),
    Sample("suites",       "GET",  "/v1/mcp",                           None),
    Sample("credits",      "GET",  "/v1/credits",                       None),
    Sample("budget",       "GET",  "/-/budget",                         None),
)}
# fmt: on

_HEADERS: Final = {"mcp": {"Accept": "application/json, text/event-stream"}}
_TARGETS: Final = {"chatbot": "--chatbot", "mcp": "--suite"}


def request_for(route: str, wanted: Wanted, body: str | None) -> dict[str, Any]:
    """The request of a route as `POST /api/explain` takes it. body: its text, instead of the smallest one."""
    row = SAMPLES[route]
    if route in _TARGETS and wanted.target is None:
        raise click.UsageError(f"the route {route} needs {_TARGETS[route]}")
    path = row.path.format(quote(wanted.target or "", safe=""))
    made = row.body(wanted) if row.body is not None else None
    filled = body if body is not None else None if made is None else json.dumps(_filled(row, made, wanted))
    return {"method": row.method, "path": path, "headers": _HEADERS.get(route, {}), "body": filled}


def _filled(row: Sample, body: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    if row.route not in ("mcp", "chatbot"):
        if wanted.model is None:
            raise click.UsageError(f"the route {row.route} needs --model or --body")
        body = {"model": wanted.model, **body}
    if wanted.max_tokens is not None:
        if not row.bound:
            raise click.UsageError(f"the route {row.route} knows no --max-tokens")
        body[row.bound] = wanted.max_tokens
    return body
