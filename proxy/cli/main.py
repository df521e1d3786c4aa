"""The command `sluicegate`: a table of subcommands, each loaded when it is called.

`--help` imports neither the server nor its libraries. Exit codes: 0 done, 1 failed, 2 there is a difference, 64 usage.
"""

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import click

from proxy import __version__

DONE: Final = 0
FAILED: Final = 1
DIFFERENT: Final = 2
USAGE: Final = 64


@dataclass(frozen=True, slots=True)
class Command:
    """name: the word on the command line, the module in this folder and the command in that module."""

    name: str
    section: str
    help: str


# fmt: off
COMMANDS: Final[tuple[Command, ...]] = (
    Command("serve",   "Run",      "Run the proxy."),
    Command("demo",    "Run",      "Run the proxy with an emulated gateway, to try it without a key."),
    Command("emulate", "Run",      "Run the emulated gateway alone."),
    Command("init",    "Policies", "Write policies to begin with: for a laptop, a sidecar or a team."),
    Command("policy",  "Policies", "Show the merged policy, its schema, and what two policies differ in."),
    Command("budget",  "Money",    "Show budgets and their accounts; correct what was spent by hand."),
    Command("usage",   "Money",    "Show what was spent, by team, key, model, route or day."),
    Command("ledger",  "Money",    "Check, export and copy the books; say what calls in doubt have cost."),
    Command("reconcile", "Money",  "Compare the gateway's balance with the ledger."),
    Command("cache",   "Cache",    "Show and purge stored answers."),
    Command("key",     "Keys",     "Issue, list, replace and revoke virtual keys."),
    Command("env",     "Clients",  "Print the variables that point clients at the proxy."),
    Command("run",     "Clients",  "Run one command with those variables set."),
    Command("mcp",     "Clients",  "List tools, write entries for MCP clients, serve clients that have no HTTP."),
    Command("groups",  "Groups",   "Keep the member groups of a tenant in a file: pull, plan, apply."),
    Command("status",  "Watch",    "Show how the running proxy is, and which budgets run out."),
    Command("top",     "Watch",    "Watch teams, the queue and the last requests."),
    Command("tail",    "Watch",    "Print requests as they end, with the reason for what was decided."),
    Command("explain", "Diagnose", "Show what would become of a request, rule by rule, without sending it."),
    Command("check",   "Diagnose", "Check settings and policy files; says everything that is wrong."),
    Command("simulate", "Diagnose", "Play traffic through a policy in virtual time: waits, shares, refusals, spend."),
    Command("doctor",  "Diagnose", "Look for what stands between here and a first answer."),
)
# fmt: on


class LazyGroup(click.Group):
    """Lists the table without importing what is in it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return [row.name for row in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(import_module(f"proxy.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  (click's signature)
        for section in dict.fromkeys(row.section for row in COMMANDS):
            with formatter.section(section):
                formatter.write_dl([(row.name, row.help) for row in COMMANDS if row.section == section])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 1 failed, 2 there is a difference, 64 wrong usage.",
)
@click.version_option(__version__, prog_name="sluicegate", message="%(prog)s %(version)s")
def cli() -> None:
    """A local proxy with budgets, turns and a cache in front of a credit-billed AI gateway."""


def run_command(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code. What went wrong is on standard error."""
    try:
        code: Any = cli.main(arguments, prog_name="sluicegate", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        error.show()
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        # 128 + SIGINT is what shells show for a program that was interrupted.
        return 130
    except BrokenPipeError:
        # The reader of our output left, as `head` does; what is still buffered must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return code if isinstance(code, int) else DONE


def main() -> None:
    sys.exit(run_command())
