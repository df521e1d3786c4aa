"""`sluicegate groups`: the member groups of a tenant as a file. Written from the service, compared with it, applied."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from proxy.cli.flags import fail, read_settings
from proxy.config.problem import Problems
from proxy.config.secret import Secret
from proxy.config.values import BaseUrl, is_loopback

if TYPE_CHECKING:
    from proxy.groups.apply import Outcome
    from proxy.groups.client import GroupClient
    from proxy.groups.plan import Plan

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

UNTOUCHED_SHOWN = 10

_OPTIONS = (
    click.option(
        "--file", "path", default="groups.yaml", show_default=True, type=click.Path(path_type=Path), help="The file."
    ),
    click.option("--tenant-url", metavar="URL", help="Address of the service [env: SLUICEGATE_TENANT_URL]."),
    click.option("--tenant-token-file", metavar="FILE", help="File with the token [or env: SLUICEGATE_TENANT_TOKEN]."),
    click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings file."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)


def with_service(command: F) -> F:
    """The options every subcommand has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group("groups")
def groups() -> None:
    """Keep the member groups of a tenant in a file."""


@groups.command("pull")
@with_service
@click.option(
    "--without", multiple=True, type=click.Choice(["visibility", "agents", "administrators", "members"]),
    help="Leave this out; each costs one request for every group. May be repeated.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Write over a file that is there.")
def pull(path: Path, without: tuple[str, ...], yes: bool, as_json: bool, **service: Any) -> int:
    """Write the file from what the service holds, members as CSV files beside it.

    Model permissions cannot be read from the service and are not in the file, except those applied from it before.
    """
    from proxy.groups.pull import Part
    from proxy.groups.pull import pull as write

    if path.exists() and not yes:
        raise click.ClickException(f"{path} is there; give --yes to write over it, or another --file")
    base, token = _service(service)
    parts = frozenset(Part) - {Part(word) for word in without}
    count = _ask(base, token, lambda client: write(client, path, str(base), parts, _progress(as_json)))
    print(json.dumps({"file": str(path), "groups": count}) if as_json else f"{count} groups written to {path}.")
    return 0


@groups.command("plan")
@with_service
def plan(path: Path, as_json: bool, **service: Any) -> int:
    """Show what applying the file would do, and what it would not touch; exit 2 when there is a difference."""
    base, token = _service(service)
    made = _ask(base, token, lambda client: _compared(client, path, base, as_json))
    print(json.dumps(_plan_json(made), ensure_ascii=False) if as_json else _plan_text(made))
    return 2 if made.steps else 0


@groups.command("apply")
@with_service
@click.option("--yes", is_flag=True, help="Remove, dismiss and delete without asking.")
def apply(path: Path, yes: bool, as_json: bool, **service: Any) -> int:
    """Do what `plan` shows. What is refused is reported and the rest done; run it again after an interruption."""
    from proxy.groups.applied import Applied
    from proxy.groups.apply import apply as carry_out

    base, token = _service(service)

    async def work(client: "GroupClient") -> "tuple[Plan, Outcome | None]":
        made = await _compared(client, path, base, as_json)
        if not as_json:
            print(_plan_text(made))
        if not _confirmed(made, yes):
            return made, None
        return made, await carry_out(client, made, Applied.beside(path, str(base)), _progress(as_json))

    made, outcome = _ask(base, token, work)
    if outcome is None:
        raise click.ClickException("nothing was done")
    if as_json:
        print(json.dumps({**_plan_json(made), **_outcome_json(outcome, made)}, ensure_ascii=False))
    elif made.steps:
        print(_outcome_text(outcome, made))
    return 0 if outcome.complete else 1


def _service(given: dict[str, Any]) -> tuple[BaseUrl, Secret]:
    config = given.pop("config")
    settings = read_settings(config, given)
    if settings.tenant_url is None:
        raise click.UsageError("give --tenant-url, the address of the member-group service")
    if settings.tenant_token is None:
        raise click.UsageError("give --tenant-token-file or SLUICEGATE_TENANT_TOKEN, the token of an administrator")
    for note in settings.notes:
        print(f"note: {note}", file=sys.stderr)
    base = settings.tenant_url
    if base.scheme == "http" and not is_loopback(base.host):
        print(f"note: {base} is plain http: the token crosses the network unencrypted", file=sys.stderr)
    return base, settings.tenant_token


def _ask(base: BaseUrl, token: Secret, work: "Callable[[GroupClient], Awaitable[T]]") -> T:
    """Run the work with a client; what the file or the service says against it ends the command."""
    from proxy.groups.client import group_client
    from proxy.groups.faults import GroupsFault
    from proxy.observe.log import printable

    async def run() -> T:
        async with group_client(base, token) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except Problems as error:
        fail(error)
    except GroupsFault as fault:
        raise click.ClickException(printable(fault.message)) from fault
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from error


async def _compared(client: "GroupClient", path: Path, base: BaseUrl, as_json: bool) -> "Plan":
    from proxy.groups.applied import Applied
    from proxy.groups.compare import compare
    from proxy.groups.groupsfile import read_file

    tenant = str(base)
    return await compare(client, read_file(path), tenant, Applied.beside(path, tenant), _progress(as_json))


def _confirmed(made: "Plan", yes: bool) -> bool:
    if yes or not made.destructive:
        return True
    count = len(made.destructive)
    if not sys.stdin.isatty():
        print(f"{count} steps take something away; give --yes to do them", file=sys.stderr)
        return False
    return click.confirm(f"{count} steps take something away. Go on?", err=True)


def _progress(as_json: bool) -> Callable[[str, int, int], None]:
    """A line that counts on a terminal; elsewhere a line for every tenth; nothing beside JSON."""
    from proxy.groups.present import silent

    tenths = 0

    def counting(what: str, done: int, total: int) -> None:
        print(f"\r{what}: {done:,} of {total:,}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    def by_tenths(what: str, done: int, total: int) -> None:
        nonlocal tenths
        if total >= 100 and done * 10 // total != tenths:
            tenths = done * 10 // total
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    if as_json:
        return silent
    return counting if sys.stderr.isatty() else by_tenths


def _plan_text(made: "Plan") -> str:
    from proxy.groups.steps import DESTRUCTIVE, sentence
    from proxy.observe.log import printable

    lines = [f"{'-' if isinstance(step, DESTRUCTIVE) else '+'} {sentence(step, made.names)}" for step in made.steps]
    lines += [f"note: {note}" for note in made.notes]
    if made.untouched:
        some = ", ".join(made.names[ident] for ident in made.untouched[:UNTOUCHED_SHOWN])
        more = f" and {len(made.untouched) - UNTOUCHED_SHOWN} more" if len(made.untouched) > UNTOUCHED_SHOWN else ""
        lines.append(f"left alone, as the file does not name them: {some}{more}")
    count = len(made.steps)
    lines.append(f"{count} step{'' if count == 1 else 's'}." if count else "The service is as the file says.")
    # Names come from whoever may rename a group.
    return "\n".join(map(printable, lines))


def _outcome_text(outcome: "Outcome", made: "Plan") -> str:
    from proxy.groups.steps import sentence
    from proxy.observe.log import printable

    lines = [f"failed: {sentence(failure.step, made.names)}: {failure.why}" for failure in outcome.failures]
    if outcome.stopped:
        lines.append(f"stopped, {outcome.untried} steps not tried: {outcome.stopped}; run it again")
    lines.append(f"{outcome.done} of {len(made.steps)} steps done.")
    return "\n".join(map(printable, lines))


def _plan_json(made: "Plan") -> dict[str, Any]:
    from proxy.groups.steps import DESTRUCTIVE, groups_of, sentence

    return {
        "different": bool(made.steps),
        "steps": [
            {
                "kind": type(step).__name__,
                "groups": list(groups_of(step)),
                "says": sentence(step, made.names),
                "destructive": isinstance(step, DESTRUCTIVE),
            }
            for step in made.steps
        ],
        "untouched": list(made.untouched),
        "notes": list(made.notes),
    }


def _outcome_json(outcome: "Outcome", made: "Plan") -> dict[str, Any]:
    from proxy.groups.steps import sentence

    rows = [{"says": sentence(failure.step, made.names), "why": failure.why} for failure in outcome.failures]
    return {"done": outcome.done, "failures": rows, "untried": outcome.untried, "stopped": outcome.stopped}
