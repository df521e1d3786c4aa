"""`sluicegate simulate`: what a policy makes of traffic, by the server's own scheduler, before anybody waits for it."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.cli.flags import fail
from proxy.config.problem import Problems
from proxy.units import credit_text

if TYPE_CHECKING:
    from proxy.core.simulation import Outcome

FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("simulate")
@click.option("--traffic", required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="YAML that describes calls, or the log of a proxy in JSON.")  # fmt: skip
@click.option("--policies", type=FOLDER, help="Folder of policy files; without it only the gateway's own limits hold.")
@click.option("--against", type=FOLDER, help="Another folder, shown beside the first.")
@click.option("--seed", default=1, show_default=True, help="Of described traffic: the same one gives the same calls.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def simulate(traffic: Path, policies: Path | None, against: Path | None, seed: int, as_json: bool) -> int:
    """Play traffic through the scheduler and the budgets of a policy, in virtual time: a day takes seconds."""
    from proxy.config.policyfile import load_policies
    from proxy.config.trafficfile import read_traffic
    from proxy.core.simulation import Simulation

    folders = [policies or Path("no policies"), *([against] if against is not None else [])]
    found = {}
    try:
        for folder in folders:
            policy, coming = load_policies(folder), read_traffic(traffic, seed)
            begins_s = time.time() if coming.begins_s is None else coming.begins_s
            found[str(folder)] = told(Simulation(policy, begins_s).run(coming.calls))
    except Problems as error:
        fail(error)
    if coming.skipped or coming.unasked:
        left_out = f"{coming.skipped} lines that are no requests, {coming.unasked} requests that asked for no turn"
        click.echo(f"Left out: {left_out}.", err=True)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        show(found)
    return 0


def told(outcome: "Outcome") -> dict[str, Any]:
    """The figures of one policy."""
    teams = {
        name: {
            "calls": team.calls,
            "started": len(team.waits_s),
            "waited_s": {share: round(team.wait_s(float(share)), 3) for share in ("0.5", "0.95", "1")},
            "refused": dict(sorted(team.refused.items())),
            "charged": credit_text(team.charged),
        }
        for name, team in sorted(outcome.teams.items())
    }
    used = {name: round(share, 4) for name, share in outcome.used.items() if share}
    return {"teams": teams, "allowance_used": used}


def show(found: dict[str, dict[str, Any]]) -> None:
    """One block a team, one column a policy."""
    columns = list(found.values())
    print(f"{'':24}" + "".join(f"{name[-24:]:>26}" for name in found))
    for team in sorted({name for column in columns for name in column["teams"]}):
        print(team)
        teams = [column["teams"].get(team) for column in columns]
        for title, cell in (
            ("calls", lambda row: str(row["calls"])),
            ("started", lambda row: str(row["started"])),
            ("waited, half of them", lambda row: f"{row['waited_s']['0.5']:.1f} s"),
            ("waited, 95 of 100", lambda row: f"{row['waited_s']['0.95']:.1f} s"),
            ("waited longest", lambda row: f"{row['waited_s']['1']:.1f} s"),
            ("refused", lambda row: ", ".join(f"{count} {why}" for why, count in row["refused"].items()) or "none"),
            ("credits", lambda row: row["charged"]),
        ):
            print(f"  {title:22}" + "".join(f"{cell(row) if row else '-':>26}" for row in teams))
    print("allowance used")
    for rate in dict.fromkeys(name for column in columns for name in column["allowance_used"]):
        cells = [column["allowance_used"].get(rate) for column in columns]
        print(f"  {rate:22}" + "".join(f"{'-' if share is None else f'{share:.1%}':>26}" for share in cells))
