"""`sluicegate env`: the variables that point clients at the proxy, for a shell to read."""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import click

from proxy.cli.clients import FAMILIES, REPLACED, caller_key, proxy_url, variables


@dataclass(frozen=True, slots=True)
class Shell:
    """How a shell sets a variable and takes one away."""

    set: Callable[[str, str], str]
    unset: Callable[[str], str]


# Keys are visible ASCII, so these are all the characters that could end a quoted text.
SHELLS: Final[Mapping[str, Shell]] = {
    "sh": Shell(
        lambda name, value: f"export {name}={shlex.quote(value)}",
        lambda name: f"unset {name}",
    ),
    "fish": Shell(
        lambda name, value: f"set -gx {name} '" + value.replace("\\", "\\\\").replace("'", "\\'") + "'",
        lambda name: f"set -e {name}",
    ),
    "pwsh": Shell(
        lambda name, value: f"$env:{name} = '" + value.replace("'", "''") + "'",
        lambda name: f"$env:{name} = $null",
    ),
}


@click.command("env")
@click.option("--for", "family", type=click.Choice(FAMILIES), help="Only the variables of these clients.")
@click.option("--shell", type=click.Choice(list(SHELLS)), default="sh", show_default=True, help="Whose syntax.")
@click.option("--port", type=click.IntRange(1, 65535), help="The proxy is on this port of this machine.")
@click.option(
    "--url",
    metavar="URL",
    help="The proxy is there [env: SLUICEGATE_URL; else by SLUICEGATE_LISTEN, or http://127.0.0.1:8787].",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def env(family: str | None, shell: str, port: int | None, url: str | None, as_json: bool) -> int:
    """Print variables for the SDKs, coding agents and MCP clients of this machine.

    In a shell: eval "$(sluicegate env)". The virtual key is the one in SLUICEGATE_KEY, else a stand-in that the proxy
    takes with --auth open.
    """
    found = variables(proxy_url(url, port, os.environ), caller_key(os.environ), family)
    if as_json:
        print(json.dumps(found))
        return 0
    for name, value in found.items():
        print(SHELLS[shell].set(name, value))
    for name, whose in REPLACED.items():
        if name in os.environ and family in (None, whose):
            print(SHELLS[shell].unset(name))
    return 0
