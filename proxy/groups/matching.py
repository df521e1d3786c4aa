"""Which entry of the file is which group at the service, and everything in the file that cannot come true."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proxy.config.problem import Problem, Problems, did_you_mean
from proxy.groups.names import Names
from proxy.groups.places import Parents, ring
from proxy.groups.records import Overview
from proxy.groups.wanted import Ref, Unset, Wanted, given


@dataclass(frozen=True, slots=True)
class Matched:
    """The file laid over the service.

    found:   entries of groups that exist and stay, by id.
    new:     entries of groups to create, by English name.
    going:   entries of groups that exist and shall be deleted, by id.
    gone:    entries of groups that were to be deleted and are not there.
    names, types, parents: of every group as it will be, without those that go.
    """

    found: Mapping[int, Wanted]
    new: Mapping[str, Wanted]
    going: Mapping[int, Wanted]
    gone: tuple[Wanted, ...]
    names: Mapping[Ref, Names]
    types: Mapping[Ref, int | None]
    parents: Parents

    def entries(self) -> Iterator[tuple[Ref, Wanted]]:
        """The groups of the file that are to be there."""
        yield from self.found.items()
        yield from self.new.items()


def match(file: Sequence[Wanted], groups: Mapping[int, Overview]) -> Matched:
    """Raises Problems with everything that contradicts itself, the service, or a rule of trees."""
    by_name = {row.en_name: row.id for row in groups.values()}
    found: dict[int, Wanted] = {}
    new: dict[str, Wanted] = {}
    going: dict[int, Wanted] = {}
    gone: list[Wanted] = []
    problems: list[Problem] = []
    claimed = {wanted.id for wanted in file if wanted.id is not None}
    for wanted in file:
        ident = wanted.id
        if ident is None and isinstance(wanted.en_name, str):
            ident = by_name.get(wanted.en_name)
            if ident in claimed:
                # The entry with that id renames it, and this one is another group that takes over its name.
                ident = None
        if ident is None and isinstance(wanted.en_name, str):
            new[wanted.en_name] = wanted
        elif ident is not None and ident in groups:
            (going if wanted.delete else found)[ident] = wanted
        elif wanted.delete:
            gone.append(wanted)
        else:
            problems.append(Problem(wanted.where, f"there is no group {ident}, or it is not delegated to this account"))
    problems += [
        Problem(wanted.where, f"{name}: there is no such group, and to create one it needs a ko_name too")
        for name, wanted in new.items()
        if isinstance(wanted.ko_name, Unset)
    ]
    if problems:
        raise Problems(problems)
    matched = _laid_over(found, new, going, tuple(gone), groups)
    if problems := [*_problems(matched, groups)]:
        raise Problems(problems)
    return matched


def _laid_over(
    found: Mapping[int, Wanted],
    new: Mapping[str, Wanted],
    going: Mapping[int, Wanted],
    gone: tuple[Wanted, ...],
    groups: Mapping[int, Overview],
) -> Matched:
    names: dict[Ref, Names] = {}
    types: dict[Ref, int | None] = {}
    parents: dict[Ref, Ref | None] = {}
    refs: dict[Ref, Ref] = {}
    for ident, row in groups.items():
        refs.setdefault(row.en_name, ident)
        wanted = found.get(ident, Wanted())
        if ident not in going:
            names[ident] = Names(given(wanted.ko_name, row.ko_name), given(wanted.en_name, row.en_name))
            types[ident] = given(wanted.type_id, row.type_id)
            parents[ident] = given(wanted.parent, row.parent_id)
    for name, wanted in new.items():
        names[name] = Names(str(wanted.ko_name), name)
        types[name] = given(wanted.type_id, None)
        parents[name] = given(wanted.parent, None)
    # What the file calls a group goes before what the service does: a renamed one is known by its new name.
    refs |= {name: name for name in new}
    refs |= {wanted.en_name: ident for ident, wanted in found.items() if isinstance(wanted.en_name, str)}
    resolved = {
        ref: None if parent is None else refs.get(parent, parent) if isinstance(parent, str) else parent
        for ref, parent in parents.items()
    }
    return Matched(found, new, going, gone, names, types, resolved)


def _problems(matched: Matched, groups: Mapping[int, Overview]) -> Iterator[Problem]:
    yield from _names_taken(matched)
    for ref, wanted in matched.entries():
        yield from _misplaced(ref, wanted, matched, groups)
    for ident, row in groups.items():
        parent = matched.parents.get(ident)
        if ident not in matched.found and ident not in matched.going:
            if parent in matched.going and isinstance(parent, int):
                what = f"“{row.en_name}” ({ident}) is below it and not in the file"
                yield Problem(matched.going[parent].where, what, "say where it shall go")
            if parent in matched.found and isinstance(parent, int) and matched.types[parent] != row.type_id:
                what = f"its type differs from that of “{row.en_name}” ({ident}) below it, which is not in the file"
                yield Problem(matched.found[parent].where, what, "add that group to the file")
    if (looped := ring(matched.parents)) is not None:
        where = (matched.found.get(looped) if isinstance(looped, int) else matched.new[looped]) or Wanted()
        yield Problem(where.where, f"{where.name} would stand below itself")


def _names_taken(matched: Matched) -> Iterator[Problem]:
    """Names are unique, each by itself. Two entries of one name are found when the file is read."""
    ko: dict[str, Ref] = {}
    en: dict[str, Ref] = {}
    # Those outside the file first: they keep their names.
    for ref in sorted(matched.names, key=lambda ref: ref in matched.found or ref in matched.new):
        names = matched.names[ref]
        for field, name, taken in (("ko_name", names.ko, ko), ("en_name", names.en, en)):
            other = taken.setdefault(name, ref)
            wanted = matched.found.get(ref) if isinstance(ref, int) else matched.new[ref]
            if other != ref and wanted is not None:
                do = f"give id: {other} if that is the group you mean" if isinstance(other, int) else "choose another"
                yield Problem(wanted.where, f"{field}: {name!r} is the name of group {other}", do)


def _misplaced(ref: Ref, wanted: Wanted, matched: Matched, groups: Mapping[int, Overview]) -> Iterator[Problem]:
    parent, kind = matched.parents[ref], matched.types[ref]
    row = groups.get(ref) if isinstance(ref, int) else None
    if row is not None and kind is None and row.type_id is not None:
        yield Problem(wanted.where, "type: the service cannot take a group's type away", "give another type")
    if parent is None:
        return
    if isinstance(wanted.parent, Unset) and (_retyped(ref, matched, groups) or _retyped(parent, matched, groups)):
        # After an interruption nobody would know any more where it stood.
        what = "parent: is left out, and the group leaves its tree for a moment as a type changes"
        yield Problem(wanted.where, what, f"say that it stands below {parent}")
    if parent in matched.going:
        yield Problem(wanted.where, f"parent: group {parent} is deleted", "choose another parent")
    elif parent not in matched.parents:
        # A group administrator does not see what is above the groups delegated to them.
        if row is None or row.parent_id != parent:
            known = [name for name in matched.names if isinstance(name, str)] + [row.en_name for row in groups.values()]
            do = did_you_mean(parent, known) if isinstance(parent, str) and known else ""
            yield Problem(wanted.where, f"parent: there is no group {parent!r}, or it is not delegated to you", do)
    elif matched.types[parent] != kind:
        what = f"parent: {matched.names[parent].en} is of type {matched.types[parent]}, and this one of {kind}"
        yield Problem(wanted.where, what, "parent and child have one type")


def _retyped(ref: Ref, matched: Matched, groups: Mapping[int, Overview]) -> bool:
    """Whether an existing group changes its type."""
    return isinstance(ref, int) and ref in groups and ref in matched.types and matched.types[ref] != groups[ref].type_id
