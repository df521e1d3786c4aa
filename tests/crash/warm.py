"""`serve` as a process of its own, forked from one that has loaded the code: starting takes a tenth of a second, not one.

What is killed is the whole proxy, with its event loop, its files and its sockets; only the loading of the code is shared.
"""

import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

CONTEXT: Final = get_context("forkserver")
CONTEXT.set_forkserver_preload(["proxy.cli.main", "proxy.cli.serve", "proxy.server.app", "proxy.config.policyfile"])


def _run(said: Connection, log: str, environ: Mapping[str, str], arguments: Sequence[str]) -> None:
    from proxy.cli.main import run_command

    os.environ.clear()
    os.environ.update(environ)
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(said.fileno(), 1)
    os.dup2(errors, 2)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    said.close()
    os._exit(run_command(["serve", *arguments]))


class Proxy:
    """One `serve`, until it is killed or stopped."""

    def __init__(self, home: Path, environ: Mapping[str, str], *arguments: str) -> None:
        self._hears, says = CONTEXT.Pipe(duplex=False)
        self._log = home / "serve.log"
        self._process = CONTEXT.Process(target=_run, args=(says, str(self._log), dict(environ), arguments), daemon=True)
        self._process.start()
        says.close()
        self._said = b""

    def addresses(self) -> tuple[str, str] | None:
        """Where callers and where operators connect, as soon as it listens; None when it died before."""
        while b"teams" not in self._said:
            piece = os.read(self._hears.fileno(), 4096)
            if not piece:
                return None
            self._said += piece
        data, admin = re.findall(rb"(?:listens on|admin) +(http://\S+)", self._said)
        return data.decode(), admin.decode()

    def kill(self) -> None:
        """SIGKILL, and wait until nothing of it is left."""
        self._process.kill()
        self._gone()

    def stop(self) -> int | None:
        """SIGTERM, and its exit code."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGTERM)
        return self._gone()

    def _gone(self) -> int | None:
        self._process.join(60)
        code = self._process.exitcode
        self._process.close()
        self._hears.close()
        return code

    @property
    def logged(self) -> str:
        return self._log.read_text("utf-8")
