"""Readers: the room is used, and no team has more of it than another that wants some."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.readers import Readers

MOVES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.booleans()))


def test_a_team_that_comes_late_takes_places_of_the_one_that_has_most():
    readers = Readers()
    assert [readers.take("greedy", number, 4) for number in range(5)] == [None, None, None, None, 4]
    assert readers.take("late", 10, 4) == 3, "the newest goes: it has most left to read"
    assert readers.take("late", 11, 4) == 2
    assert readers.take("late", 12, 4) == 12
    assert len(readers) == 4


def test_no_room_is_no_place():
    assert Readers().take("a", 1, 0) == 1


@given(MOVES, st.integers(0, 6))
def test_the_room_is_used_and_shared_evenly(moves, room):
    readers: Readers[tuple[str, int]] = Readers()
    inside: dict[tuple[str, int], str] = {}
    for team, number, comes in moves:
        one = (team, number)
        if not comes:
            readers.leave(team, one)
            inside.pop(one, None)
        elif one not in inside:
            before = Counter(inside.values())
            inside[one] = team
            loser = readers.take(team, one, room)
            if loser is not None:
                assert sum(before.values()) == room
                assert before[loser[0]] == max(before.values(), default=0) or loser == one
                del inside[loser]
            if loser == one:
                assert before[team] + 1 >= max(before.values(), default=0)
        assert len(readers) == len(inside) <= room
