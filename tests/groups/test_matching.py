import pytest

from proxy.config.problem import Problems
from proxy.groups.matching import match
from proxy.groups.records import Overview
from proxy.groups.wanted import Wanted


def rows(*given):
    """Groups as the overview tells them: id, English name, type, parent."""
    return {
        ident: Overview(ident, f"{name} ko", name, kind, parent, None, None, 0, 20, 20, 0)
        for ident, name, kind, parent in given
    }


TREE = rows((1, "A", 1, None), (2, "B", 1, 1), (3, "C", 4, None))


def test_a_group_is_found_by_id_else_by_its_english_name_else_it_is_new():
    renamed, named = Wanted(id=1, en_name="X"), Wanted(en_name="B")
    new, going, gone = Wanted(en_name="N", ko_name="n"), Wanted(id=3, delete=True), Wanted(id=9, delete=True)
    matched = match([renamed, named, new, going, gone], TREE)
    assert (matched.found, matched.new) == ({1: renamed, 2: named}, {"N": new})
    assert (matched.going, matched.gone) == ({3: going}, (gone,))
    assert set(matched.parents) == {1, 2, "N"}


def test_a_new_group_may_take_the_name_of_one_that_is_renamed():
    matched = match([Wanted(id=1, en_name="X", ko_name="x"), Wanted(en_name="A", ko_name="A ko")], TREE)
    assert (list(matched.found), list(matched.new)) == ([1], ["A"])


def test_a_parent_is_named_as_the_file_names_it_else_as_the_service_does():
    swapped = [Wanted(id=1, en_name="B"), Wanted(id=2, en_name="A", parent="B")]
    assert match(swapped, TREE).parents[2] == 1
    assert match([Wanted(en_name="N", ko_name="n", type_id=1, parent="B")], TREE).parents["N"] == 2


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([Wanted(id=9)], "there is no group 9, or it is not delegated to this account"),
        ([Wanted(en_name="N")], "needs a ko_name"),
        ([Wanted(id=1, en_name="C")], "en_name: 'C' is the name of group 3; give id: 3 if that is the group you mean"),
        ([Wanted(en_name="N", ko_name="C ko")], "ko_name: 'C ko' is the name of group 3"),
        ([Wanted(id=1, parent="B")], "would stand below itself"),
        ([Wanted(id=2, parent="Bee")], "parent: there is no group 'Bee'"),
        ([Wanted(id=2, parent=77)], "parent: there is no group 77"),
        ([Wanted(id=2, parent="C")], "C is of type 4, and this one of 1"),
        ([Wanted(id=1, type_id=None)], "cannot take a group's type away"),
        ([Wanted(id=1, type_id=4)], "its type differs from that of “B” (2) below it, which is not in the file"),
        ([Wanted(id=1, type_id=4), Wanted(id=2, type_id=4)], "say that it stands below 1"),
        ([Wanted(id=1, delete=True)], "“B” (2) is below it and not in the file"),
        ([Wanted(id=1, delete=True), Wanted(id=2)], "parent: group 1 is deleted"),
    ],
)
def test_what_cannot_come_true_is_a_problem(entries, says):
    with pytest.raises(Problems) as caught:
        match(entries, TREE)
    assert says in str(caught.value)


def test_a_tree_that_changes_its_type_says_how_it_stands():
    matched = match([Wanted(id=1, type_id=4), Wanted(id=2, type_id=4, parent="A")], TREE)
    assert (matched.types[2], matched.parents[2]) == (4, 1)


def test_a_parent_out_of_sight_is_left_where_it_is():
    """A group administrator does not see what is above the groups delegated to them."""
    matched = match([Wanted(id=2, parent=1)], rows((2, "B", 1, 1)))
    assert matched.parents == {2: 1}
