"""How MCP clients are told of a server: one table, and what each wants to read."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Server:
    """What a client has to know. command: the words that start the bridge, for clients without HTTP."""

    name: str
    url: str
    key: str
    command: Sequence[str]

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True, slots=True)
class McpClient:
    """name: on the command line.      file: where its entry goes.      write: the entry."""

    name: str
    file: str
    write: Callable[[Server], str]


def _json(key: str, entry: Callable[[Server], Mapping[str, Any]]) -> Callable[[Server], str]:
    """An entry under this key of a JSON file."""
    return lambda server: json.dumps({key: {server.name: entry(server)}}, indent=2, ensure_ascii=False)


def _http(key: str, word: str, **more: Any) -> Callable[[Server], str]:
    """The same for a client with HTTP. word: what it calls the address."""
    return _json(key, lambda server: {**more, word: server.url, "headers": server.authorization})


def _started(server: Server) -> dict[str, Any]:
    return {"command": server.command[0], "args": [*server.command[1:]], "env": {"SLUICEGATE_KEY": server.key}}


def _codex(server: Server) -> str:
    # TOML's basic strings take every escape that JSON writes for ASCII.
    url, bearer = json.dumps(server.url), json.dumps(server.authorization["Authorization"])
    return f'[mcp_servers.{json.dumps(server.name)}]\nurl = {url}\nhttp_headers = {{ "Authorization" = {bearer} }}'


_STARTED: Final = _json("mcpServers", entry=_started)

# fmt: off
CLIENTS: Final[tuple[McpClient, ...]] = (
    McpClient("claude-code",    ".mcp.json in the project",            _http("mcpServers", "url", type="http")),
    McpClient("claude-desktop", "claude_desktop_config.json",          _STARTED),
    McpClient("codex",          "~/.codex/config.toml",                _codex),
    McpClient("cursor",         "~/.cursor/mcp.json",                  _http("mcpServers", "url")),
    McpClient("gemini-cli",     "~/.gemini/settings.json",             _http("mcpServers", "httpUrl")),
    McpClient("opencode",       "opencode.json in the project",        _http("mcp", "url", type="remote", enabled=True)),
    McpClient("stdio",          "any client that starts its servers",  _STARTED),
    McpClient("vscode",         ".vscode/mcp.json in the project",     _http("servers", "url", type="http")),
    McpClient("windsurf",       "~/.codeium/windsurf/mcp_config.json", _http("mcpServers", "serverUrl")),
)
# fmt: on
