from hypothesis import given
from hypothesis import strategies as st

from proxy.groups.places import bottom_up, placing, ring, top_down


def test_parents_come_before_children_and_children_before_parents():
    parents = {1: None, 2: 3, 3: 1, 4: 99}
    assert list(top_down(parents)) == [1, 4, 3, 2]
    assert bottom_up(parents, {1, 2, 3}) == [2, 3, 1]


def test_a_ring_is_found():
    assert ring({1: None, 2: 1}) is None
    assert ring({1: 2, 2: 3, 3: 1, 4: 1}) in (1, 2, 3)
    assert ring({1: 1}) == 1


def test_a_chain_turned_over_is_moved_from_its_new_top():
    now, then = {1: None, 2: 1, 3: 2}, {1: 2, 2: 3, 3: None}
    assert placing(now, then, set(), set()).order == (3, 2, 1)


def test_a_group_that_changes_its_type_and_those_below_leave_their_tree_first():
    now = {1: None, 2: 1, 3: 2}
    assert placing(now, now, {2}, set()).lifts == (2, 3)
    assert placing(now, now, {2}, set()).order == (2, 3)


def test_a_subtree_that_would_hang_too_deep_on_its_way_is_taken_apart_first():
    """1 goes below 4 before 3, which hangs below 1, gets to its place; for a moment 3 would be at depth 3."""
    now = {1: None, 2: 1, 3: 2, 4: None, 5: None, 6: 5}
    then = {1: 4, 2: 1, 3: 6, 4: None, 5: None, 6: 5}
    placed = placing(now, then, set(), set())
    assert (placed.lifts, placed.order) == ((3,), (1, 3))
    _replay(now, then, placed, bound=2)


def test_a_group_that_goes_is_taken_from_a_subtree_too_where_it_would_hang_too_deep():
    now = {1: None, 2: 1, 3: 2, 4: None, 5: 4}
    then = {1: 4, 4: None, 5: 4, 2: 1}
    assert placing(now, then, set(), {3}).lifts == (3,)


TREES = st.lists(st.one_of(st.none(), st.integers(0, 30)), min_size=1, max_size=9)


def _tree(draws):
    """Parents of groups 0, 1, …, each above its children by number."""
    return {ident: None if draw is None or not ident else draw % ident for ident, draw in enumerate(draws)}


def _renamed(tree, order):
    return {order[ident]: None if parent is None else order[parent] for ident, parent in tree.items()}


def _depth(parents, ref):
    depth, seen = 0, set()
    while (ref := parents[ref]) is not None:
        assert ref not in seen, "a ring"
        seen.add(ref)
        depth += 1
    return depth


def _replay(now, then, placed, bound):
    parents = dict(now)
    for ref, parent in [*((ref, None) for ref in placed.lifts), *((ref, then[ref]) for ref in placed.order)]:
        assert parent is None or parent in parents
        parents[ref] = parent
        assert max(_depth(parents, other) for other in parents) <= bound
    assert parents == {**now, **then}


@given(TREES, TREES, st.randoms(use_true_random=False), st.sets(st.integers(0, 8)))
def test_the_tree_is_sound_after_every_step(before, after, rng, retyped):
    size = len(before)
    after = (after * size)[: size + 2]
    order = list(range(len(after)))
    rng.shuffle(order)
    now, then = _tree(before), _renamed(_tree(after), order)
    bound = max(max(_depth(tree, ref) for ref in tree) for tree in (now, then))
    _replay(now, then, placing(now, then, retyped & now.keys(), set()), bound)
