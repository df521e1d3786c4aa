"""`sluicegate check`: settings and policies, judged without starting anything."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from proxy.cli.flags import SettingsCommand, with_settings
from proxy.config.problem import Problem, Problems
from proxy.config.settings import Auth, Settings
from proxy.config.sources import load, settings_file


@click.command("check", cls=SettingsCommand)
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[POLICIES]")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@with_settings
def check(folder: Path | None, config: Path | None, as_json: bool, **flags: Any) -> int:
    """Read the settings and the policy files as `serve` would and report every problem; exit 0 when there is none.

    POLICIES: a folder of policy files, instead of the one in the settings.
    """
    _, found, notes = judge(folder, config, flags)
    if as_json:
        rows = [{"where": problem.where, "what": problem.what, "do": problem.do} for problem in found]
        print(json.dumps({"ok": not found, "problems": rows, "notes": notes}, ensure_ascii=False))
        return 1 if found else 0
    for problem in found:
        print(problem)
    for note in notes:
        print(f"note: {note}")
    print(
        f"{len(found)} problem{'' if len(found) == 1 else 's'} found." if found else "Settings and policies are fine."
    )
    return 1 if found else 0


def judge(
    folder: Path | None, config: Path | None, flags: Mapping[str, Any]
) -> tuple[Settings | None, list[Problem], list[str]]:
    """The settings, if they can be read, every problem of settings and policies, and what should be known."""
    from proxy.config.notes import notes_of
    from proxy.config.policyfile import load_policies

    settings = None
    found: list[Problem] = []
    notes: list[str] = []
    if folder is not None:
        flags = {**flags, "policies": str(folder)}
    try:
        settings = load(flags, os.environ, settings_file(config, os.environ, Path.cwd()))
        folder = settings.policies
        notes += settings.notes
    except Problems as error:
        found += error.problems
    # Policies named on the command line are judged even where the settings are not right.
    if folder is not None:
        try:
            policy = load_policies(folder)
            keys = sum(len(team.keys) for team in policy.teams.values())
            if settings is not None and settings.auth is Auth.OPEN and policy.open_team is None:
                found.append(
                    Problem(
                        "auth",
                        "callers without a key have no team, so each of their calls would be refused",
                        "say which team is theirs with open_team: TEAM in a policy file, or run with --auth keys",
                    )
                )
            notes.append(f"teams: {', '.join(policy.teams)}; virtual keys in files: {keys}")
            notes += notes_of(policy)
        except Problems as error:
            found += error.problems
    return settings, found, notes
