"""The file of groups: YAML with one entry for each group, members in CSV files beside it.

Everything wrong is reported at once, as `file:line:col`. Unknown words are problems, as a misspelt quota must not
become no quota.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proxy.config.problem import Problem, Problems, did_you_mean
from proxy.config.yamlfile import YamlFile, read_yaml
from proxy.groups.rows import read_members
from proxy.groups.wanted import UNSET, Person, Unset, Wanted

BYTES_MAX: Final = 16 * 1024 * 1024
"""Two thousand groups take about half a megabyte."""

Id = Annotated[int, Field(strict=True, gt=0)]
Text = Annotated[str, Field(strict=True, min_length=1)]
Quota = Annotated[int, Field(strict=True, ge=0)]
Switch = Annotated[bool, Field(strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AdministratorModel(_Model):
    member: Id | Text
    include_descendants: Switch | None = None


class GroupModel(_Model):
    id: Id | None = None
    delete: Switch = False
    ko_name: Text | None = None
    en_name: Text | None = None
    type: Id | None = None
    parent: Id | Text | None = None
    group_quota: Quota | None = None
    member_quota: Quota | None = None
    admin_only: Switch = False
    agents: dict[Text, Switch | None] = Field(default_factory=dict)
    models: dict[Id, Switch] = Field(default_factory=dict)
    administrators: tuple[AdministratorModel, ...] = ()
    members: Text | None = None


class FileModel(_Model):
    """tenant: where the file belongs; it is applied nowhere else."""

    tenant: Text | None = None
    groups: tuple[GroupModel, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupsFile:
    tenant: str | None
    groups: tuple[Wanted, ...]


def read_file(path: Path) -> GroupsFile:
    """The file and its lists of members. Raises Problems."""
    file = read_yaml(path, BYTES_MAX)
    try:
        model = FileModel.model_validate(file.tree)
    except ValidationError as error:
        raise Problems([*_misfits(file, error)]) from error
    problems: list[Problem] = []
    groups = tuple(_wanted(file, path.parent, index, entry, problems) for index, entry in enumerate(model.groups))
    problems += _twice(groups)
    if problems:
        raise Problems(problems)
    return GroupsFile(model.tenant, groups)


def file_text(tenant: str, groups: Sequence[Wanted], members: Mapping[int, str]) -> str:
    """The file for these groups. members: by group id, the CSV file as the entry names it."""
    lines = [
        "# Groups of members. `sluicegate groups plan` shows what applying this file would do.",
        "# What an entry leaves out is left alone, and so is a group without an entry; `delete: true` deletes one.",
        f"tenant: {_scalar(tenant)}",
        "groups:" if groups else "groups: []",
    ]
    for wanted in groups:
        fields = [f"{name}: {written}" for name, written in _fields(wanted, members)]
        lines += [f"  {'  ' if place else '- '}{text}" for place, text in enumerate(fields)]
    return "\n".join(lines) + "\n"


def _fields(wanted: Wanted, members: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """Names and values of one entry, as they are written."""
    plain: tuple[tuple[str, Any], ...] = (
        ("id", UNSET if wanted.id is None else wanted.id),
        ("delete", wanted.delete or UNSET),
        ("ko_name", wanted.ko_name),
        ("en_name", wanted.en_name),
        ("type", wanted.type_id),
        ("parent", wanted.parent),
        ("group_quota", wanted.group_quota),
        ("member_quota", wanted.member_quota),
        ("admin_only", wanted.admin_only),
        ("agents", wanted.agents),
        ("models", wanted.models),
    )
    for name, value in plain:
        if not isinstance(value, Unset):
            yield name, _scalar(value) if not isinstance(value, Mapping) else _flow(value)
    if not isinstance(wanted.administrators, Unset):
        rows = [
            _flow({"member": person} | ({} if below is None else {"include_descendants": below}))
            for person, below in wanted.administrators.items()
        ]
        yield "administrators", f"[{', '.join(rows)}]"
    if wanted.id is not None and wanted.id in members:
        yield "members", _scalar(members[wanted.id])


def _flow(value: Mapping[Any, Any]) -> str:
    return "{" + ", ".join(f"{_scalar(key)}: {_scalar(item)}" for key, item in value.items()) + "}"


_PLAIN: Final = re.compile(r"[A-Za-z가-힣][\w가-힣]*(?:[ ./-][\w가-힣]+)*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""What some reader of YAML takes for something else than text."""


def _scalar(value: Any) -> str:
    """A value in YAML; JSON is YAML, and plain words need no quotes."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=not (isinstance(value, str) and value.isprintable()))


def _wanted(file: YamlFile, folder: Path, index: int, entry: GroupModel, problems: list[Problem]) -> Wanted:
    said = entry.model_fields_set

    def unless_left_out(name: str, value: Any) -> Any:
        return value if name in said else UNSET

    def problem(name: str, what: str, do: str = "") -> None:
        problems.append(Problem(file.place(["groups", index, name]), f"groups.{index}.{name}: {what}", do))

    members: tuple[Person, ...] | Unset = UNSET
    if entry.members is not None:
        try:
            members = read_members(folder / entry.members)
        except Problems as error:
            problems += error.problems
    if entry.delete and entry.id is None:
        problem("delete", "a group is deleted by its id", "add its id")
    if entry.id is None and entry.en_name is None:
        problem("id", "the entry has neither id nor en_name", "name the group")
    for name in ("ko_name", "en_name", "members"):
        if name in said and getattr(entry, name) is None:
            problem(name, "is empty", "leave it out")
    return Wanted(
        where=file.place(["groups", index]),
        id=entry.id,
        delete=entry.delete,
        ko_name=unless_left_out("ko_name", entry.ko_name),
        en_name=unless_left_out("en_name", entry.en_name),
        type_id=unless_left_out("type", entry.type),
        parent=unless_left_out("parent", entry.parent),
        group_quota=unless_left_out("group_quota", entry.group_quota),
        member_quota=unless_left_out("member_quota", entry.member_quota),
        admin_only=unless_left_out("admin_only", entry.admin_only),
        agents=unless_left_out("agents", entry.agents),
        models=unless_left_out("models", entry.models),
        administrators=unless_left_out(
            "administrators", {row.member: row.include_descendants for row in entry.administrators}
        ),
        members=members,
    )


def _twice(groups: Sequence[Wanted]) -> Iterator[Problem]:
    """Two entries for one group, or two groups of one name."""
    for name in ("id", "en_name", "ko_name"):
        first: dict[Any, str] = {}
        for wanted in groups:
            value = getattr(wanted, name)
            if value is None or isinstance(value, Unset) or (wanted.delete and name != "id"):
                continue
            if (where := first.setdefault(value, wanted.where)) != wanted.where:
                yield Problem(wanted.where, f"{name}: {value!r} stands at {where} already", "take one of them out")


_TRIED: Final = frozenset({"constrained-int", "constrained-str", "int", "str", "[key]"})
"""What the checker adds to a place: the type of a union it tried, or that a key is meant."""


def _misfits(file: YamlFile, error: ValidationError) -> Iterator[Problem]:
    """One problem for each place; a union has as many opinions as members."""
    told: set[str] = set()
    for fault in error.errors(include_url=False):
        # A union names the type it tried as a last step; the place is the value itself.
        steps = tuple(step for step in fault["loc"] if step not in _TRIED)
        path = ".".join(map(str, steps))
        if path in told:
            continue
        told.add(path)
        if fault["type"] == "extra_forbidden":
            model = FileModel if len(steps) == 1 else AdministratorModel if "administrators" in steps else GroupModel
            yield Problem(file.place(steps), f"{path}: is not known", did_you_mean(str(steps[-1]), model.model_fields))
        else:
            message = fault["msg"]
            yield Problem(file.place(steps), f"{path}: {message[0].lower()}{message[1:]}")
