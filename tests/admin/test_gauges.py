from proxy.admin.gauges import gauge
from proxy.core.accounts import Accounts
from proxy.core.facts import Facts
from proxy.core.limits import Budget, Each, Match
from proxy.core.windows import Calendar, Per, Sliding
from proxy.observe.metrics import Metrics

CREDIT = 10**8
DAY = Calendar(Per.DAY)


def lines(metrics):
    text = metrics.render("")[0].decode()
    return {line for line in text.splitlines() if line.startswith("sluicegate_budget_") and "_warnings" not in line}


def test_budgets_of_all_and_of_teams_are_gauges_and_those_of_keys_are_not():
    accounts = Accounts(
        [
            Budget("all", 100 * CREDIT, Calendar(Per.TOTAL)),
            Budget("red", 40 * CREDIT, Sliding(3600.0), Match(team="red")),
            Budget("each", 10 * CREDIT, DAY, each=Each.TEAM),
            Budget("keys", 10 * CREDIT, DAY, each=Each.KEY),
        ]
    )
    accounts.hold("h", Facts("red", "k", "chat"), 4 * CREDIT, 100.0)
    metrics = Metrics(process=False)
    gauge(accounts, metrics, 200.0)
    assert lines(metrics) == {
        'sluicegate_budget_limit_credits{budget="all",team="_all"} 100.0',
        'sluicegate_budget_limit_credits{budget="red",team="red"} 40.0',
        'sluicegate_budget_limit_credits{budget="each",team="red"} 10.0',
        'sluicegate_budget_remaining_credits{budget="all",team="_all"} 96.0',
        'sluicegate_budget_remaining_credits{budget="red",team="red"} 36.0',
        'sluicegate_budget_remaining_credits{budget="each",team="red"} 6.0',
        'sluicegate_budget_reserved_credits{budget="all",team="_all"} 4.0',
        'sluicegate_budget_reserved_credits{budget="red",team="red"} 4.0',
        'sluicegate_budget_reserved_credits{budget="each",team="red"} 4.0',
        'sluicegate_budget_window_seconds{budget="red",team="red"} 3600.0',
        'sluicegate_budget_window_seconds{budget="each",team="red"} 86400.0',
        'sluicegate_budget_reset_timestamp_seconds{budget="red",team="red"} 3700.0',
        'sluicegate_budget_reset_timestamp_seconds{budget="each",team="red"} 86400.0',
    }
    gauge(Accounts(), metrics, 200.0)
    assert lines(metrics) == set()
