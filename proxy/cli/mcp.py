"""`sluicegate mcp`: what tools there are, how clients are told of them, and a bridge for clients without HTTP."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import click

from proxy.cli.clients import caller_key, proxy_url
from proxy.cli.columns import columns
from proxy.cli.mcpclients import CLIENTS, Server

F = TypeVar("F", bound=Callable[..., Any])

ALL: Final = "all"
"""Stands for the one server with the tools of every suite."""

TIMEOUT_S: Final = 60.0


def with_address(command: F) -> F:
    command = click.option("--port", type=click.IntRange(1, 65535), help="The proxy is on this port of this machine.")(
        command
    )
    return click.option(
        "--url",
        metavar="URL",
        help="The proxy is there [env: SLUICEGATE_URL; else by SLUICEGATE_LISTEN, or http://127.0.0.1:8787].",
    )(command)


@click.group("mcp")
def mcp() -> None:
    """Tool suites of the gateway, for MCP clients.

    The virtual key is the one in SLUICEGATE_KEY, else a stand-in that the proxy takes with --auth open.
    """


# --- list ---


@mcp.command("list")
@with_address
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(url: str | None, port: int | None, as_json: bool) -> int:
    """Show the suites and tools that this key may use.

    Exit code 1 where a suite has no list.
    """
    found = [_suite(proxy_url(url, port, os.environ), entry) for entry in _suites(proxy_url(url, port, os.environ))]
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        tools = ((one["suite"], tool) for one in found for tool in one["tools"])
        rows = [(suite, str(tool["name"]), _first_line(tool.get("description"))) for suite, tool in tools]
        print(columns(("suite", "tool", "what it does"), rows))
    down = [one for one in found if one["error"]]
    for one in down:
        print(f"{one['suite']}: {one['error']}", file=sys.stderr)
    return 1 if down else 0


def _first_line(text: Any) -> str:
    return text.strip().split("\n")[0][:80] if isinstance(text, str) else ""


def _suites(url: str) -> list[str]:
    status, said = _ask(url, "GET", "/v1/mcp", None)
    entries = said.get("data") if isinstance(said, dict) else said
    if status != 200 or not isinstance(entries, list):
        raise click.ClickException(_sentence(said) or f"the proxy answers {status}")
    return [str(entry["name"]) for entry in entries if isinstance(entry, dict) and entry.get("name")]


def _suite(url: str, suite: str) -> dict[str, Any]:
    """A suite with its tools, or with the sentence that says why there are none."""
    tools: list[Any] = []
    params: dict[str, str] = {}
    while True:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
        status, said = _ask(url, "POST", f"/v1/mcp/{quote(suite, safe='')}", body)
        result = said.get("result") if isinstance(said, dict) else None
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return {"suite": suite, "tools": [], "error": _sentence(said) or f"the proxy answers {status}"}
        tools += [tool for tool in result["tools"] if isinstance(tool, dict) and "name" in tool]
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str) or params.get("cursor") == cursor:
            return {"suite": suite, "tools": tools, "error": ""}
        params = {"cursor": cursor}


def _sentence(said: Any) -> str:
    error = said.get("error") if isinstance(said, dict) else None
    return str(error.get("message") or "") if isinstance(error, dict) else ""


def _ask(url: str, method: str, path: str, body: Any) -> tuple[int, Any]:
    """Status and JSON of the proxy's answer; ends the command where there is none."""
    where = urlsplit(url)
    kind = HTTPSConnection if where.scheme == "https" else HTTPConnection
    connection = kind(where.netloc, timeout=TIMEOUT_S)
    headers = {"Authorization": f"Bearer {caller_key(os.environ)}", "Accept": "application/json"}
    try:
        connection.request(
            method,
            where.path + path,
            None if body is None else json.dumps(body),
            headers if body is None else headers | {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, HTTPException, ValueError) as error:
        raise click.ClickException(f"no answer from a proxy at {url}: {error}") from None
    finally:
        connection.close()


# --- config ---


@mcp.command("config")
@click.option("--client", required=True, type=click.Choice([row.name for row in CLIENTS]), help="Whose syntax.")
@with_address
@click.argument("suite", default=ALL)
def config(client: str, url: str | None, port: int | None, suite: str) -> int:
    """Print the entry that tells a client of one SUITE, or of all as one server, ready to paste.

    The virtual key stands in it.
    """
    row = next(row for row in CLIENTS if row.name == client)
    at = proxy_url(url, port, os.environ)
    name = "sluicegate" if suite == ALL else suite
    program = shutil.which("sluicegate")
    # Programs with a window do not know the PATH of a shell, so the whole path stands here.
    begins = [os.path.abspath(program)] if program else [sys.executable, "-m", "proxy"]  # noqa: PTH100  (links stay)
    command = [*begins, "mcp", "stdio", suite, "--url", at]
    print(f"# {row.file}", file=sys.stderr)
    print(row.write(Server(name, _address(at, suite), caller_key(os.environ), command)))
    return 0


def _address(url: str, suite: str) -> str:
    return f"{url}/v1/mcp" if suite == ALL else f"{url}/v1/mcp/{quote(suite, safe='')}"


# --- stdio ---


@mcp.command("stdio")
@with_address
@click.argument("suite", default=ALL)
def stdio(url: str | None, port: int | None, suite: str) -> int:
    """Serve one SUITE, or all as one server, on standard input and output, through the running proxy."""
    import asyncio

    from proxy.mcp.stdio import bridge, lines_of

    at = _address(proxy_url(url, port, os.environ), suite)
    headers = {
        "Authorization": f"Bearer {caller_key(os.environ)}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "User-Agent": "sluicegate-stdio",
    }
    # Whatever else prints must not come between two messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(message: bytes) -> None:
        rest = memoryview(message + b"\n")
        while rest:
            rest = rest[out.write(rest) :]

    asyncio.run(bridge(at, headers, lines_of(sys.stdin.buffer), say))
    return 0
