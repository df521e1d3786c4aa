"""The alerts: each says what to do, fires in the scenario it is for, and is silent in the others."""

import json
import re
import subprocess
from dataclasses import dataclass, field

import pytest

from tests.grafana.queries import GRAFANA, RULES

RUNBOOK = (GRAFANA.parent / "docs/operations.md").read_text("utf-8")
BUDGET = 'team="red",budget="month",job="sluicegate",instance="a"'
OWN = 'job="sluicegate",instance="a"'
MONTH_S = 30 * 86400


def budget(spent, left, limit=10_000):
    """A budget of a month, of which so much goes each minute. spent, left: in promtool's words for series."""
    return {
        f"sluicegate_budget_spent_credits_total{{{BUDGET}}}": spent,
        f"sluicegate_budget_remaining_credits{{{BUDGET}}}": left,
        f"sluicegate_budget_limit_credits{{{BUDGET}}}": f"{limit}x900",
        f"sluicegate_budget_window_seconds{{{BUDGET}}}": f"{MONTH_S}x900",
        f"sluicegate_budget_reset_timestamp_seconds{{{BUDGET}}}": f"{MONTH_S}x900",
    }


def own(name, values, labels=""):
    return {f"sluicegate_{name}{{{OWN}{',' if labels else ''}{labels}}}": values}


@dataclass
class Scenario:
    """Series by minutes, and what fires at the end of them."""

    name: str
    minutes: int
    series: dict
    fires: set = field(default_factory=set)


# Of 10,000 credits in 30 days an even pace spends 0.23 a minute.
CALM = (
    budget("0+0.2x900", "5500x900")
    | own("unpriced_requests_total", "3x900", 'route="chat"')
    | own("ledger_drift_credits", "5x900")
    | own("upstream_balance_credits", "1000x900")
    | own("upstream_errors_total", "0+1x900", 'route="chat",reason="503"')
    | own("requests_total", "0+60x900", 'team="red",route="chat",code="200"')
    | own("breakers_open", "0x900", 'what="suite"')
    | own("upstream_retries_total", "0+0.1x900", 'reason="429"')
    | own("upstream_limit_used_ratio", "0.5x900", 'limit="member"')
    | own("operations_total", "0x900", 'kind="video",outcome="expired"')
    | own("store_up", "1x900", 'store="ledger"')
    | own("policy_last_reload_successful", "1x900")
    | own("overhead_seconds_bucket", "0+60x900", 'route="chat",le="0.001"')
    | own("overhead_seconds_bucket", "0+60x900", 'route="chat",le="+Inf"')
    | own("overhead_seconds_count", "0+60x900", 'route="chat"')
    | {f"up{{{OWN}}}": "1x900"}
)

SCENARIOS = [
    Scenario("a calm day", 800, {}),
    Scenario("a loop that calls the dearest model", 60, budget("0+5x900", "9500x900"), {"SluicegateBudgetBurnsFast"}),
    Scenario("a fast hour of a budget that hardly moved", 60, budget("0+0.0001x900", "1x900", limit=1)),
    Scenario("half a day at seven times the pace", 720, budget("0+1.7x900", "8000x900"), {"SluicegateBudgetBurns"}),
    Scenario("a spike that is over", 75, budget("0+5x60 300x800", "9500x900")),
    Scenario("twice the pace, most of it gone", 500, budget("0+0.5x900", "4000x900"), {"SluicegateBudgetEndsEarly"}),
    Scenario("twice the pace, early in the month", 500, budget("0+0.5x900", "9000x900")),
    Scenario("used up, and nothing goes any more", 500, budget("9000x900", "0x900"), {"SluicegateBudgetExhausted"}),
    Scenario(
        "little left, and calls that may cost more",
        30,
        own("refusals_total", "0+1x900", 'team="red",reason="budget_exhausted"'),
        {"SluicegateBudgetRefuses"},
    ),
    Scenario(
        "a new model without a price",
        120,
        own("unpriced_requests_total", "0+1x900", 'route="chat"'),
        {"SluicegateCallsWithoutPrice"},
    ),
    Scenario("somebody else spends", 60, own("ledger_drift_credits", "50x900"), {"SluicegateLedgerDrift"}),
    Scenario("the ledger has too much", 60, own("ledger_drift_credits", "-50x900"), {"SluicegateLedgerDrift"}),
    Scenario(
        "the gateway fails",
        30,
        own("upstream_errors_total", "0+12x900", 'route="chat",reason="503"'),
        {"SluicegateUpstreamErrors"},
    ),
    Scenario("the gateway refuses bad calls", 30, own("upstream_errors_total", "0+12x900", 'route="chat",reason="422"')),
    Scenario("maintenance", 10, own("breakers_open", "1x900", 'what="suite"'), {"SluicegateBreakerOpen"}),
    Scenario("a member is paused for a moment", 10, own("breakers_open", "1x900", 'what="member"')),
    Scenario(
        "somebody else uses the member",
        30,
        own("upstream_retries_total", "0+2x900", 'reason="429"'),
        {"SluicegateGatewayRefusesForRate"},
    ),
    Scenario(
        "calls at the limit",
        30,
        own("upstream_limit_used_ratio", "0.95x900", 'limit="member"'),
        {"SluicegateLimitNearlyTaken"},
    ),
    Scenario(
        "a video that never ends",
        30,
        own("operations_total", "0+0x10 1+0x890", 'kind="video",outcome="expired"'),
        {"SluicegateOperationsExpire"},
    ),
    Scenario("it is gone", 5, {f"up{{{OWN}}}": "0x900"}, {"SluicegateDown"}),
    Scenario("the disk is full", 5, own("store_up", "0x900", 'store="ledger"'), {"SluicegateLedgerDown"}),
    Scenario("a misspelt policy", 5, own("policy_last_reload_successful", "0x900"), {"SluicegatePolicyRefused"}),
    Scenario("short of CPU", 30, own("overhead_seconds_bucket", "0+0x900", 'route="chat",le="0.001"')
        | own("overhead_seconds_bucket", "0+60x900", 'route="chat",le="0.1"'), {"SluicegateSlow"}),
]  # fmt: skip


def told(scenario):
    """One scenario as promtool reads it: what is not said is as on a calm day."""
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    return {
        "name": scenario.name,
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in (CALM | scenario.series).items()],
        "promql_expr_test": [
            {
                "expr": firing,
                "eval_time": f"{scenario.minutes}m",
                "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(scenario.fires)],
            }
        ],
    }


def test_rules_are_well_formed(promtool):
    done = subprocess.run(
        [promtool, "check", "rules", "--lint=all", GRAFANA / "alerts.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_configuration_is_well_formed(promtool):
    done = subprocess.run(
        [promtool, "check", "config", GRAFANA / "prometheus.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_in_its_scenario_and_in_no_other(promtool, tmp_path):
    file = tmp_path / "scenarios.yml"
    rules = str(GRAFANA / "alerts.yml")
    said = {"rule_files": [rules], "evaluation_interval": "1m", "tests": [told(one) for one in SCENARIOS]}
    file.write_text(json.dumps(said))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_scenario():
    assert {rule["alert"] for rule in RULES} == {name for one in SCENARIOS for name in one.fires}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_says_what_it_means_and_where_to_read_what_to_do(rule):
    assert rule["labels"]["severity"] in ("page", "ticket", "note")
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert (page, anchor) == ("docs/operations.md", rule["alert"].lower())
    assert re.search(rf"^#+ {rule['alert']}$\n\n\S", RUNBOOK, re.MULTILINE), rule["alert"]
