"""`sluicegate budget`: what budgets allow, what is spent and held, and corrections by hand."""

from typing import Any

import click

from proxy.cli.columns import columns, spoken_words
from proxy.cli.desk import desk_of, path_of, print_json, whoami, with_desk


@click.group("budget")
def budget() -> None:
    """Budgets: what is spent, held and left."""


@budget.command("list")
@with_desk
def list_budgets(as_json: bool, **given: Any) -> int:
    """List every budget with its accounts."""
    said = desk_of(given).get(path_of("budgets"))
    if as_json:
        print_json(said)
        return 0
    rows = [row for one in said["budgets"] for row in _rows(one)]
    print(columns(_HEAD, rows, right=(2, 3, 4, 5)) if rows else "There are no budgets.")
    return 0


@budget.command("show")
@click.argument("name")
@with_desk
def show(name: str, as_json: bool, **given: Any) -> int:
    """Show one budget: what the policy says of it and where, its accounts, and the warnings that were given."""
    said = desk_of(given).get(path_of("budgets", name))
    if as_json:
        print_json(said)
        return 0
    print(f"{said['name']}  ({said['source']})", f"  {spoken_words(said['says'])}", "", sep="\n")
    print(columns(_HEAD, _rows(said), right=(2, 3, 4, 5)))
    if (service := said.get("service")) is not None:
        print(f"\nThe service counts {service['used']} credits this month, {service['elsewhere']} of them not spent")
        print(f"through this proxy or not counted yet (read {service['read_at']}).")
    return 0


_HEAD = ("budget", "of", "credits", "spent", "held", "left", "until", "warned at")


def _rows(one: dict[str, Any]) -> list[tuple[str, ...]]:
    name = one["name"] if one["acts"] else f"{one['name']} (does not act)"
    if not one["accounts"]:
        return [(name, f"each {one['says']['each']}", one["says"]["amount"], "0", "0", "-", "-", "-")]
    return [
        (
            name,
            "/".join(account["group"]) or "all",
            account["credits"],
            account["spent"],
            account["held"],
            account["left"],
            account["resets_at"] or "-",
            ", ".join(f"{100 * share:g}%" for share in account["warnings"]) or "-",
        )
        for account in one["accounts"]
    ]


@budget.command("adjust")
@click.argument("name", required=False)
@click.option("--credits", "amount", required=True, metavar="±N", help="What to add to what is spent; -N gives back.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it stands in the ledger for good.")
@click.option("--team", metavar="NAME", help="Whose spending it is; else the team that the budget names.")
@click.option("--key", metavar="ID", help="The id of a virtual key.")
@click.option("--model", metavar="NAME", help="The model it was spent on.")
@click.option("--route", metavar="NAME", help="The route it was spent by.")
@with_desk
def adjust(name: str | None, amount: str, reason: str, as_json: bool, **given: Any) -> int:
    """Correct by hand what was spent: an entry of the ledger, with its reason, in the windows of now.

    Entries are facts, so every budget that counts such a call is moved. NAME: a budget that has to be among them.

    sluicegate budget adjust search-month --credits -50 --reason "double charge of 3 November"
    """
    about = {word: given[word] for word in ("team", "key", "model", "route") if given[word] is not None}
    asked = {"budget": name, "credits": amount, "reason": reason, "who": whoami(), **about}
    said = desk_of(given).post(path_of("budgets", "adjust"), asked)
    if as_json:
        print_json(said)
        return 0
    print(f"{said['credits']} credits booked for team {said['team']} as {said['id']}.")
    rows = [(one["name"], "/".join(one["group"]) or "all", one["spent"], one["left"]) for one in said["moved"]]
    if rows:
        print(columns(("budget", "of", "spent", "left"), rows, right=(2, 3)))
    return 0
