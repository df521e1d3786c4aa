"""Random tenants and random edits of the files pulled from them; every edit is one the service can take."""

from dataclasses import replace

from proxy.emulator.groups.records import AGENTS, DEPTH_MAX
from proxy.groups.wanted import UNSET, Wanted, given

PEOPLE = (101, 102, 103, 104, 105)
TREES, COURSE, CAMPUS = (1, 4), 3, 2


def furnish(tenant, rng):
    """Groups, members and administrators beyond those every tenant starts with."""
    for number in range(rng.randint(2, 9)):
        kind = rng.choice((None, 1, 1, 1, 4, COURSE, CAMPUS))
        above = [
            group.ident
            for group in tenant.groups.values()
            if kind in TREES and group.type_id == kind and len(list(tenant.above(group.ident))) < DEPTH_MAX
        ]
        group = tenant.create(
            ko_name=f"그룹 {number}",
            en_name=f"Group {number}",
            type_id=kind,
            parent_id=rng.choice([None, *above]) if above else None,
            group_quota=rng.choice((None, 10, 20)),
            member_quota=rng.choice((None, 1, 2)),
            hidden=rng.random() < 0.3,
        )
        if kind != COURSE:
            tenant.add(group, rng.sample(PEOPLE, rng.randint(0, 4)))
            group.admins = {member: rng.random() < 0.5 for member in group.members if rng.random() < 0.4}


def state_of(tenant):
    """Everything about every group, by its English name."""
    return {
        group.en_name: {
            "ko_name": group.ko_name,
            "type": group.type_id,
            "parent": tenant.groups[group.parent_id].en_name if group.parent_id else None,
            "quotas": (group.group_quota, group.member_quota),
            "hidden": group.hidden,
            "members": set(group.members),
            "admins": group.admins,
            "agents": group.agents,
            "permissions": group.permissions,
            "models": group.models,
        }
        for group in tenant.groups.values()
    }


class Editor:
    """Edits entries; `entries` is the file, `outside` holds ids that were taken out of it."""

    def __init__(self, entries, rng):
        self.rng = rng
        self.entries = {entry.en_name: entry for entry in entries}
        self.outside = set()

    def edited(self, times):
        self._leave_out()
        edits = (
            self._rename, self._swap_names, self._limits, self._place, self._retype, self._create, self._delete,
            self._members, self._course, self._campus, self._administrators, self._agents, self._models, self._hide,
        )  # fmt: skip
        for _ in range(times):
            self.rng.choice(edits)()
        return [replace(entry, where="") for entry in self.entries.values()]

    def _leave_out(self):
        for name, entry in list(self.entries.items()):
            if self._type(name) is None and self.rng.random() < 0.3:
                self.outside.add(entry.id)
                del self.entries[name]

    def _rename(self):
        name = self._pick()
        self._set(name, ko_name=f"이름 {self.rng.randint(0, 99)} {name}")
        if self.entries[name].id is not None:
            self._called(name, f"Name {self.rng.randint(0, 99)} {name}")

    def _swap_names(self):
        one, other = self._pick(), self._pick()
        if one != other and None not in (self.entries[one].id, self.entries[other].id):
            ko = self.entries[one].ko_name, self.entries[other].ko_name
            self._called(one, "swapping")
            self._called(other, one)
            self._called("swapping", other)
            self._set(other, ko_name=ko[self.rng.randint(0, 1)])
            self._set(one, ko_name=ko[1] if self.entries[other].ko_name == ko[0] else ko[0])

    def _limits(self):
        quotas = {"group_quota": self.rng.choice((None, 0, 5, 5, 70)), "member_quota": self.rng.choice((None, 1, 3))}
        self._set(self._pick(), **quotas)

    def _place(self):
        name = self._pick()
        if self._type(name) not in TREES:
            return
        below = self._subtree(name)
        places = [
            other
            for other in self.entries
            if other not in below
            and not self.entries[other].delete
            and self._type(other) == self._type(name)
            and self._depth(other) + 1 + self._height(name) <= DEPTH_MAX
        ]
        self._set(name, parent=self.rng.choice([None, *places]))

    def _retype(self):
        """A whole tree changes its type, or a group that stands alone does."""
        name = self._pick()
        if self._type(name) in TREES:
            kind = next(kind for kind in TREES if kind != self._type(name))
            self._set(name, parent=None)
            for member in self._subtree(name):
                self._set(member, type_id=kind)
        elif self._type(name) is None:
            self._set(name, type_id=self.rng.choice(TREES))

    def _create(self):
        name = f"New {self.rng.randint(0, 9)}"
        if name in self.entries:
            return
        kind = self.rng.choice((None, 1, 4))
        self.entries[name] = Wanted(en_name=name, ko_name=f"새 {name}", type_id=kind or UNSET, group_quota=7)
        places = [
            other
            for other in self.entries
            if other != name
            and self._type(other) == kind
            and self._depth(other) < DEPTH_MAX
            and not self.entries[other].delete
        ]
        if kind and places:
            self._set(name, parent=self.rng.choice(places))

    def _delete(self):
        name = self._pick()
        if self.entries[name].id not in (None, 6) and self._type(name) != CAMPUS and self._subtree(name) == {name}:
            self.entries[name] = Wanted(id=self.entries[name].id, en_name=name, delete=True)
            if self.rng.random() < 0.5:
                # Its name goes to another group.
                other = self._pick()
                if self.entries[other].id is not None:
                    gone = self.entries.pop(name)
                    self.entries[f"gone {gone.id}"] = replace(gone, en_name=UNSET)
                    self._called(other, name)

    def _members(self):
        name = self._pick()
        if self._type(name) not in (COURSE, CAMPUS):
            self._put(name, self.rng.sample(PEOPLE, self.rng.randint(0, 5)))

    def _course(self):
        self._deal(COURSE, self.rng.sample(PEOPLE, 3))

    def _campus(self):
        """Everybody who is on a campus is on one afterwards."""
        here = {member for name in self._of(CAMPUS) for member in given(self.entries[name].members, ())}
        self._deal(CAMPUS, here)

    def _deal(self, kind, people):
        names = self._of(kind)
        if names:
            places = {member: self.rng.choice(names) for member in people}
            for name in names:
                self._put(name, [member for member in places if places[member] == name])

    def _put(self, name, members):
        entry = self.entries[name]
        admins = given(entry.administrators, {})
        kept = {member: below for member, below in admins.items() if member in members}
        self._set(name, members=tuple(members), administrators=kept)

    def _administrators(self):
        name = self._pick()
        members = given(self.entries[name].members, ())
        chosen = [member for member in members if self.rng.random() < 0.5]
        self._set(name, administrators={member: self.rng.choice((True, False)) for member in chosen})

    def _agents(self):
        chosen = self.rng.sample(sorted(AGENTS), 2)
        self._set(self._pick(), agents={agent: self.rng.choice((True, False, None)) for agent in chosen})

    def _models(self):
        chosen = self.rng.sample(range(1, 6), 2)
        self._set(self._pick(), models={model: self.rng.choice((True, False)) for model in chosen})

    def _hide(self):
        self._set(self._pick(), admin_only=self.rng.choice((True, False)))

    def _pick(self):
        return self.rng.choice([name for name, entry in self.entries.items() if not entry.delete])

    def _set(self, name, **fields):
        self.entries[name] = replace(self.entries[name], **fields)

    def _called(self, name, new):
        """Rename, also where other entries speak of it; entries with ids stand under their names as parents."""
        if new in self.entries:
            return
        self.entries[new] = replace(self.entries.pop(name), en_name=new)
        for other, entry in self.entries.items():
            if entry.parent == name:
                self._set(other, parent=new)

    def _of(self, kind):
        return [name for name, entry in self.entries.items() if not entry.delete and self._type(name) == kind]

    def _type(self, name):
        return given(self.entries[name].type_id, None)

    def _parent(self, name):
        """The name of the entry above."""
        parent = given(self.entries[name].parent, None)
        if isinstance(parent, int):
            return next(name for name, entry in self.entries.items() if entry.id == parent)
        return parent

    def _depth(self, name):
        parent = self._parent(name)
        return 0 if parent is None else 1 + self._depth(parent)

    def _children(self, name):
        return [other for other, entry in self.entries.items() if not entry.delete and self._parent(other) == name]

    def _height(self, name):
        return max((1 + self._height(child) for child in self._children(name)), default=0)

    def _subtree(self, name):
        return {name}.union(*map(self._subtree, self._children(name)))
