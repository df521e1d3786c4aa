"""What of a file with faults is sound all the same: one check tells mistakes between files with those in them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from proxy.config.yamltree import Steps


@dataclass(frozen=True, slots=True)
class Salvage:
    """A file without its faulty items.

    tree:    the rest.      indexes: where the items of its lists stood in the file.
    broken:  names at the top of the file whose faults leave nothing of them.
    """

    tree: dict[str, Any]
    indexes: dict[str, list[int]] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()

    def places(self, name: str, count: int) -> list[int]:
        """The indexes in the file of so many items of a list."""
        return self.indexes.get(name, list(range(count)))


def whole(tree: Mapping[str, Any]) -> Salvage:
    """A file without faults."""
    return Salvage(dict(tree))


def salvage(tree: Mapping[Any, Any], faults: Collection[Steps]) -> Salvage:
    """Leave out each item that a fault is in, and each name whose fault is in no item or that has none."""
    broken = {str(steps[0]) for steps in faults if len(steps) == 1 or steps[0] not in MERGED}
    items = {(str(steps[0]), str(steps[1])) for steps in faults if len(steps) > 1}
    rest: dict[str, Any] = {}
    indexes: dict[str, list[int]] = {}
    for name, said in tree.items():
        if str(name) in broken:
            continue
        if isinstance(said, list):
            kept = [(index, one) for index, one in enumerate(said) if (name, str(index)) not in items]
            indexes[name] = [index for index, _ in kept]
            rest[name] = [one for _, one in kept]
        elif isinstance(said, dict):
            rest[name] = {key: one for key, one in said.items() if (name, str(key)) not in items}
        else:
            rest[name] = said
    return Salvage(rest, indexes, frozenset(broken))


MERGED: Final = frozenset({"teams", "budgets", "rates", "members", "prices", "aliases", "tool_aliases", "cache"})
"""What files add to one another, item by item; everything else is said once."""

NAMED: Final = {"budgets": "budget", "rates": "rate"}
"""Lists whose items have names, and what such an item is called."""


def named(tree: Mapping[Any, Any], faults: Collection[Steps]) -> Iterator[tuple[tuple[str, ...], Steps, str]]:
    """What faulty items are called, where that is readable: the thing, the steps to its name, and its title."""
    for name, item in sorted({(str(steps[0]), steps[1]) for steps in faults if len(steps) > 1}, key=str):
        said = tree.get(name)
        if name in NAMED and isinstance(said, list) and isinstance(item, int):
            called = said[item].get("name") if isinstance(said[item], dict) else None
            if isinstance(called, str):
                thing = NAMED[name]
                yield (thing, called), (name, item, "name"), f"{name}.{item}.name: the {thing} {called!r}"
        elif name == "teams" and isinstance(said, dict):
            yield ("team", str(item)), (name, item), f"teams.{item}: the team"
            yield from _keys(said.get(item), str(item))
        elif name == "aliases":
            yield ("alias", str(item)), (name, item), f"aliases.{item}: the alias"


def _keys(team: Any, name: str) -> Iterator[tuple[tuple[str, ...], Steps, str]]:
    """The digests of a faulty team's keys, 64 hexadecimal digits each: another team may have one of them, too."""
    keys = team.get("keys") if isinstance(team, dict) else None
    for index, key in enumerate(keys if isinstance(keys, list) else ()):
        digest = key.get("sha256") if isinstance(key, dict) else None
        if isinstance(digest, str) and len(digest) == 64:
            steps = ("teams", name, "keys", index, "sha256")
            yield ("digest", digest.lower()), steps, f"teams.{name}.keys.{index}.sha256: the key"
