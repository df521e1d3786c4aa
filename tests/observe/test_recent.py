from proxy.observe.recent import Recent


def test_only_the_last_ones_are_kept_newest_first():
    recent = Recent(kept=2)
    for number in range(4):
        recent.add(float(number), {"status": 200 + number})
    assert [(seen.number, seen.story["status"]) for seen in recent.since()] == [(4, 203), (3, 202)]
    assert [seen.number for seen in recent.since(3)] == [4]


def test_they_are_picked_by_their_fields():
    recent = Recent()
    recent.add(0.0, {"team": "red", "status": 200})
    recent.add(0.0, {"team": "blue", "status": 402, "reason": "budget_exhausted"})
    assert [seen.number for seen in recent.since(team="blue", status="402", route="")] == [2]
    assert recent.since(team="blue", status="200") == []
