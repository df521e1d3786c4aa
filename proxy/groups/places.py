"""In which order groups are moved, so that the tree is sound after every step.

Parents come before children. Then no step can close a ring: all above the new parent stand where they stay. A group
that changes its type leaves its tree first, with those below it. Where a subtree on its way would reach deeper than the
tree does now or will do, all that move go to the root first; from there each is only as deep as it will be.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from proxy.groups.wanted import Ref

Parents = Mapping[Ref, Ref | None]


@dataclass(frozen=True, slots=True)
class Placing:
    """lifts: groups to move to the root first. order: every group that is created or moved, parents first."""

    lifts: tuple[Ref, ...]
    order: tuple[Ref, ...]


def placing(now: Parents, then: Parents, retyped: AbstractSet[Ref], going: AbstractSet[Ref]) -> Placing:
    """now: parents as they are. then: as they shall be, with groups to create and without those that go.

    `then` has no ring and nobody in it stands below one that goes. A parent in neither is somewhere out of sight.
    """
    lifts = [ref for ref, parent in now.items() if parent is not None and (ref in retyped or parent in retyped)]
    order = _order(now, then, lifts)
    if not _shallow(now, then, lifts, order):
        on_the_way = {*order, *going} - {*lifts}
        lifts += [ref for ref, parent in now.items() if parent is not None and ref in on_the_way]
        order = _order(now, then, lifts)
    return Placing(tuple(lifts), order)


def ring(then: Parents) -> Ref | None:
    """A group that would stand below itself."""
    safe: set[Ref] = set()
    for ref in then:
        seen: set[Ref] = set()
        step: Ref | None = ref
        while step is not None and step in then and step not in safe:
            if step in seen:
                return step
            seen.add(step)
            step = then[step]
        safe |= seen
    return None


def top_down(parents: Parents) -> Iterator[Ref]:
    """All groups, parents before children."""
    below = children(parents)
    level = [ref for ref, parent in parents.items() if parent is None or parent not in parents]
    while level:
        yield from level
        level = [child for ref in level for child in below.get(ref, ())]


def bottom_up(parents: Parents, some: AbstractSet[Ref]) -> list[Ref]:
    """Some of the groups, children before parents."""
    return [ref for ref in reversed(list(top_down(parents))) if ref in some]


def children(parents: Parents) -> dict[Ref, list[Ref]]:
    below: dict[Ref, list[Ref]] = {}
    for ref, parent in parents.items():
        if parent is not None:
            below.setdefault(parent, []).append(ref)
    return below


def _order(now: Parents, then: Parents, lifts: Iterable[Ref]) -> tuple[Ref, ...]:
    """Groups that do not stand where they shall once the lifts are done."""
    lifted = {**now, **dict.fromkeys(lifts)}
    return tuple(ref for ref in top_down(then) if ref not in now or lifted[ref] != then[ref])


def _depths(parents: Parents) -> dict[Ref, int]:
    depths: dict[Ref, int] = {}
    for ref in top_down(parents):
        parent = parents[ref]
        depths[ref] = 0 if parent is None else depths.get(parent, 0) + 1
    return depths


def _shallow(now: Parents, then: Parents, lifts: Iterable[Ref], order: Iterable[Ref]) -> bool:
    """Whether no step on the way makes the tree deeper than it is before or after."""
    depths = _depths(then)
    bound = max([*_depths(now).values(), *depths.values()], default=0)
    parents = {**now, **dict.fromkeys(lifts)}
    below = children(parents)

    def height(ref: Ref) -> int:
        return max((1 + height(child) for child in below.get(ref, ())), default=0)

    for ref in order:
        # All above the new place stand where they stay, so the depth is the one at the end.
        if depths[ref] + height(ref) > bound:
            return False
        if (before := parents.get(ref)) is not None:
            below[before].remove(ref)
        parents[ref] = then[ref]
        if (parent := then[ref]) is not None:
            below.setdefault(parent, []).append(ref)
    return True
