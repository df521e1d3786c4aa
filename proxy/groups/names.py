"""In which order groups are renamed, as no two may bear one name, even for a moment."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

PARKED: Final = "~"
"""Starts a name that is borne for a moment only."""


@dataclass(frozen=True, slots=True)
class Names:
    ko: str
    en: str


def rename_order(
    current: Mapping[int, Names], wanted: Mapping[int, Names], new: Iterable[Names], going: Iterable[int]
) -> Iterator[tuple[int, Names]]:
    """The renames one after the other, each to names that are free by then.

    wanted: groups whose names change; no two want one name. new: names of groups that are created afterwards. going:
    groups that are deleted at the end. Groups in a ring, and those that go but bear a name that is needed, are parked
    under another name.
    """
    held = _Held(current)
    pending = dict(wanted)
    needed = {*pending.values(), *new}
    ko, en = {names.ko for names in needed}, {names.en for names in needed}
    for ident in going:
        if current[ident].ko in ko or current[ident].en in en:
            yield ident, held.bear(ident, _parked(ident, current[ident], ko, en))
    while pending:
        free = [ident for ident, names in pending.items() if held.free(ident, names)]
        for ident in free:
            yield ident, held.bear(ident, pending.pop(ident))
        if not free:
            ident = held.in_the_way(pending)
            others = [names for other, names in pending.items() if other != ident]
            away = _parked(ident, held[ident], {names.ko for names in others}, {names.en for names in others})
            yield ident, held.bear(ident, away)


class _Held:
    """Who bears which names now."""

    def __init__(self, current: Mapping[int, Names]) -> None:
        self._names: Final = dict(current)
        self._ko: Final = {names.ko: ident for ident, names in current.items()}
        self._en: Final = {names.en: ident for ident, names in current.items()}

    def __getitem__(self, ident: int) -> Names:
        return self._names[ident]

    def free(self, ident: int, names: Names) -> bool:
        return {self._ko.get(names.ko, ident), self._en.get(names.en, ident)} == {ident}

    def in_the_way(self, pending: Mapping[int, Names]) -> int:
        """A group that bears a name another one waits for."""
        return next(
            holder
            for ident, names in pending.items()
            for holder in (self._ko.get(names.ko, ident), self._en.get(names.en, ident))
            if holder != ident
        )

    def bear(self, ident: int, names: Names) -> Names:
        old = self._names[ident]
        del self._ko[old.ko], self._en[old.en]
        self._names[ident] = names
        self._ko[names.ko] = self._en[names.en] = ident
        return names


def _parked(ident: int, names: Names, ko: AbstractSet[str], en: AbstractSet[str]) -> Names:
    """Other names where somebody needs these; a group without an id in the file is found by its English name."""
    away = f"{PARKED}{ident}"
    return Names(away if names.ko in ko else names.ko, away if names.en in en else names.en)
