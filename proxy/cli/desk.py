"""Where commands ask: the admin listener of the running proxy, else the same functions here, on the ledger.

A proxy that runs has the ledger to itself, so it is asked; where none answers, the ledger is opened for one question.
"""

import asyncio
import getpass
import json
import sys
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote, urlencode

import click

from proxy.cli.flags import fail, flag_of, read_settings
from proxy.config.problem import Problems
from proxy.config.settings import SETTINGS, Settings

F = TypeVar("F", bound=Callable[..., Any])

FLAGS: Final = ("admin_listen", "admin_token_file", "policies", "data", "upstream", "upstream_key_file")
"""Settings that say where the proxy is, and where its files are when none runs."""

TIMEOUT_S: Final = 60.0
NOBODY_S: Final = 5.0
"""Longest wait for a connection: the listener is on this machine or near it."""

_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def with_desk(command: F) -> F:
    """The options of every command that asks: the settings that matter to it, `--config` and `--json`."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
    by_name = {row.name: row for row in SETTINGS}
    for name in reversed(FLAGS):
        command = flag_of(by_name[name])(command)
    return click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings file.")(command)


def desk_of(given: Mapping[str, Any]) -> "Desk":
    """The desk for the options of `with_desk`; ends the command when the settings are wrong."""
    flags = {name: given[name] for name in FLAGS}
    return Desk(read_settings(given["config"], flags))


class Desk:
    """One proxy, running or not."""

    def __init__(self, settings: Settings) -> None:
        self.settings: Final = settings

    def get(self, path: str, **query: str | None) -> Any:
        """The answer to a GET; path as `path_of` makes it."""
        return self.ask("GET", path, {name: value for name, value in query.items() if value is not None}, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self.ask("POST", path, {}, body)

    def delete(self, path: str) -> Any:
        return self.ask("DELETE", path, {}, None)

    def ask(self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None) -> Any:
        """The answer as JSON values; ends the command with a sentence where there is none."""
        found = self.running(method, path, query, body)
        if found is None:
            return self._here(method, path, query, body)
        status, said = found
        if status >= 400:
            what = said.get("error") if isinstance(said, dict) else None
            raise click.ClickException(str(what or f"the proxy answers {status}"))
        return said

    def running(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> tuple[int, Any] | None:
        """Status and JSON from the admin listener; None where nothing listens, and the ledger would be here."""
        address = self.settings.admin_listen
        connection = HTTPConnection(_WILDCARDS.get(address.host, address.host), address.port, timeout=NOBODY_S)
        try:
            connection.connect()
            connection.sock.settimeout(TIMEOUT_S)
        except OSError as error:
            connection.close()
            if address.is_loopback or address.host in _WILDCARDS:
                return None
            # The books of another machine's proxy are not here.
            raise click.ClickException(f"no proxy answers at {address} ({error.strerror or error})") from error
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.settings.admin_token is not None:
            headers["Authorization"] = f"Bearer {self.settings.admin_token.reveal()}"
        target = path + (f"?{urlencode(query)}" if query else "")
        try:
            connection.request(method, target, None if body is None else json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            ours, raw = answer.getheader("X-Sluicegate") == "admin", answer.read()
            return (answer.status, json.loads(raw)) if ours else self._stranger("another program")
        except (OSError, HTTPException, ValueError) as error:
            self._stranger(str(error) or type(error).__name__)
        finally:
            connection.close()

    def _stranger(self, why: str) -> NoReturn:
        what = f"{self.settings.admin_listen} does not answer as a sluicegate admin listener ({why})"
        raise click.ClickException(f"{what}; check --admin-listen")

    def _here(self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None) -> Any:
        """The answer of the same function in this process."""
        from proxy.admin.call import Asked, Refused
        from proxy.admin.table import ask, changes
        from proxy.config.policyfile import load_policies
        from proxy.server.opening import at_rest
        from proxy.stores.ledger.contract import CannotOpen

        async def once() -> Any:
            async with at_rest(self.settings, policy, writes=changes(method, path)) as parts:
                return await ask(method, path, Asked(query=query, body=body or {}), parts)

        try:
            policy = load_policies(self.settings.policies)
            return asyncio.run(once())
        except Problems as error:
            fail(error)
        except Refused as refused:
            raise click.ClickException(refused.message) from refused
        except CannotOpen as error:
            raise click.ClickException(f"{error}, or name the running proxy's --admin-listen") from error


def path_of(*parts: str) -> str:
    """`/api/…` with each part as one segment."""
    return "/api/" + "/".join(quote(part, safe="") for part in parts)


def whoami() -> str | None:
    """Who runs the command, for entries made by hand; None where the system does not know."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


def print_notes(settings: Settings) -> None:
    for note in settings.notes:
        print(f"note: {note}", file=sys.stderr)
