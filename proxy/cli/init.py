"""`sluicegate init`: a folder of policies to begin with."""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

SCHEMA: Final = "schema.json"


@dataclass(frozen=True, slots=True)
class Start:
    """next: what to type afterwards, line by line; `{folder}` is where the policies are."""

    name: str
    says: str
    next: tuple[str, ...]


_GATEWAY: Final = "export SLUICEGATE_UPSTREAM=https://GATEWAY SLUICEGATE_UPSTREAM_KEY_FILE=~/.gateway-key"

# fmt: off
STARTS: Final[tuple[Start, ...]] = (
    Start("laptop", "a developer on a laptop: no virtual keys, a budget for the day",
          (_GATEWAY, "sluicegate serve --auth open --policies {folder}", 'eval "$(sluicegate env)"')),
    Start("sidecar", "an app with a sidecar: few models, one budget",
          (_GATEWAY, "sluicegate serve --auth open --policies {folder}")),
    Start("team", "a team of five and whoever pays: a key and a budget for each",
          (_GATEWAY, "sluicegate key add --team crew --id anna --policies {folder}",
           "sluicegate serve --policies {folder}")),
)
# fmt: on


def written(name: str) -> dict[str, str]:
    """What `init NAME` writes: texts by the names of files."""
    from proxy.config.policyschema import policy_schema

    text = files("proxy.config").joinpath("starts", f"{name}.yaml").read_text("utf-8")
    return {f"{name}.yaml": text, SCHEMA: json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"}


@click.command("init")
@click.argument("start", type=click.Choice([start.name for start in STARTS]), metavar="|".join(s.name for s in STARTS))
@click.option("--policies", "folder", type=click.Path(path_type=Path, file_okay=False), default="policies",
              show_default=True, metavar="FOLDER", help="Where to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Write over files that are there.")
def init(start: str, folder: Path, force: bool) -> int:
    """Write policies to begin with, and their schema for editors.

    laptop is for a developer's own machine, sidecar for an app beside which it runs, team for five people with keys.
    """
    texts = written(start)
    # Files of a folder are merged: a second start beside the first would contradict it.
    others = sorted(path.name for path in folder.glob("*.y*ml")) if folder.is_dir() else []
    taken = sorted({*others, *(name for name in texts if (folder / name).exists())})
    if taken and not force:
        what = f"{folder} has {', '.join(taken)}"
        raise click.ClickException(f"{what}; nothing was written. Give another --policies FOLDER, or --force")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    chosen = next(one for one in STARTS if one.name == start)
    print(f"Written for {chosen.says}:", *(f"  {folder / name}" for name in texts), "", sep="\n")
    print("Put your gateway's prices into it, then:", f"  sluicegate check {folder}", sep="\n")
    print(*(f"  {line.format(folder=folder)}" for line in chosen.next), sep="\n")
    return 0
