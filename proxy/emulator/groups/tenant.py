"""One tenant the group service administers: its tree of groups, its members, and the rules about changing them.

Every method raises `Refusal` where a rule says no, and changes nothing then.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from proxy.emulator.groups.accounts import Account
from proxy.emulator.groups.records import DEPTH_MAX, PEOPLE, PERMISSIONS, TYPES, Group, GroupType, Refusal, first_groups


class Tenant:
    """All groups of one tenant.

    people:        every member by id.
    member_quotas: limits that were applied to members when they moved.
    """

    def __init__(self, name: str, new_ids: Iterator[int], *, enterprise: bool = True) -> None:
        self.name = name
        self.enterprise = enterprise
        self.people = {person.ident: person for person in PEOPLE[name]}
        self.groups = {group.ident: group for group in first_groups(name)}
        self.member_quotas: dict[int, int | float | None] = {}
        self._new_ids = new_ids
        self._children: dict[int, dict[int, None]] = {}
        self._places: dict[int, dict[int, None]] = {}
        self._ko_names: dict[str, int] = {}
        self._en_names: dict[str, int] = {}
        for group in self.groups.values():
            self._place(group)

    def group(self, ident: int, caller: Account) -> Group:
        """A group the caller manages: 404 when there is none in the tenant, 403 when it is not theirs."""
        if ident not in self.groups:
            raise Refusal(404, f"group {ident} not found")
        if not self.manages(caller, ident):
            raise Refusal(403, f"group {ident} is not delegated to you")
        return self.groups[ident]

    def manages(self, caller: Account, ident: int) -> bool:
        if caller.master or caller.member_id in self.groups[ident].admins:
            return True
        return any(self.groups[above].admins.get(caller.member_id, False) for above in self.above(ident))

    def above(self, ident: int) -> Iterator[int]:
        """Ancestors of a group, nearest first."""
        parent = self.groups[ident].parent_id
        while parent is not None:
            yield parent
            parent = self.groups[parent].parent_id

    def below(self, ident: int) -> list[Group]:
        """Children of a group."""
        return [self.groups[child] for child in self._children.get(ident, ())]

    def create(self, **fields: Any) -> Group:
        group = Group(next(self._new_ids), **fields)
        self.groups[group.ident] = group
        self._place(group)
        return group

    def delete(self, group: Group) -> None:
        kind = TYPES.get(group.type_id or 0)
        if group.sso is not None:
            raise Refusal(400, "a group linked to SSO cannot be deleted")
        if kind and kind.required:
            raise Refusal(400, "a group of a required type cannot be deleted")
        if self.below(group.ident):
            raise Refusal(400, "move the groups below it first")
        for member in list(group.members):
            self._leave(group, member)
        if group.parent_id is not None:
            del self._children[group.parent_id][group.ident]
        self._unname(group)
        del self.groups[group.ident]

    def move(self, group: Group, parent_id: int | None) -> None:
        self.check_parent(group.ident, group.type_id, parent_id)
        if group.parent_id is not None:
            del self._children[group.parent_id][group.ident]
        group.parent_id = parent_id
        if parent_id is not None:
            self._children.setdefault(parent_id, {})[group.ident] = None

    def check_names(self, ko_name: str | None, en_name: str | None, but: int | None = None) -> None:
        """A name belongs to one group; None is no name."""
        if {self._ko_names.get(ko_name or "", but), self._en_names.get(en_name or "", but)} != {but}:
            raise Refusal(409, "a group of this name exists")

    def rename(self, group: Group, ko_name: str | None, en_name: str | None) -> None:
        """None leaves a name as it is."""
        self.check_names(ko_name, en_name, but=group.ident)
        self._unname(group)
        group.ko_name = ko_name or group.ko_name
        group.en_name = en_name or group.en_name
        self._name(group)

    def check_type(self, type_id: int | None) -> None:
        if type_id is not None and type_id not in TYPES:
            raise Refusal(400, f"group type {type_id} not found")

    def check_parent(self, ident: int | None, type_id: int | None, parent_id: int | None) -> None:
        """The same tenant, a hierarchical type, the same one, no cycle, not too deep."""
        if parent_id is None:
            return
        parent = self.groups.get(parent_id)
        if parent is None:
            raise Refusal(400, f"parent group {parent_id} not found")
        kind = TYPES.get(type_id or 0)
        if kind is None or not kind.hierarchical:
            raise Refusal(400, "only groups of a hierarchical type have a parent")
        if parent.type_id != type_id:
            raise Refusal(400, "parent and child must be of one type")
        line = [parent_id, *self.above(parent_id)]
        if ident in line:
            raise Refusal(400, "a group cannot stand below itself")
        if len(line) + self._height(ident) > DEPTH_MAX:
            raise Refusal(400, f"groups stand at most {DEPTH_MAX} deep")

    def check_people(self, members: Iterable[int]) -> None:
        for ident in members:
            if ident not in self.people:
                raise Refusal(404, f"member {ident} not found")

    def conflict(self, group: Group, member: int) -> GroupType | None:
        """The single-membership type in which the member already has a group, when this group is of it too."""
        kind = TYPES.get(group.type_id or 0)
        return kind if kind and kind.single and self._elsewhere(group, member) else None

    def add(self, group: Group, members: Iterable[int]) -> None:
        """Append; nobody is taken out of another group, and a conflict stops it all."""
        wanted = list(members)
        self.check_people(wanted)
        for member in wanted:
            if self.conflict(group, member):
                raise Refusal(400, f"single_membership_conflict: member {member}")
        for member in wanted:
            self._join(group, member)

    def remove(self, group: Group, members: Iterable[int]) -> None:
        self._check_leaving(group, list(members))
        for member in members:
            self._leave(group, member)

    def move_members(self, source: Group, target: Group, members: Iterable[int], *, apply_quota: bool) -> None:
        """Out of one group and into another, all or nobody; inside one type the last place is no matter."""
        wanted = list(members)
        same = source.type_id == target.type_id
        self._check_leaving(source, wanted, last=not same)
        for member in wanted:
            self._leave(source, member)
        try:
            self.add(target, wanted)
        except Refusal:
            for member in wanted:
                self._join(source, member)
            raise
        if apply_quota:
            self.member_quotas |= dict.fromkeys(wanted, target.member_quota)

    def permitted(self, member: int, permission: str, own: bool | None = None) -> bool:
        """Whether a member has a feature: the member's own word, else any group's that has one, else the tenant's."""
        said = [
            self.groups[ident].permissions[permission]
            for ident in self._places.get(member, ())
            if permission in self.groups[ident].permissions
        ]
        if own is not None:
            return own
        return any(said) if said else PERMISSIONS[permission]

    def placed(self, type_id: int | None) -> set[int]:
        """Members who are in some group, of that type where one is given."""
        return {
            member
            for member, places in self._places.items()
            if any(type_id is None or self.groups[ident].type_id == type_id for ident in places)
        }

    def _check_leaving(self, group: Group, members: list[int], *, last: bool = True) -> None:
        kind = TYPES.get(group.type_id or 0)
        for member in members:
            if member not in group.members:
                raise Refusal(404, f"member {member} is not in group {group.ident}")
            if last and kind and kind.required and not self._elsewhere(group, member):
                raise Refusal(400, f"member {member} needs a group of the required type {kind.name}")

    def _elsewhere(self, group: Group, member: int) -> bool:
        """Whether the member is in another group of the same type."""
        places = self._places.get(member, ())
        return any(ident != group.ident and self.groups[ident].type_id == group.type_id for ident in places)

    def _height(self, ident: int | None) -> int:
        children = self.below(ident) if ident is not None else []
        return max((1 + self._height(child.ident) for child in children), default=0)

    def _name(self, group: Group) -> None:
        self._ko_names[group.ko_name] = self._en_names[group.en_name] = group.ident

    def _unname(self, group: Group) -> None:
        del self._ko_names[group.ko_name], self._en_names[group.en_name]

    def _place(self, group: Group) -> None:
        self._name(group)
        if group.parent_id is not None:
            self._children.setdefault(group.parent_id, {})[group.ident] = None
        for member in group.members:
            self._join(group, member)

    def _join(self, group: Group, member: int) -> None:
        group.members[member] = None
        self._places.setdefault(member, {})[group.ident] = None

    def _leave(self, group: Group, member: int) -> None:
        group.members.pop(member, None)
        self._places[member].pop(group.ident, None)
