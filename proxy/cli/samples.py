"""What the demo sends and what it tells people to paste: calls of every route, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

OPENAI_MODEL: Final = "gpt-4o-mini"
NATIVE_MODEL: Final = "claude-haiku-x"
SUITE: Final = "calc"


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the proxy. body None: a GET."""

    name: str
    path: str
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


_NATIVE: Final = {"anthropic-version": "2023-06-01"}
_MCP: Final = {"Accept": "application/json, text/event-stream"}

# fmt: off
CALLS: Final[tuple[Call, ...]] = (
    Call("chat",              "/v1/chat/completions", {"model": OPENAI_MODEL, "messages": _said("Say hi.")}),
    Call("chat, streamed",    "/v1/chat/completions", {"model": OPENAI_MODEL, "messages": _said("Count to ten."), "stream": True,
                                                       "stream_options": {"include_usage": True}}),
    Call("message",           "/v1/messages",         {"model": NATIVE_MODEL, "max_tokens": 200, "messages": _said("Say hi.")}, _NATIVE),
    Call("message, streamed", "/v1/messages",         {"model": NATIVE_MODEL, "max_tokens": 200, "messages": _said("Count to ten."),
                                                       "stream": True}, _NATIVE),
    Call("token count",       "/v1/messages/count_tokens", {"model": NATIVE_MODEL, "messages": _said("How long is this?")}, _NATIVE),
    Call("response",          "/v1/responses",        {"model": OPENAI_MODEL, "input": _said("Say hi."), "store": False}),
    Call("response, streamed", "/v1/responses",       {"model": OPENAI_MODEL, "input": _said("Count to ten."), "stream": True, "store": False}),
    Call("models",            "/v1/models"),
    Call("tool list",         f"/v1/mcp/{SUITE}",     {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, _MCP),
    Call("tool call",         f"/v1/mcp/{SUITE}",     {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                                                       "params": {"name": "add", "arguments": {"a": 2, "b": 40}}}, _MCP),
    Call("budget",            "/-/budget"),
)
# fmt: on

# fmt: off
CROWD: Final[tuple[tuple[str, Call], ...]] = (
    ("search",  Call("question", "/v1/chat/completions", {"model": OPENAI_MODEL, "max_tokens": 120, "temperature": 0, "messages": _said("What is a sluice?")})),
    ("support", Call("ticket",   "/v1/messages",         {"model": NATIVE_MODEL, "max_tokens": 120, "messages": _said("Ticket @: it does not start."), "stream": True}, _NATIVE)),
    ("batch",   Call("summary",  "/v1/chat/completions", {"model": "gpt-4o", "max_tokens": 100, "messages": _said("Sum up document @.")})),
    ("search",  Call("question", "/v1/chat/completions", {"model": OPENAI_MODEL, "max_tokens": 120, "temperature": 0, "messages": _said("What is a weir?")})),
    ("nightly", Call("report",   "/v1/chat/completions", {"model": OPENAI_MODEL, "max_tokens": 150, "messages": _said("Report of night @.")})),
    ("batch",   Call("summary",  "/v1/messages",         {"model": "claude-opus-x", "max_tokens": 100, "messages": _said("Sum up document @.")}, _NATIVE)),
    ("search",  Call("answer",   "/v1/chat/completions", {"model": OPENAI_MODEL, "max_tokens": 80, "messages": _said("Question @?"), "stream": True})),
)
# fmt: on
"""What other teams of `demo --traffic` ask, by key; `@` becomes a number, so that most questions are new ones."""

PROOF: Final = CALLS[0]
"""The call that shows that the demo works."""

PASTE: Final = """\
Paste one of these into another terminal:

  curl {url}/v1/chat/completions -H 'content-type: application/json' -H 'authorization: Bearer {key}' \\
    -d '{{"model":"{openai_model}","messages":[{{"role":"user","content":"Say hi."}}],"stream":true}}'

  eval "$({program} env{where})"    # then openai, anthropic and coding agents of that shell come here
  {program} run{where} -- CMD       # the same for one command

  OpenAI(base_url="{url}/v1", api_key="{key}")       model {openai_model}
  Anthropic(base_url="{url}", auth_token="{key}")    model {native_model}
  MCP, streamable HTTP: {url}/v1/mcp/{suite}
"""


def paste(url: str, program: str, where: str, key: str) -> str:
    """What to paste for a proxy at `url`. where: the options that tell `env` and `run` where it is."""
    return PASTE.format(
        url=url,
        program=program,
        where=where,
        key=key,
        openai_model=OPENAI_MODEL,
        native_model=NATIVE_MODEL,
        suite=SUITE,
    )
