"""Ids: what they look like, that none comes twice, and that they sort by time."""

from itertools import pairwise
from uuid import UUID

from proxy.server.ids import Ids

NOW_S = 1_800_000_000.25


def test_an_id_is_a_uuid_of_version_7_of_its_instant():
    made = Ids().new(NOW_S)
    read = UUID(made)
    assert (str(read), read.version, read.variant) == (made, 7, "specified in RFC 4122")
    assert read.int >> 80 == int(NOW_S * 1000)


def test_ids_sort_by_time_within_a_second_and_beyond():
    ids = Ids()
    made = [ids.new(NOW_S + at / 1000) for at in range(5000)]
    assert made == sorted(set(made))


def test_an_id_does_not_tell_how_many_there_were_before():
    ids = Ids()
    made = [UUID(ids.new(NOW_S)).int for _ in range(100)]
    steps = {later - earlier for earlier, later in pairwise(made)}
    assert len(steps) > 90, "each step is another one"


def test_a_clock_that_steps_back_begins_anew():
    ids = Ids()
    later, earlier = ids.new(NOW_S), ids.new(NOW_S - 3600)
    assert UUID(earlier).int >> 80 == int((NOW_S - 3600) * 1000)
    assert earlier < later


def test_two_processes_share_no_id_of_one_instant():
    assert len({Ids().new(NOW_S) for _ in range(1000)}) == 1000
