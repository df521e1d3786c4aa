"""`sluicegate cache`: what is stored of earlier answers, and taking some of it away."""

from typing import Any

import click

from proxy.cli.columns import columns
from proxy.cli.desk import desk_of, path_of, print_json, with_desk


@click.group("cache")
def cache() -> None:
    """Stored answers: how many, which take most room, and purging them."""


@cache.command("stats")
@with_desk
def stats(as_json: bool, **given: Any) -> int:
    """Show how much is stored, and what went."""
    said = desk_of(given).get(path_of("cache"))
    if as_json:
        print_json(said)
        return 0
    print(f"{said['entries']} answers, {said['bytes']} of {said['limit_bytes']} bytes")
    print(f"{said['evicted']} went for room, {said['expired']} for age; {said['faults']} faults of the file")
    return 0


@cache.command("list")
@click.option("--count", default=50, show_default=True, type=click.IntRange(1, 1000), help="How many, largest first.")
@with_desk
def list_entries(count: int, as_json: bool, **given: Any) -> int:
    """List stored answers by size; never what was asked or answered."""
    said = desk_of(given).get(path_of("cache", "entries"), count=str(count))
    if as_json:
        print_json(said)
        return 0
    names = ("key", "team", "route", "model", "bytes", "stored_at", "saves")
    rows = [[str(row[name] if row[name] is not None else "-") for name in names] for row in said["entries"]]
    print(columns([name.replace("_", " ") for name in names], rows, right=(4, 6)) if rows else "Nothing.")
    return 0


@cache.command("purge")
@click.option("--team", metavar="NAME", help="Only answers kept for this team.")
@click.option("--model", metavar="ID", help="Only answers of this model.")
@click.option("--route", metavar="NAME", help="Only answers of this route.")
@click.option("--older-than", metavar="WHEN", help="Only answers stored before: a span such as 7d, or a day.")
@click.option("--all", "everything", is_flag=True, help="All answers.")
@with_desk
def purge(everything: bool, as_json: bool, **given: Any) -> int:
    """Take stored answers away, also while the proxy runs.

    sluicegate cache purge --model gpt-4o --older-than 7d
    """
    words = {name: given[name] for name in ("team", "model", "route", "older_than") if given[name] is not None}
    if bool(words) is everything:
        raise click.UsageError("say which answers: --team, --model, --route, --older-than, or --all alone")
    said = desk_of(given).post(path_of("cache", "purge"), words or {"all": True})
    if as_json:
        print_json(said)
        return 0
    print(f"{said['purged']} answers purged")
    return 0
