"""A disk that takes no more, under a serving process: nothing is sent without its hold, and service comes back with it.

The system refuses every write to a file of the running process (`RLIMIT_FSIZE`), as a disk with a fault does: ledger,
cache and log alike. A disk that is full and one that is read-only are told apart by SQLite alone; `tests/stores` has
those.
"""

import resource
import threading
from contextlib import contextmanager

import httpx2
import pytest

from tests.journeys.programs import serving

IMAGE = {"model": "image-lab-small", "prompt": "x"}
LIMITED = hasattr(resource, "prlimit")

pytestmark = pytest.mark.skipif(not LIMITED, reason="limits of another process cannot be set here")


@contextmanager
def no_room(process):
    """Every write of the process to a file is refused meanwhile."""
    before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        if process.poll() is None:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)


def answer_of(url, given):
    reply = httpx2.post(f"{url}/v1/images/generate", json=IMAGE, timeout=60)
    given.append(reply)


def until(asks, wanted):
    """Ask until the answer is there; the process tries again by itself."""
    for _ in range(600):
        if (found := asks()) == wanted:
            return
        threading.Event().wait(0.05)
    raise AssertionError(found)


def test_a_disk_that_fails_stops_what_spends_and_nothing_else_and_service_comes_back(home, gateway):
    with serving(home, gateway.url, "--auth", "open") as program, httpx2.Client(timeout=60) as client:
        url, admin = program.url("listens on"), program.url("admin")

        def ready():
            return client.get(f"{admin}/readyz").status_code

        assert client.post(f"{url}/v1/images/generate", json=IMAGE).status_code == 200
        gateway.arm("slow", gate="late", times=1)
        given = []
        running = threading.Thread(target=answer_of, args=(url, given))
        running.start()
        gateway.wait_for_gate("late")
        with no_room(program.process):
            sent = len(gateway.targets())
            for _ in range(3):
                reply = client.post(f"{url}/v1/images/generate", json=IMAGE)
                assert (reply.status_code, reply.json()["error"]["reason"]) == (503, "ledger_unavailable")
            assert len(gateway.targets()) == sent, "nothing that spends is sent"
            assert ready() == 503
            assert client.get(f"{url}/v1/models").status_code == 200, "what costs nothing is answered"
            gateway.open_gate("late")
            running.join()
            assert given[0].status_code == 200, "an answer that is paid for arrives"
        until(lambda: client.post(f"{url}/v1/images/generate", json=IMAGE).status_code, 200)
        until(ready, 200)
        assert client.get(f"{admin}/api/ledger/verify").json()["ok"]
        entries = client.get(f"{admin}/api/ledger/entries").json()["entries"]
        assert [entry["kind"] for entry in entries].count("hold") == 3
        assert [entry["kind"] for entry in entries].count("settle") == 3, "no hold was taken in vain, none is left open"
        assert sum(target.endswith("/images/generate/") for target in gateway.targets()) == 3
        assert program.stop() == 0


def test_a_proxy_whose_disk_fails_can_be_stopped_and_its_calls_are_in_doubt_after_it(home, gateway):
    data = ("--data", str(home / "kept"), "--auth", "open")
    with serving(home, gateway.url, *data, "--drain", "1s") as program, httpx2.Client(timeout=60) as client:
        url = program.url("listens on")
        gateway.arm("slow", gate="late", times=1)
        given = []
        running = threading.Thread(target=answer_of, args=(url, given))
        running.start()
        gateway.wait_for_gate("late")
        with no_room(program.process):
            assert client.post(f"{url}/v1/images/generate", json=IMAGE).status_code == 503
            gateway.open_gate("late")
            running.join()
            assert program.stop() == 0, "it ends by itself"
    with serving(home, gateway.url, *data) as program, httpx2.Client(timeout=60) as client:
        doubts = client.get(f"{program.url('admin')}/api/ledger/doubts").json()
        assert len(doubts["unknown"]) == 1
        assert program.stop() == 0
