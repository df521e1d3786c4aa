"""`sluicegate reconcile`: the gateway's balance beside the ledger."""

from typing import Any, Final

import click

from proxy.cli.desk import desk_of, path_of, print_json, with_desk
from proxy.cli.ledger import doubts_text

VERDICTS: Final = {
    "agrees": "Balance and ledger agree.",
    "foreign": "The balance fell by more than the ledger knows: somebody else spends on the same member, or calls in "
    "doubt were charged. No team's account is changed by it.",
    "overbooked": "The ledger settled more than the balance fell: prices in the policy are too high, or streams that "
    "broke off were charged by an estimate.",
}


@click.command("reconcile")
@click.option("--anew", is_flag=True, help="Begin a new span: compare from now on.")
@click.option("--last", is_flag=True, help="Show the last comparison without asking the gateway.")
@with_desk
def reconcile(anew: bool, last: bool, as_json: bool, **given: Any) -> int:
    """Compare the fall of the gateway's balance with what the ledger settled in the same span; exit 2 when they differ.

    One call is made to the gateway, which costs nothing. The running proxy compares by itself now and then
    (--reconcile-every).
    """
    desk = desk_of(given)
    said = desk.get(path_of("reconcile")) if last else desk.post(path_of("reconcile"), {"anew": anew})
    if as_json:
        print_json(said)
    elif not said["compared"]:
        print("Nothing was compared yet.")
    else:
        print(
            f"since     {said['since']}, until {said['until']}",
            f"balance   {said['balance']}, fell by {said['fell']}" + (f", put on {said['put_on']}"),
            f"ledger    settled {said['settled']}, {said['held_now']} held by calls that run",
            f"drift     {said['drift']}, of which {said['foreign']} is foreign",
            VERDICTS[said["verdict"]],
            doubts_text(said),
            sep="\n",
        )
    return 0 if said.get("verdict", "agrees") == "agrees" else 2
