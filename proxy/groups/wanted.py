"""What a file of groups asks for. What the file does not say is `UNSET` and stays as it is at the service."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")


class Unset(Enum):
    UNSET = "unset"


UNSET: Final = Unset.UNSET

Ref: TypeAlias = int | str
"""A group: the id of one that exists, or the English name of one that is still to be created."""

Person: TypeAlias = int | str
"""A member: id or e-mail address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One group of the file.

    where:          `file:line:col` of the entry, for problems.
    id:             None finds the group by its English name, or creates it.
    parent:         the English name of a group in the file or at the service, or an id; None is the root.
    *_quota:        whole credits; None is no limit.
    agents:         those named only; None inherits the tenant's default.
    models:         model id to whether it may be used; those named only.
    administrators: all of them, and whether the groups below are included (None leaves that as it is).
    members:        all of them.
    """

    where: str = ""
    id: int | None = None
    delete: bool = False
    ko_name: str | Unset = UNSET
    en_name: str | Unset = UNSET
    type_id: int | Unset | None = UNSET
    parent: Ref | Unset | None = UNSET
    group_quota: int | Unset | None = UNSET
    member_quota: int | Unset | None = UNSET
    admin_only: bool | Unset = UNSET
    agents: Mapping[str, bool | None] | Unset = UNSET
    models: Mapping[int, bool] | Unset = UNSET
    administrators: Mapping[Person, bool | None] | Unset = UNSET
    members: tuple[Person, ...] | Unset = UNSET

    @property
    def name(self) -> str:
        """How reports call it."""
        return self.en_name if isinstance(self.en_name, str) else f"group {self.id}"


def given(value: T | Unset, default: T) -> T:
    """What the file says, else what holds."""
    return default if isinstance(value, Unset) else value
