"""How members get from the groups they are in to those the file puts them in.

Who leaves one group and joins another of the same type is moved, in one step: where a type allows one membership only,
adding first is refused, and where it requires one, removing first is.
"""

from collections.abc import Iterable, Iterator, Mapping

from proxy.groups.matching import Matched
from proxy.groups.present import Present
from proxy.groups.steps import AddMembers, MoveMembers, RemoveMembers, Step
from proxy.groups.wanted import Person, Ref, Unset


def member_steps(matched: Matched, present: Present) -> Iterator[Step]:
    """Moves, then additions, then removals."""
    leaving: dict[Ref, set[int]] = {}
    joining: dict[Ref, set[int]] = {}
    for ref, wanted in matched.entries():
        if isinstance(wanted.members, Unset):
            continue
        now = {row.id for row in present.members.get(ref, ())} if isinstance(ref, int) else set()
        then = set(people_of(wanted.members, present).values())
        leaving[ref], joining[ref] = now - then, then - now
    for (source, target), members in _moves(matched, leaving, joining).items():
        leaving[source] -= members
        joining[target] -= members
        yield MoveMembers(source, target, tuple(sorted(members)))
    yield from (AddMembers(ref, tuple(sorted(members))) for ref, members in joining.items() if members)
    yield from (RemoveMembers(ref, tuple(sorted(members))) for ref, members in leaving.items() if members)


def people_of(people: Iterable[Person], present: Present) -> Mapping[Person, int]:
    """The ids of people; every address is known by now."""
    return {person: present.people[person.lower()] if isinstance(person, str) else person for person in people}


def _moves(
    matched: Matched, leaving: Mapping[Ref, set[int]], joining: Mapping[Ref, set[int]]
) -> dict[tuple[Ref, Ref], set[int]]:
    """Each way out taken once, each way in taken once."""
    ways_in: dict[tuple[int, int | None], list[Ref]] = {}
    for ref, members in joining.items():
        for member in members:
            ways_in.setdefault((member, matched.types[ref]), []).append(ref)
    moves: dict[tuple[Ref, Ref], set[int]] = {}
    for source, members in leaving.items():
        for member in members:
            if targets := ways_in.get((member, matched.types[source])):
                moves.setdefault((source, targets.pop()), set()).add(member)
    return moves
