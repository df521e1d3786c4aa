"""What `serve` does when it is told to stop, and when it cannot start: what runs is finished, and the exit code tells."""

import contextlib
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from tests.journeys.programs import GATEWAY_KEY, Program, command, environment, serving

ASK = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**ASK, "stream": True}
CHAT = "/v1/chat/completions"


@contextmanager
def open_proxy(home, gateway, *arguments: str) -> Iterator[tuple[Program, str]]:
    with serving(home, gateway.url, "--auth", "open", *arguments) as program:
        yield program, program.url("listens on")


@contextmanager
def held_stream(url: str, gateway, gate: str) -> Iterator[Iterator[str]]:
    """A stream of which the first event has come, and the rest is held back at a gate."""
    gateway.arm("slow", gate=gate, at=2)
    with httpx2.Client(timeout=60) as client, client.stream("POST", url + CHAT, json=STREAM) as answer:
        pieces = answer.iter_text()
        assert next(pieces).startswith("data: ")
        gateway.wait_for_gate(gate)
        yield pieces


def asked_to_stop(program: Program, url: str) -> None:
    """Send SIGTERM and wait until nobody new is taken."""
    program.process.send_signal(signal.SIGTERM)
    address = url.removeprefix("http://").split(":")
    with contextlib.suppress(ConnectionRefusedError, ConnectionResetError):
        while True:
            socket.create_connection((address[0], int(address[1]))).close()


def test_a_running_stream_comes_to_its_end(home, gateway):
    with open_proxy(home, gateway) as (program, url), held_stream(url, gateway, "drain") as rest:
        asked_to_stop(program, url)
        gateway.open_gate("drain")
        assert "".join(rest).endswith("data: [DONE]\n\n")
        assert program.ended() == 0
    assert [event["ending"] for event in program.events if event["event"] == "request"] == ["answered"]


def test_a_call_that_waits_for_its_answer_gets_it(home, gateway):
    gateway.arm("slow", gate="head", at=0)
    with open_proxy(home, gateway) as (program, url):
        body = httpx2.Request("POST", url + CHAT, json=ASK).read()
        host, _, port = url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port))) as caller:
            head = f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
            caller.sendall(head.encode() + body)
            gateway.wait_for_gate("head")
            asked_to_stop(program, url)
            gateway.open_gate("head")
            answer = b"".join(iter(lambda: caller.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert program.ended() == 0


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(home, gateway, again):
    """The drain would take ten minutes; the stream that is cut off says so to its caller."""
    with open_proxy(home, gateway, "--drain", "10m") as (program, url), held_stream(url, gateway, "never") as rest:
        asked_to_stop(program, url)
        program.process.send_signal(again)
        assert program.ended() == 0
        told = ended(rest)
    assert "[DONE]" not in told
    assert '"error"' in told


def test_a_drain_has_an_end(home, gateway):
    with open_proxy(home, gateway, "--drain", "0.2s") as (program, url), held_stream(url, gateway, "never") as rest:
        asked_to_stop(program, url)
        assert program.ended() == 0
        told = ended(rest)
    assert '"error"' in told


def ended(pieces: Iterator[str]) -> str:
    """What still comes; a connection that breaks is an end that nobody takes for a whole answer."""
    told = ""
    try:
        for piece in pieces:
            told += piece
    except httpx2.TransportError as error:
        told += f'"error": {error}'
    return told


def test_a_caller_that_waits_for_nothing_does_not_hold_the_stop(home, gateway):
    with open_proxy(home, gateway) as (program, url), httpx2.Client(timeout=60) as client:
        assert client.get(f"{url}/v1/models").status_code == 200
        program.process.send_signal(signal.SIGINT)
        assert program.ended() == 0


def test_an_address_that_is_taken_is_said_so(home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flags in (
            ("--listen", address, "--admin-listen", "127.0.0.1:0"),
            ("--listen", "127.0.0.1:0", "--admin-listen", address),
        ):
            done = subprocess.run(
                command("serve", "--upstream", "http://127.0.0.1:1", "--auth", "open", *flags),
                capture_output=True, text=True, check=False, timeout=60, cwd=home,
                env=environment(home, SLUICEGATE_UPSTREAM_KEY=GATEWAY_KEY),
            )  # fmt: skip
            assert done.returncode == 1
            assert "address already in use" in done.stderr
            assert "Traceback" not in done.stderr
            assert done.stdout == ""
