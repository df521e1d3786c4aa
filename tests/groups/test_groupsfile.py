import pytest

from proxy.config.problem import Problems
from proxy.groups.groupsfile import file_text, read_file
from proxy.groups.wanted import UNSET, Wanted

WHOLE = """
tenant: https://tenant.example
groups:
  - id: 2
    ko_name: 공학부
    en_name: Engineering
    type: 1
    parent: null
    group_quota: 5000
    member_quota: null
    admin_only: true
    agents: {law_in_data: false, korea_in_data: null}
    models: {5: false}
    administrators: [{member: 102, include_descendants: true}, {member: bora@example.org}]
    members: people.csv
  - {id: 9, delete: true}
"""


def read(folder, text, people=None):
    path = folder / "groups.yaml"
    path.write_text(text, "utf-8")
    if people is not None:
        (folder / "people.csv").write_text(people, "utf-8")
    return read_file(path)


def test_every_field_is_read(tmp_path):
    file = read(tmp_path, WHOLE, "id,email\n101,\n,dana@example.org\n")
    assert file.tenant == "https://tenant.example"
    assert file.groups == (
        Wanted(
            where=f"{tmp_path}/groups.yaml:4:5",
            id=2,
            ko_name="공학부",
            en_name="Engineering",
            type_id=1,
            parent=None,
            group_quota=5000,
            member_quota=None,
            admin_only=True,
            agents={"law_in_data": False, "korea_in_data": None},
            models={5: False},
            administrators={102: True, "bora@example.org": None},
            members=(101, "dana@example.org"),
        ),
        Wanted(where=f"{tmp_path}/groups.yaml:16:5", id=9, delete=True),
    )


def test_what_is_left_out_is_not_null(tmp_path):
    (wanted,) = read(tmp_path, "groups: [{id: 2}]").groups
    assert [wanted.parent, wanted.group_quota, wanted.members, wanted.administrators] == [UNSET] * 4


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{id: 2, quota: 3}", "1:18: groups.0.quota: is not known; did you mean group_quota?"),
        ("{id: 2, group_quota: 1.5}", "1:18: groups.0.group_quota: input should be a valid integer"),
        ("{id: 2, group_quota: -1}", "1:18: groups.0.group_quota: input should be greater than or equal to 0"),
        ("{id: 2, group_quota: '5'}", "1:18: groups.0.group_quota: input should be a valid integer"),
        ("{id: 2, admin_only: 1}", "1:18: groups.0.admin_only: input should be a valid boolean"),
        ("{id: true}", "groups.0.id: input should be a valid integer"),
        ("{ko_name: a}", "has neither id nor en_name"),
        ("{en_name: a, ko_name: }", "groups.0.ko_name: is empty; leave it out"),
        ("{en_name: a, delete: true}", "a group is deleted by its id"),
        ("{id: 2}, {id: 2}", "id: 2 stands at"),
        ("{id: 2, en_name: A}, {id: 3, en_name: A}", "en_name: 'A' stands at"),
        ("{id: 2, administrators: [{person: 3}]}", "person: is not known; known are include_descendants, member"),
        ("{id: 2, members: people.csv}", "people.csv: cannot be read"),
        ("{id: 2, models: {x: true}}", "groups.0.models.x"),
    ],
)
def test_problems_are_told_with_their_places(tmp_path, entry, says):
    with pytest.raises(Problems) as caught:
        read(tmp_path, f"groups: [{entry}]")
    assert says in str(caught.value)


def test_all_problems_are_told_at_once(tmp_path):
    with pytest.raises(Problems) as caught:
        read(tmp_path, "groups: [{id: 2, quota: 3}, {id: x}, {id: 4, delete: maybe}]\ntenants: x")
    assert len(caught.value.problems) == 4


ODD = (
    "true",
    "No",
    "~",
    "- a",
    "a: b",
    "#x",
    " a ",
    "5",
    "1e3",
    'quote " it',
    "줄\n바꿈",
    "“curly”",
    "null",
    "2026-01-01",
    "=1+1",
)


def test_what_is_written_is_read_back(tmp_path):
    groups = tuple(
        Wanted(
            id=number,
            ko_name=f"{name}ko",
            en_name=name,
            parent=name if number % 2 else None,
            group_quota=number or None,
            admin_only=bool(number % 2),
            agents={name: None},
            models={3: True},
            administrators={5: None, "a@example.org": False},
            members=(7, 9) if number == 1 else UNSET,
        )
        for number, name in enumerate(ODD, start=1)
    )
    (tmp_path / "people.csv").write_text("id\n7\n9\n")
    read_back = read(tmp_path, file_text("http://127.0.0.1:1", groups, {1: "people.csv"}))
    assert read_back.tenant == "http://127.0.0.1:1"
    assert [{name: getattr(row, name) for name in Wanted.__slots__ if name != "where"} for row in read_back.groups] == [
        {name: getattr(row, name) for name in Wanted.__slots__ if name != "where"} for row in groups
    ]
    assert read(tmp_path, file_text("http://a", (), {})).groups == ()
