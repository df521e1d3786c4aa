"""A client as a person starts it: a command under `sluicegate run`, in a home of its own."""

import contextlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.roster import JS
from tests.clients.strangers import Strangers
from tests.journeys.programs import Emulated, command, environment

QUESTION = "Which way does the water go?"
BROKE = "The gateway's answer broke off before its end."
"""What a client is told of a stream without its end."""

TURN_S_MAX = 90
"""Seconds until a client counts as stuck: the slowest takes ten on an idle machine."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a client did with one turn. code: its exit code; out: what it printed; err: what it said beside that."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of JSON among what was printed."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever starts clients: has a home, a folder to work in, a proxy at `url`, and no other way out."""

    home: Path
    url: str
    strangers: Strangers

    @property
    def work(self) -> Path:
        """Apart from the home: agents look for their own folders in it."""
        folder = self.home / "work"
        folder.mkdir(exist_ok=True)
        return folder

    def runs(self, *words: str, cwd: Path | None = None, **environ: str) -> Turn:
        """Run a command under `sluicegate run`."""
        return self.starts(*command("run", "--url", self.url, "--", *words), cwd=cwd, **environ)

    def starts(self, *words: str, cwd: Path | None = None, **environ: str) -> Turn:
        """Run a command until it ends; all it started is ended with it."""
        with subprocess.Popen(
            words,
            cwd=cwd or self.work,
            env=environment(self.home, TERM="dumb", **self.strangers.environ, **environ),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                out, err = process.communicate(timeout=TURN_S_MAX)
            except subprocess.TimeoutExpired:
                _end(process.pid)
                out, err = process.communicate()
                raise AssertionError(f"{words} is stuck after: {out[-2000:]}{err[-2000:]}") from None
            finally:
                _end(process.pid)
        return Turn(process.returncode, out, err)

    def asks(self, sdk: str, case: str, **given: Any) -> Any:
        """The value of one case of an SDK; raises `Raised` with what the SDK threw."""
        done = self.runs("node", str(JS / f"{sdk}.mjs"), case, json.dumps(given), cwd=JS)
        assert done.code == 0, done.err
        told = json.loads(done.out)
        if "error" in told:
            raise Raised(**told["error"])
        return told["value"]


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


class Raised(Exception):
    """What an SDK of JavaScript threw. kind: the name of its class; status: the HTTP status in it."""

    def __init__(self, **thrown: Any) -> None:
        super().__init__(thrown["message"])
        self.kind = thrown["class"]
        self.status = thrown["status"]


def statuses(gateway: Emulated) -> list[int | None]:
    """What the gateway answered, request by request."""
    return [seen.status for seen in gateway.seen()]
