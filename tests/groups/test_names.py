from hypothesis import given
from hypothesis import strategies as st

from proxy.groups.names import Names, rename_order


def names(*pairs):
    return {ident: Names(ko, en) for ident, (ko, en) in enumerate(pairs, start=1)}


def test_a_name_is_free_before_another_takes_it():
    current = names(("a", "A"), ("b", "B"))
    wanted = {1: Names("b", "B"), 2: Names("c", "C")}
    assert list(rename_order(current, wanted, (), ())) == [(2, Names("c", "C")), (1, Names("b", "B"))]


def test_groups_in_a_ring_are_parked_under_their_id():
    current = names(("a", "A"), ("b", "B"))
    swapped = {1: Names("b", "A"), 2: Names("a", "B")}
    assert list(rename_order(current, swapped, (), ())) == [
        (2, Names("~2", "B")), (1, Names("b", "A")), (2, Names("a", "B")),
    ]  # fmt: skip


def test_a_group_that_goes_gives_its_name_to_one_that_comes():
    current = names(("a", "A"), ("b", "B"))
    assert list(rename_order(current, {}, [Names("a", "C")], [1, 2])) == [(1, Names("~1", "A"))]


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_no_two_groups_ever_bear_one_name_and_all_get_theirs(ko, en):
    current = {ident: Names(f"k{ident}", f"e{ident}") for ident in range(6)}
    wanted = {
        ident: Names(f"k{ko[ident]}", f"e{en[ident]}") for ident in range(6) if (ko[ident], en[ident]) != (ident, ident)
    }
    held = dict(current)
    for ident, new in rename_order(current, wanted, (), ()):
        others = [names for bearer, names in held.items() if bearer != ident]
        assert not any(new.ko == other.ko or new.en == other.en for other in others)
        held[ident] = new
    assert held == current | wanted
