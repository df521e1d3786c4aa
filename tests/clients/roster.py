"""Which clients there are, where `make clients` put them, and at which version."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
JS: Final = HERE / "js"
PACKAGES: Final = JS / "node_modules"
NODE: Final = PACKAGES / ".bin" / "node"
"""A newer Node.js than the machine may have, for what needs it."""
AIDER_HOME: Final = HERE.parents[1] / ".venv-aider"
FASTMCP_HOME: Final = HERE.parents[1] / ".venv-fastmcp"


@dataclass(frozen=True, slots=True)
class Client:
    """One client. version: how to ask it what it is; by this it is also known whether it runs here at all."""

    name: str
    version: tuple[str, ...]


def package(name: str, module: str = "") -> tuple[str, ...]:
    """Loads a package, as only then it is known whether it runs on this Node.js, and says its version.

    module: what of it is loaded, where it has no main one.
    """
    said = f"import({name + module!r}).then(() => console.log({_described(name)!r}))"
    return ("node", "--input-type=module", "-e", said)


def _described(name: str) -> str:
    """The version of a package, and the Node.js it is made for: it may run on an older one, but that is to be seen."""
    try:
        told = json.loads((PACKAGES / name / "package.json").read_text("utf-8"))
    except FileNotFoundError:
        return f"{name} is not installed"
    engine = told.get("engines", {}).get("node")
    return f"{name} {told['version']}" + (f", made for Node.js {engine}" if engine else "")


def bridge(name: str) -> tuple[str, ...]:
    """Looks for a program that knows no `--version` and would begin to listen."""
    found = str(PACKAGES / ".bin" / name)
    return ("node", "-e", f"require('fs').accessSync({found!r}); console.log({_described(name)!r})")


def program(name: str) -> tuple[str, ...]:
    return (str(PACKAGES / ".bin" / name), "--version")


# fmt: off
ROSTER: Final[Mapping[str, Client]] = {client.name: client for client in (
    Client("node",          ("node", "--version")),
    Client("openai-js",     package("openai")),
    Client("anthropic-js",  package("@anthropic-ai/sdk")),
    Client("ai-sdk",        package("ai")),
    Client("mcp-js",        package("@modelcontextprotocol/sdk", "/client/index.js")),
    Client("mcp-remote",    bridge("mcp-remote")),
    Client("supergateway",  bridge("supergateway")),
    Client("mcp-conformance", (str(NODE), str(PACKAGES / "@modelcontextprotocol/conformance/dist/index.js"), "--version")),
    Client("mcp-conformance-next", (str(NODE), str(PACKAGES / "conformance-next/dist/index.js"), "--version")),
    Client("inspector",     (str(NODE), str(PACKAGES / ".bin" / "inspector"), "--version")),
    Client("fastmcp",       (str(FASTMCP_HOME / "bin" / "python"), "-c", "import fastmcp; print('fastmcp', fastmcp.__version__)")),
    Client("codex",         program("codex")),
    Client("claude",        program("claude")),
    Client("opencode",      program("opencode")),
    Client("aider",         (str(AIDER_HOME / "bin" / "aider"), "--version")),
)}
# fmt: on


@dataclass(frozen=True, slots=True)
class Found:
    """What a client says of itself, or why it does not run here."""

    version: str | None
    why_not: str = ""


@cache
def found(name: str, home: str) -> Found:
    """Ask a client for its version. home: a folder in which it may leave what it likes."""
    try:
        asked = subprocess.run(
            ROSTER[name].version, cwd=JS, env={"PATH": os.environ["PATH"], "HOME": home}, timeout=60,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Found(None, str(error))
    lines = asked.stdout.strip().splitlines()
    if asked.returncode or not lines:
        return Found(None, (asked.stderr or asked.stdout).strip()[-300:] or f"exit code {asked.returncode}")
    return Found(lines[-1])
