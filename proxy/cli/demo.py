"""`sluicegate demo`: proxy and emulated gateway in one process, proven by one call, ready to paste from."""

import asyncio
import contextlib
import itertools
import json
import re
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import textwrap
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from proxy.cli.clients import DEFAULT_KEY, DEFAULT_PORT
from proxy.cli.samples import CALLS, CROWD, PROOF, Call, paste

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from proxy.config.settings import Settings
    from proxy.core.policy import Policy

HOST: Final = "127.0.0.1"
EVERY_S: Final = 1.5
"""Between two pairs of calls of the sample traffic: 80 of the 120 a minute that the gateway allows."""

CHUNK_DELAY_S: Final = 0.03
"""Between events of an emulated stream, so that a person sees it stream."""


@click.command("demo")
@click.option("--port", type=click.IntRange(0, 65534), help="Listen here, and on the next port for health and metrics.")
@click.option(
    "--traffic", is_flag=True, help="Keep calling, as four teams with budgets, so that there is something to see."
)
@click.option(
    "--every", default=EVERY_S, show_default=True, metavar="S", help="Seconds between pairs of calls of --traffic."
)
@click.option("--once", is_flag=True, help="Make the first call, then stop: 0 when it succeeded.")
@click.option("--verbose", is_flag=True, help="Log every request.")
def demo(port: int | None, traffic: bool, every: float, once: bool, verbose: bool) -> int:
    """Run the proxy in front of an emulated gateway: no key, no network, no cost.

    Anybody on this machine may call it; with --traffic the key is the printed one. Settings and policies of this folder
    are not read.
    """
    from proxy.cli.serve import run_on_loop

    try:
        return run_on_loop(_demo(port, every_s=every if traffic else None, once=once, verbose=verbose))
    except OSError as error:
        raise click.ClickException(f"the demo cannot run here: {error.strerror or error}") from error


async def _demo(port: int | None, *, every_s: float | None, once: bool, verbose: bool) -> int:
    from aiohttp import ClientSession

    from proxy.config.policyfile import load_policies
    from proxy.emulator.gateway import running as emulator_running
    from proxy.emulator.options import Options
    from proxy.server.app import running as proxy_running

    stop = _stop_on_signals()
    wanted, notes = _ports(port)
    async with contextlib.AsyncExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="sluicegate-demo-"))
        gateway = await stack.enter_async_context(emulator_running(Options(chunk_delay_s=CHUNK_DELAY_S)))
        policies = Path(data) / "policies"
        policy, auth = (load_policies(policies), "open") if every_s is None else (_teams(policies), "keys")
        settings = demo_settings(gateway.url, wanted, data, verbose=verbose, auth=auth)
        proxy = await stack.enter_async_context(proxy_running(settings, policy))
        session = await stack.enter_async_context(ClientSession())
        status, answer = await _call(session, proxy.data_url, PROOF)
        if status != 200:
            print(f"The first call failed with status {status}: {answer}", file=sys.stderr)
            return 1
        print(*notes, *_greeting(proxy.data_url, proxy.admin_url, gateway.url, answer), sep="\n", flush=True)
        if once:
            return 0
        if every_s is None:
            await stop.wait()
        else:
            await _until(stop, _traffic(session, proxy.data_url, every_s))
        print("Stopping.", flush=True)
    return 0


def demo_settings(
    gateway_url: str, ports: tuple[int, int], data: str, *, verbose: bool, auth: str = "open"
) -> "Settings":
    """Settings of the demo; nothing of this machine's environment or folder has a part in them."""
    from proxy.config.sources import load
    from proxy.emulator.accounts import KEYS

    flags = {
        "upstream": gateway_url,
        "auth": auth,
        **({} if auth == "open" else {"policies": f"{data}/policies"}),
        "listen": f"{HOST}:{ports[0]}",
        "admin_listen": f"{HOST}:{ports[1]}",
        "data": data,
        "drain": "2s",
        "log_level": "info" if verbose else "warning",
    }
    return load(flags, {"SLUICEGATE_UPSTREAM_KEY": next(iter(KEYS))}, None, serving=True)


def key_of(name: str) -> str:
    """The virtual key of one of the demo's teams."""
    return DEFAULT_KEY if name == "you" else f"demo-{name}-key"


def _teams(folder: Path) -> "Policy":
    """Write the demo's policy file and read it, as files of anybody are."""
    from proxy.config.policyfile import load_policies

    def digest(found: "re.Match[str]") -> str:
        return sha256(key_of(found[1]).encode()).hexdigest()

    text = files("proxy.cli").joinpath("demo.yaml").read_text("utf-8")
    folder.mkdir()
    (folder / "demo.yaml").write_text(re.sub(r"@(\w+)@", digest, text), "utf-8")
    return load_policies(folder)


def _ports(port: int | None) -> tuple[tuple[int, int], list[str]]:
    """Ports for callers and for health, and a note when the usual ones are taken."""
    wanted = DEFAULT_PORT if port is None else port
    if wanted == 0:
        return (0, 0), []
    if _is_free(wanted) and _is_free(wanted + 1):
        return (wanted, wanted + 1), []
    if port is not None:
        raise click.ClickException(f"port {wanted} or {wanted + 1} is taken; choose another --port")
    return (0, 0), [f"Ports {wanted} and {wanted + 1} are taken, so the system picked others.", ""]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the server does it: a port of a connection that just ended is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _greeting(url: str, admin_url: str, gateway_url: str, answer: str) -> list[str]:
    port = url.rpartition(":")[2]
    where = "" if port == str(DEFAULT_PORT) else f" --port {port}"
    return [
        f"Sluicegate is running at {url}, with its page, health and metrics at {admin_url}",
        f"in front of an emulated gateway at {gateway_url}. Its first answer: {answer}",
        "",
        paste(url, _program(), where, DEFAULT_KEY),
        "Stop with Ctrl-C.",
    ]


def _program() -> str:
    """What to type for this program: its name where the shell finds it, else where it lies or how it was started."""
    if shutil.which("sluicegate"):
        return "sluicegate"
    beside = Path(sys.executable).parent / "sluicegate"
    if not beside.exists():
        return f"{shlex.quote(sys.executable)} -m proxy"
    with contextlib.suppress(ValueError):
        beside = beside.relative_to(Path.cwd())
    return shlex.quote(str(beside))


async def _call(session: "ClientSession", url: str, call: Call, key: str = DEFAULT_KEY) -> tuple[int, str]:
    """Status and, for a chat completion, the text of the answer."""
    method = "GET" if call.body is None else "POST"
    headers = {"Authorization": f"Bearer {key}", **call.headers}
    async with session.request(method, url + call.path, json=call.body, headers=headers) as response:
        raw = await response.read()
        if response.status != 200 or call is not PROOF:
            return response.status, raw[:200].decode("utf-8", "replace")
        content: Any = (await response.json())["choices"][0]["message"]["content"]
        return response.status, repr(textwrap.shorten(content, 60, placeholder=" …"))


async def _traffic(session: "ClientSession", url: str, every_s: float) -> None:
    """Call every route in turn, and as other teams meanwhile; what broke off is no reason to stop.

    A refusal of a call that should be answered is worth a line; that other teams are refused is a part of the play.
    """
    from aiohttp import ClientError

    for number, call in enumerate(itertools.cycle(CALLS)):
        name, other = CROWD[number % len(CROWD)]
        try:
            status, answer = await _call(session, url, call)
            if status >= 400:
                print(f"{call.name}: {status} {answer}", file=sys.stderr)
            await _call(session, url, _numbered(other, number), key_of(name))
        except ClientError as error:
            print(f"{call.name}: {type(error).__name__}", file=sys.stderr)
        await asyncio.sleep(every_s)


def _numbered(call: Call, number: int) -> Call:
    return replace(call, body=json.loads(json.dumps(call.body).replace("@", str(number))))


async def _until(stop: asyncio.Event, work: Any) -> None:
    """Let `work` run until `stop` is set."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not every platform's loop takes handlers; there Ctrl-C ends the process as it does any.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    return stop
