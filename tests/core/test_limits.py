"""Whose account a call draws on."""

import pytest

from proxy.core.facts import Facts
from proxy.core.limits import Budget, Counts, Draw, Each, Rate
from proxy.core.windows import Calendar, Per


@pytest.mark.parametrize(
    ("each", "named"), [(Each.MODEL, "Search"), (Each.SUITE, "Search"), (Each.TOOL, "Search.Search")]
)
def test_a_name_that_is_spelt_otherwise_has_no_account_of_its_own(each, named):
    spelt = [Facts("red", "k", "mcp", name, name, name) for name in ("search", "Search", "SEARCH")]
    budget = Budget("b", 5, Calendar(Per.DAY), each=each, amounts={named: 7})
    rate = Rate("r", Counts.REQUESTS, 5, 60.0, each=each, amounts={named: 7})
    assert len({budget.group(facts) for facts in spelt}) == 1
    assert len({rate.group(Draw(facts, "m")) for facts in spelt}) == 1
    for facts in spelt:
        assert budget.amount_for(budget.group(facts)) == 7
        assert rate.amount_for(rate.group(Draw(facts, "m"))) == 7


def test_teams_and_keys_are_apart_as_they_are_written():
    budget = Budget("b", 5, Calendar(Per.DAY), each=Each.KEY, amounts={"A": 7})
    groups = [budget.group(Facts("red", name, "chat")) for name in ("a", "A")]
    assert groups[0] != groups[1]
    assert [budget.amount_for(group) for group in groups] == [5, 7]
