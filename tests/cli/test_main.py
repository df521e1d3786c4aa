import os
import subprocess
import sys

import click
import pytest

from proxy import __version__
from proxy.cli.main import COMMANDS, cli, run_command

HEAVY = ("aiohttp", "pydantic", "structlog", "prometheus_client", "aiosqlite", "orjson", "ruamel", "rich", "uvloop")


def a_process(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60, **options
    )


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["serve", "--help"], ["env"], ["run", "--help"],
     ["policy", "--help"], ["policy", "diff", "--help"]],
)  # fmt: skip
def test_help_loads_none_of_what_serving_needs(arguments):
    """It is what keeps `--help` under 0.3 s."""
    code = (
        f"import sys; from proxy.cli.main import run_command; run_command({arguments!r});"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = a_process("-c", code)
    assert done.stderr == "[]\n"
    assert done.stdout


def test_help_names_every_command_and_its_section():
    shown = a_process("-m", "proxy", "--help").stdout
    for row in COMMANDS:
        assert f"  {row.name} " in shown
        assert f"{row.section}:" in shown
        assert row.help in " ".join(shown.split())


def test_version_is_the_package_s():
    assert a_process("-m", "proxy", "--version").stdout == f"sluicegate {__version__}\n"


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_every_command_of_the_table_is_there_and_explains_itself(row):
    command = cli.get_command(click.Context(cli), row.name)
    assert command is not None
    assert command.name == row.name
    assert command.help


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["env", "--help"], 0),
        ([], 64),
        (["srve"], 64),
        (["--nope"], 64),
        (["env", "--nope"], 64),
        (["env", "--for", "nobody"], 64),
        (["run"], 64),
        (["serve"], 1),
    ],
)
def test_exit_codes_are_those_documented(arguments, code, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run_command(arguments) == code
    shown = capsys.readouterr()
    assert bool(shown.err) == (code != 0)


def test_a_reader_that_left_is_no_traceback():
    """As in `sluicegate env | head -0`."""
    read, write = os.pipe()
    os.close(read)
    # Buffered, as in any shell: the failure then comes at the flush, not at the first line.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "proxy", "env"]
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=environ
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
