"""The real commands as processes of their own, and the emulated gateway seen from outside, through its control routes."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent.parent
GATEWAY_KEY = "sk-emu-alpha-1"


def environment(home: Path, **more: str) -> dict[str, str]:
    """Nothing of whoever runs the tests but the way to programs: settings and data can only be those of `home`."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", **more}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "proxy", *arguments]


@dataclass
class Program:
    """A running command. said: what it printed until it was ready."""

    process: subprocess.Popen[str]
    said: str
    log: Path

    def url(self, before: str) -> str:
        """The address that stands after these words."""
        found = re.search(re.escape(before) + r"\s+(http://[\w.:\[\]]+)", self.said)
        assert found, self.said
        return found[1]

    def ended(self, within_s: float = 60) -> int:
        """Wait for the end and give the exit code."""
        return self.process.wait(within_s)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    @property
    def logged(self) -> str:
        return self.log.read_text("utf-8")

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.logged.splitlines()]


@contextmanager
def program(home: Path, *arguments: str, ready: str, before: Sequence[str] = (), **environ: str) -> Iterator[Program]:
    """A command that is ready with the line in which the words `ready` stand; it is killed if it is still there.

    before: a program that runs it, such as one that watches it.
    """
    number, name = tempfile.mkstemp(prefix=f"{arguments[0]}-", suffix=".log", dir=home)
    log = Path(name)
    with (
        os.fdopen(number, "w") as errors,
        subprocess.Popen(
            [*before, *command(*arguments)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=home,
            env=environment(home, **environ),
        ) as process,
    ):
        assert process.stdout is not None
        try:
            said = ""
            for line in process.stdout:
                said += line
                if ready in line:
                    break
            else:
                raise AssertionError(f"{arguments[0]} ended before it was ready: {said}{log.read_text('utf-8')}")
            yield Program(process, said, log)
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def emulating(home: Path, *arguments: str) -> Iterator["Emulated"]:
    """`emulate` on a port of the system's choosing, without limits on rates; it ends by SIGTERM, with exit code 0."""
    with program(home, "emulate", "--listen", "127.0.0.1:0", "--no-limits", *arguments, ready="gateway on") as running:
        yield Emulated(running.url("gateway on"))
        assert running.stop() == 0, running.logged


@contextmanager
def serving(
    home: Path, upstream: str, *arguments: str, before: Sequence[str] = (), **environ: str
) -> Iterator[Program]:
    """`serve` on ports of the system's choosing. before: as in `program`."""
    # A ledger of its own: one file serves one process.
    data = tempfile.mkdtemp(prefix="data-", dir=home)
    # One proxy serves many journeys: what one of them used up or saw refused must not reach the next.
    rules = Path(tempfile.mkdtemp(prefix="policies-", dir=home))
    (rules / "apart.yaml").write_text(
        "gateway_limits: own\nstorms: pass\ncache: [{ match: { method: tools/list }, ttl: 0s }]\n", "utf-8"
    )
    ports = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data", data, "--policies", str(rules))
    given = {"SLUICEGATE_UPSTREAM_KEY": GATEWAY_KEY, **environ}
    call = ("serve", "--upstream", upstream, *ports, *arguments)
    with program(home, *call, ready="teams", before=before, **given) as running:
        yield running


@contextmanager
def proxying(home: Path, upstream: str, *arguments: str, **environ: str) -> Iterator[str]:
    """The address of a proxy that asks for no key; it ends by SIGTERM, with exit code 0 and without a fault of its own."""
    with serving(home, upstream, "--auth", "open", *arguments, **environ) as running:
        yield running.url("listens on")
        assert running.stop() == 0, running.logged
        assert not [event for event in running.events if event["event"] == "fault"], running.logged


@dataclass(frozen=True)
class Seen:
    """A request as the gateway got it.

    left: we closed the connection before the answer had ended.      charged: units of 1e-8 credit.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    status: int | None
    left: bool
    charged: int = 0


@dataclass(frozen=True)
class Emulated:
    """An emulated gateway in another process."""

    url: str

    def reset(self) -> None:
        self._call("POST", "reset")

    def arm(self, name: str, **parts: Any) -> None:
        """Arm a fault; `times`, `prefix` and `method` say when it acts."""
        self._call("POST", "faults", {"name": name, **parts})

    def arm_line(self, fault: str) -> None:
        """Arm a fault written as in a marker: for `raw`, of which a parameter is called `name` itself."""
        self._call("POST", "faults", {"fault": fault})

    def record(self, name: str, body: str, **parts: Any) -> None:
        """Keep an answer for the fault `raw name=`."""
        self._call("POST", "raw", {"name": name, "body": body, **parts})

    def empty(self, member: str = "alpha") -> None:
        """Take away every credit of a member."""
        self._call("POST", "credits", {"member": member, "credits": "0"})

    def fill(self, amount: int, member: str = "alpha") -> None:
        """Give a member so many credits."""
        self._call("POST", "credits", {"member": member, "credits": str(amount)})

    def wait_for_gate(self, name: str) -> None:
        self._call("POST", "gates", {"wait": name})

    def open_gate(self, name: str) -> None:
        self._call("POST", "gates", {"open": name})

    def seen(self, *, over: int = 0) -> Sequence[Seen]:
        """All requests since the reset, once so many of them are over."""
        return [
            Seen(
                row["method"],
                row["target"],
                {name.lower(): value for name, value in row["headers"]},
                row["status"],
                row["caller_gone"],
                int(Decimal(row["charged_credits"]) * 10**8),
            )
            for row in self._call("GET", f"journal?over={over}")
        ]

    def targets(self) -> list[str]:
        return [f"{seen.method} {seen.target}" for seen in self.seen()]

    def _call(self, method: str, path: str, value: Any = None) -> Any:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request(method, f"/_emulator/{path}", None if value is None else json.dumps(value))
            answer = connection.getresponse()
            told = json.loads(answer.read())
            assert answer.status == 200, told
            return told
        finally:
            connection.close()
