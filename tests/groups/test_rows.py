import pytest

from proxy.config.problem import Problems
from proxy.groups.records import Candidate
from proxy.groups.rows import members_text, read_members


def test_ids_count_where_there_are_some_and_nobody_is_read_twice(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('\ufeffid,email,name\n101,ada@example.org,Ada\n,bora@example.org,\n101,,"x, y"\n', "utf-8")
    assert read_members(path) == (101, "bora@example.org")


def test_what_is_written_is_read_back(tmp_path):
    path = tmp_path / "people.csv"
    people = [
        Candidate(7, 'Kim, "J"', "k@example.org", False, "already_member"),
        Candidate(3, "김", "x@y", False, None),
    ]
    path.write_text(members_text(people), "utf-8")
    assert read_members(path) == (3, 7)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ":1: the first line names no column id or email"),
        ("name\nAda\n", ":1: the first line names no column id or email"),
        ("id\n1\nx\n1.5\n", ":3: has neither an id, a whole number, nor an address"),
        ("email\nada\n", ":2: has neither"),
        ('id\n"1\n', "is not CSV"),
    ],
)
def test_problems_are_told_with_their_lines(tmp_path, text, says):
    path = tmp_path / "people.csv"
    path.write_text(text)
    with pytest.raises(Problems) as caught:
        read_members(path)
    assert says in str(caught.value)


def test_a_file_that_is_no_text_is_a_problem(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"id\n\xff\n")
    with pytest.raises(Problems, match="UTF-8"):
        read_members(path)
