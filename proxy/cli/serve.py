"""`sluicegate serve`: the proxy in front of a real gateway."""

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from proxy.cli.flags import SettingsCommand, fail, read_settings, with_settings
from proxy.config.problem import Problems
from proxy.config.settings import Auth, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from proxy.core.policy import Policy
    from proxy.server.app import Running


@click.command("serve", cls=SettingsCommand)
@with_settings
def serve(config: Path | None, **flags: Any) -> int:
    """Run the proxy until SIGTERM or SIGINT, then finish running calls and stop."""
    settings = read_settings(config, flags, serving=True)
    from proxy.config.policyfile import load_policies
    from proxy.server.app import serve as run_proxy
    from proxy.stores.ledger.contract import CannotOpen

    try:
        policy = load_policies(settings.policies)
    except Problems as error:
        fail(error)

    def ready(running: "Running") -> None:
        print(*started(settings, policy, running.data_url, running.admin_url, _issued(running)), sep="\n", flush=True)

    for note in settings.notes:
        print(f"note: {note}", file=sys.stderr)
    try:
        return run_on_loop(run_proxy(settings, policy, ready=ready))
    except CannotOpen as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot run here: {error.strerror or error}; see `sluicegate doctor`") from error


def run_on_loop(work: "Coroutine[Any, Any, int]") -> int:
    """Run on uvloop where it is installed: it saves a tenth of the CPU time of a request."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    try:
        import uvloop
    except ImportError:
        pass
    else:
        factory = uvloop.new_event_loop
    # What is loaded now stays for good, and a request leaves no cycles worth looking for so often: a tenth of all CPU.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_to_its_end(work))


async def _to_its_end(work: "Coroutine[Any, Any, int]") -> int:
    """The exit code; where threads still wait for a disk that does not answer, the process is ended without them."""
    from proxy.server.opening import CLOSE_S, Hung

    try:
        code = await work
    except Hung:
        _end(1)
    # What else was being written in threads; the interpreter would wait for it without a bound.
    idle = asyncio.ensure_future(asyncio.get_running_loop().shutdown_default_executor())
    await asyncio.wait([idle], timeout=CLOSE_S)
    if not idle.done():
        _end(1)
    return code


def _end(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _issued(running: "Running") -> int:
    """How many keys that were issued by command are taken now."""
    return sum(running.parts.keys.takes(one) for one in running.parts.keys.ring.issued.values())


def started(settings: Settings, policy: "Policy", data_url: str, admin_url: str, issued: int = 0) -> list[str]:
    """What a person wants to know once it listens. issued: keys issued by command."""
    teams = ", ".join(sorted(policy.teams)) or "none"
    if settings.auth is Auth.OPEN:
        asked = f"open: no key is asked, everybody is team {policy.open_team or 'none'}"
    else:
        keys = issued + sum(len(team.keys) for team in policy.teams.values())
        asked = f"keys: {keys} virtual key{'' if keys == 1 else 's'} known"
    return [
        f"sluicegate listens on {data_url}",
        f"  admin     {admin_url}",
        f"  gateway   {settings.upstream}, credential {settings.credential.value}",
        f"  auth      {asked}",
        f"  teams     {teams}",
    ]
