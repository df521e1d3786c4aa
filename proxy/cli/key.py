"""`sluicegate key`: virtual keys, issued and taken back."""

from typing import Any

import click

from proxy.cli.columns import columns
from proxy.cli.desk import desk_of, path_of, print_json, with_desk


@click.group("key")
def key() -> None:
    """Virtual keys: who may call, and for which team."""


@key.command("add")
@click.option("--team", metavar="NAME", help="Whose calls they are; needed unless --replaces says it.")
@click.option("--id", "key_id", metavar="ID", help="A name of the key in budgets, log and usage; else one is made.")
@click.option("--expires", metavar="WHEN", help="90d from now, or a day such as 2027-01-31; never if left out.")
@click.option("--note", metavar="TEXT", help="Who has it, or what for.")
@click.option("--replaces", metavar="ID", help="Take over from this key, which then is revoked.")
@click.option("--overlap", metavar="TIME", help="How long the key that is replaced is still taken, such as 1d.")
@with_desk
def add(team: str | None, as_json: bool, **given: Any) -> int:
    """Issue a key and print it, this once: only a keyed hash of it is kept.

    sluicegate key add --team crew --id anna --expires 90d
    """
    if team is None and given["replaces"] is None:
        raise click.UsageError("give --team, or --replaces for a key that takes over")
    words = {name: given[name] for name in ("expires", "note", "replaces", "overlap") if given[name] is not None}
    asked = {"team": team, "id": given["key_id"], **words}
    said = desk_of(given).post(path_of("keys"), {name: value for name, value in asked.items() if value is not None})
    if as_json:
        print_json(said)
        return 0
    print(said["key"])
    until = f", until {said['ends_at']}" if said["ends_at"] else ""
    click.echo(f"key {said['id']} of team {said['team']}{until}. It is not shown again.", err=True)
    if old := said.get("replaces"):
        click.echo(f"key {old['id']} is taken until {old['ends_at']}.", err=True)
        click.echo(f"Budgets, their `amounts` and the ledger go on counting it as {said['account']}.", err=True)
    return 0


@key.command("list")
@with_desk
def list_keys(as_json: bool, **given: Any) -> int:
    """List all keys, those of the policy files too; never a key itself."""
    said = desk_of(given).get(path_of("keys"))
    if as_json:
        print_json(said)
        return 0
    rows = [
        (one["id"], one["team"], one["state"], one["created_at"] or "-", one["ends_at"] or "-", one["source"],
         one["note"])
        for one in said["keys"]
    ]  # fmt: skip
    head = ("id", "team", "state", "created", "ends", "where", "note")
    print(columns(head, rows) if rows else "There are no keys.")
    return 0


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@with_desk
def revoke(key_id: str, as_json: bool, **given: Any) -> int:
    """Refuse a key from now on; the running proxy does so with the next call."""
    said = desk_of(given).delete(path_of("keys", key_id))
    if as_json:
        print_json(said)
    else:
        print(f"key {said['id']} of team {said['team']} is revoked.")
    return 0
