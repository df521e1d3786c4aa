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
    return {line for line in text.splitlines() if line.startswith("sluicegate_budget_") and "_total" not in line}


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


def test_what_is_charged_to_a_budget_is_a_counter_that_no_window_sets_back():
    budget = Budget("each", 10 * CREDIT, DAY, each=Each.TEAM)
    accounts, metrics = Accounts([budget]), Metrics(process=False)
    gauge(accounts, metrics, 100.0, ["red", "blue"])
    for number, at_s in enumerate((100.0, 90_000.0)):
        accounts.hold(f"h{number}", Facts("red", "k", "chat"), 4 * CREDIT, at_s)
        accounts.end(f"h{number}", 3 * CREDIT)
    for _ in range(2):
        gauge(accounts, metrics, 90_000.0, ["red", "blue"])
    text = metrics.render("")[0].decode()
    assert 'sluicegate_budget_spent_credits_total{budget="each",team="red"} 6.0' in text
    assert 'sluicegate_budget_spent_credits_total{budget="each",team="blue"} 0.0' in text
    assert 'sluicegate_budget_remaining_credits{budget="each",team="red"} 7.0' in text
    assert 'sluicegate_budget_remaining_credits{budget="each",team="blue"} 10.0' in text


def test_new_accounts_do_not_count_again_what_their_windows_already_used():
    budget = Budget("all", 10 * CREDIT, DAY)
    accounts = Accounts([budget])
    accounts.spent(Facts("red", "k", "chat"), 3 * CREDIT, 100.0)
    assert accounts.flowed() == {}
