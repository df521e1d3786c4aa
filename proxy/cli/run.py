"""`sluicegate run -- CMD`: one command, pointed at the proxy."""

import os
import shutil
import sys

import click

from proxy.cli.clients import caller_key, child_environment, proxy_url


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--port", type=click.IntRange(1, 65535), help="The proxy is on this port of this machine.")
@click.option(
    "--url",
    metavar="URL",
    help="The proxy is there [env: SLUICEGATE_URL; else by SLUICEGATE_LISTEN, or http://127.0.0.1:8787].",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(port: int | None, url: str | None, command: tuple[str, ...]) -> int:
    """Run a command with the variables of `sluicegate env` set; its exit code is ours.

    Secrets of the proxy (SLUICEGATE_UPSTREAM_KEY and the tokens) are not passed on.
    """
    child = child_environment(os.environ, proxy_url(url, port, os.environ), caller_key(os.environ))
    program = shutil.which(command[0])
    if program is None:
        # 127 is what shells say of a command that is not there.
        print(f"{command[0]}: not found", file=sys.stderr)
        return 127
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        # The command takes our place: signals, terminal and exit code are its own.
        os.execve(program, command, child)  # noqa: S606  (running what the user says is the purpose)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 126
