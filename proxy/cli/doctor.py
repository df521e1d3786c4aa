"""`sluicegate doctor`: what stands between here and a first answer, each with how to mend it."""

import json
from pathlib import Path
from typing import Any

import click

from proxy.cli.flags import SettingsCommand, with_settings


@click.command("doctor", cls=SettingsCommand)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@with_settings
def doctor(config: Path | None, as_json: bool, **flags: Any) -> int:
    """Look at settings, policies, listeners, data folder, and the way to the gateway; exit 1 when something fails.

    One request is sent to the gateway, for the list of models, which costs nothing.
    """
    from proxy.cli.check import judge
    from proxy.cli.checks import Finding, State, look

    settings, problems, notes = judge(None, config, flags)
    findings = [Finding("settings", State.FAIL, f"{found.where}: {found.what}", found.do) for found in problems]
    if not problems:
        findings.append(Finding("settings", State.OK, "settings and policies are fine"))
    findings += [Finding("settings", State.NOTE, note) for note in notes]
    if settings is not None:
        findings += look(settings)
    if as_json:
        rows = [{"name": f.name, "state": f.state.value, "says": f.says, "do": f.do} for f in findings]
        print(json.dumps(rows, ensure_ascii=False))
    else:
        for found in findings:
            print(f"{found.state.value:4}  {found.name:12}  {found.says}" + (f"; {found.do}" if found.do else ""))
    return 1 if any(found.state is State.FAIL for found in findings) else 0
