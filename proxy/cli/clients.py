"""What points clients at the proxy: one table of variables, and where the proxy is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import click

from proxy.config.secret import Secret
from proxy.config.values import Address, address

DEFAULT_PORT: Final = 8787
DEFAULT_KEY: Final = "sluicegate-local"
"""Stands in where no virtual key is needed: SDKs refuse to start without any."""

GATEWAY_SECRETS: Final = (
    "SLUICEGATE_UPSTREAM_KEY",
    "SLUICEGATE_ADMIN_TOKEN",
    "SLUICEGATE_TENANT_TOKEN",
    "SLUICEGATE_ALERT_URL",
    "SLUICEGATE_ALERT_SECRET",
)
"""Never handed to a child process: a client needs its own key and no other."""


@dataclass(frozen=True, slots=True)
class Variable:
    """value: `{url}` is the proxy's address, `{key}` the caller's virtual key."""

    name: str
    family: str
    value: str


# fmt: off
VARIABLES: Final[tuple[Variable, ...]] = (
    Variable("OPENAI_BASE_URL",      "openai", "{url}/v1"),
    Variable("OPENAI_API_BASE",      "openai", "{url}/v1"),   # the older name, which some agents still read
    Variable("OPENAI_API_KEY",       "openai", "{key}"),
    Variable("ANTHROPIC_BASE_URL",   "native", "{url}"),      # its SDKs add /v1 themselves
    Variable("ANTHROPIC_AUTH_TOKEN", "native", "{key}"),
    Variable("MCP_BASE_URL",         "mcp",    "{url}/v1/mcp"),   # a suite's name is appended
    Variable("MCP_AUTHORIZATION",    "mcp",    "Bearer {key}"),
)
# fmt: on

REPLACED: Final[Mapping[str, str]] = {"ANTHROPIC_API_KEY": "native"}
"""Variables taken away, by family: clients that find this one too send two different keys, which is refused."""

FAMILIES: Final = tuple(dict.fromkeys(row.family for row in VARIABLES))


def variables(url: str, key: str, family: str | None = None) -> dict[str, str]:
    """Names and values for one family of clients, or for all."""
    return {row.name: row.value.format(url=url, key=key) for row in VARIABLES if family in (None, row.family)}


def caller_key(environ: Mapping[str, str]) -> str:
    """The virtual key in SLUICEGATE_KEY, else the stand-in."""
    try:
        return Secret(environ.get("SLUICEGATE_KEY", "").strip() or DEFAULT_KEY).reveal()
    except ValueError as error:
        raise click.UsageError(f"SLUICEGATE_KEY: {error}") from None


def proxy_url(url: str | None, port: int | None, environ: Mapping[str, str]) -> str:
    """Where the proxy is: as said, else SLUICEGATE_URL, else where `serve` listens in this environment."""
    if url and port:
        raise click.UsageError("give --url or --port, not both")
    if port:
        return f"http://127.0.0.1:{port}"
    found = (url or environ.get("SLUICEGATE_URL", "")).strip().rstrip("/") or _listening(environ)
    parts = urlsplit(found)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise click.UsageError("the proxy's address is like http://127.0.0.1:8787")
    return found.removesuffix("/v1")


_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def _listening(environ: Mapping[str, str]) -> str:
    """Where `serve` listens by SLUICEGATE_LISTEN, else by default, as who is on this machine calls it."""
    said = environ.get("SLUICEGATE_LISTEN", "").strip()
    if not said:
        return f"http://127.0.0.1:{DEFAULT_PORT}"
    try:
        at = address(said)
    except ValueError as error:
        raise click.UsageError(f"SLUICEGATE_LISTEN: {error}") from None
    if not at.port:
        raise click.UsageError("SLUICEGATE_LISTEN lets the system pick a port; give --port or --url")
    return f"http://{Address(_EVERYWHERE.get(at.host, at.host), at.port)}"


def child_environment(environ: Mapping[str, str], url: str, key: str) -> dict[str, str]:
    """The environment of a child process: pointed at the proxy, without the secrets of the proxy itself."""
    kept = {name: value for name, value in environ.items() if name not in GATEWAY_SECRETS and name not in REPLACED}
    return kept | variables(url, key)
