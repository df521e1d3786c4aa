"""A disk that does not answer: a flush that began and never returns, as `strace` makes it, does not keep `serve`."""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.journeys.programs import Program, serving
from tests.syscalls import can_trace

pytestmark = pytest.mark.skipif(not can_trace(), reason="strace is missing, or not allowed here")

IMAGE = {"model": "image-lab-small", "prompt": "x"}
NEVER_US = 600_000_000
"""Longer than any test, in microseconds."""


@contextmanager
def stuck(program: Program) -> Iterator[None]:
    """Every flush that the process begins from now on does not return; at the end it has ended by itself.

    Threads that are in such a flush are kept by `strace`, as a disk would keep them, so they are let go before the exit
    code is asked for: what has ended cannot do otherwise any more.
    """
    inject = f"inject=fdatasync,fsync:delay_enter={NEVER_US}"
    number = str(program.process.pid)
    command = ["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", inject, "-p", number]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as watcher:
        try:
            assert watcher.stderr is not None
            assert "attached" in watcher.stderr.readline()
            yield
            until(lambda: "State:\tZ" in Path(f"/proc/{number}/status").read_text())
        finally:
            watcher.kill()


def until(holds: Callable[[], bool]) -> None:
    """Look again and again, as nobody tells; far below what a flush takes, and far above what is waited for."""
    for _ in range(6000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come about")


@pytest.mark.parametrize("running", [True, False], ids=["a call's ending", "a call's hold"])
def test_a_disk_that_does_not_answer_does_not_keep_the_process_and_the_log_says_what_was_not_written(
    home, gateway, tmp_path, running
):
    data = ("--auth", "open", "--data", str(tmp_path / "books"))
    with serving(home, gateway.url, *data, "--drain", "1s") as program:
        url = program.url("listens on")
        given: list[object] = []

        def call():
            try:
                given.append(httpx2.post(f"{url}/v1/images/generate", json=IMAGE, timeout=60).status_code)
            except httpx2.HTTPError as error:
                given.append(error)

        caller = threading.Thread(target=call)
        if running:
            gateway.arm("slow", gate="late", times=1)
            caller.start()
            gateway.wait_for_gate("late")
        with stuck(program):
            if running:
                gateway.open_gate("late")
                # Its answer waits for no disk, and must not have to come before the drain is over.
                caller.join()
            else:
                caller.start()
                until(lambda: inside(program))
            program.process.send_signal(signal.SIGTERM)
        assert program.ended() == 1
        caller.join()
    told = {event["file"]: event for event in program.events if event["event"] == "disk_does_not_answer"}["ledger.db"]
    assert (told["endings"], told["steps"]) == ((1, 0) if running else (0, 1))
    assert (given == [200]) is running
    with serving(home, gateway.url, *data) as program:
        said = httpx2.get(f"{program.url('admin')}/api/ledger/verify", timeout=60).json()
        assert said["ok"], said["problems"]
        assert program.stop() == 0


def inside(program: Program) -> bool:
    """Whether a call of the route is being handled."""
    text = httpx2.get(f"{program.url('admin')}/metrics", timeout=60).text
    return 'sluicegate_requests_in_flight{route="all"} 1.0' in text
