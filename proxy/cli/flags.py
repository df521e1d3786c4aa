"""Options of commands that read settings: one for each row of the settings table."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from proxy.config.problem import Problems
from proxy.config.settings import SETTINGS, Setting, Settings
from proxy.config.sources import load, settings_file

F = TypeVar("F", bound=Callable[..., Any])


class SettingsCommand(click.Command):
    """Shows its options under the sections of the settings table; one list of forty is read by nobody."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        by_name = {row.name: row for row in SETTINGS}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                row = by_name.get(parameter.name or "")
                sections.setdefault(row.section if row else "Options", []).append(record)
        for section in [*(name for name in sections if name != "Options"), "Options"]:
            with formatter.section(section):
                formatter.write_dl(sections[section])


def with_settings(command: F) -> F:
    """Add `--config` and every setting that has a flag. Values arrive as written; `load` reads them."""
    for row in reversed(SETTINGS):
        if row.flag:
            command = flag_of(row)(command)
    return click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help=_CONFIG_HELP)(command)


def flag_of(row: Setting) -> Callable[[F], F]:
    """The option of one setting."""
    return click.option(row.flag, row.name, multiple=row.repeatable, metavar=_metavar(row), help=_help(row))


_CONFIG_HELP = "Settings file [env: SLUICEGATE_CONFIG; default: sluicegate.yaml here, if there is one]."


def _metavar(row: Setting) -> str:
    return {"s": "TIME", "bytes": "SIZE"}.get(row.unit, "TEXT")


def _help(row: Setting) -> str:
    facts = [f"env: {row.variable}"]
    if row.default is not None:
        facts.append(f"default: {row.default}")
    if row.repeatable:
        facts.append("repeatable")
    return f"{row.help} [{'; '.join(facts)}]"


def read_settings(config: Path | None, flags: dict[str, Any], *, serving: bool = False) -> Settings:
    """Settings of this process; ends the command with every problem on standard error."""
    try:
        file = settings_file(config, os.environ, Path.cwd())
        return load(flags, os.environ, file, serving=serving)
    except Problems as error:
        fail(error)


def fail(error: Problems) -> NoReturn:
    count = len(error.problems)
    print(f"{error}\n{count} problem{'s' if count > 1 else ''} found.", file=sys.stderr)
    raise click.exceptions.Exit(1)
