"""`sluicegate policy`: the format of policy files, what a folder of them comes to, and what two of them differ in."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.cli.columns import columns, spoken_value, spoken_words
from proxy.cli.desk import desk_of, path_of, print_json, with_desk
from proxy.cli.flags import fail, read_settings
from proxy.config.problem import Problems

if TYPE_CHECKING:
    from proxy.core.listing import Difference, Said

FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.group("policy")
def policy() -> None:
    """What the policies say, and how they may be written."""


@policy.command("schema")
def schema() -> int:
    """Print the JSON Schema of a policy file, for editors: sluicegate policy schema > policies/schema.json."""
    from proxy.config.policyschema import policy_schema

    print(json.dumps(policy_schema(), indent=2, ensure_ascii=False))
    return 0


@policy.command("show")
@click.argument("folder", required=False, type=FOLDER, metavar="[POLICIES]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings file.")
def show(folder: Path | None, config: Path | None, as_json: bool) -> int:
    """Print the merged policy, each rule with the file and line that says it.

    POLICIES: a folder of policy files, instead of the one in the settings.
    """
    rules = _of_folder(folder or read_settings(config, {}).policies)
    if as_json:
        print_json([said.plain for said in rules])
        return 0
    rows = [(said.kind, said.name, spoken_words(said.words) or "free", said.source or "default") for said in rules]
    print(columns(("kind", "name", "says", "where"), rows))
    return 0


@policy.command("diff")
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="[BEFORE] AFTER")
@with_desk
def diff(folders: tuple[Path, ...], as_json: bool, **given: Any) -> int:
    """Show what changes from the folder BEFORE to the folder AFTER; exit 2 when something does.

    With one folder, from the policy of the running proxy to that folder.
    """
    if len(folders) > 2:
        raise click.UsageError("give one folder or two")
    from proxy.core.listing import differences

    before = _of_folder(folders[0]) if len(folders) == 2 else _of_server(given)
    found = differences(before, _of_folder(folders[-1]))
    if as_json:
        print_json({"different": bool(found), "differences": [_plain(one) for one in found]})
    else:
        from proxy.observe.log import printable

        print("\n".join(printable(line) for line in _lines(found)) or "The policies say the same.")
    return 2 if found else 0


def _of_folder(folder: Path) -> "tuple[Said, ...]":
    from proxy.config.policyfile import load_policies
    from proxy.core.listing import listing

    try:
        return listing(load_policies(folder))
    except Problems as error:
        fail(error)


def _of_server(given: dict[str, Any]) -> "tuple[Said, ...]":
    from proxy.core.listing import said_of

    desk = desk_of(given)
    found = desk.running("GET", path_of("policy"), {}, None)
    if found is None:
        raise click.ClickException(f"no proxy answers at {desk.settings.admin_listen}; give two folders")
    status, said = found
    if status != 200:
        raise click.ClickException(str(said.get("error", status)))
    return tuple(said_of(rule) for rule in said["rules"])


def _plain(one: "Difference") -> dict[str, Any]:
    return {
        "kind": one.rule.kind,
        "name": one.rule.name,
        "before": one.before.plain if one.before is not None else None,
        "after": one.after.plain if one.after is not None else None,
        "changed": {name: list(pair) for name, pair in one.changed.items()},
    }


def _lines(found: "Iterable[Difference]") -> list[str]:
    lines = []
    for one in found:
        mark = "+" if one.before is None else "-" if one.after is None else "~"
        where = f"  ({one.rule.source})" if one.rule.source else ""
        lines.append(f"{mark} {one.rule.kind} {one.rule.name}{where}")
        for name, (was, becomes) in one.changed.items():
            lines.append(f"    {name}: {spoken_value(was)} -> {spoken_value(becomes)}")
    return lines
