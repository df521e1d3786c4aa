"""The dashboard as it is shipped: the rules of Grafana's own linter, and nothing misspelt."""

import json
import re
from collections import Counter

import pytest

from grafana.build import FILE, NOT_CHARTED, text
from tests.grafana.queries import GRAFANA, KNOWN, PANELS, QUERIES, RULES, metrics

DASHBOARD = json.loads(FILE.read_text("utf-8"))
SHOWN = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def test_the_file_is_what_the_table_says():
    """If this fails: python -m grafana.build."""
    assert FILE.read_text("utf-8") == text()


def test_budgets_and_how_long_they_last_come_first():
    assert next(panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row") == "Budgets"
    assert "lasts" in [target["legendFormat"] for target in SHOWN[1]["targets"]]


def test_a_copy_can_be_put_anywhere():
    assert DASHBOARD["id"] is None
    assert DASHBOARD["uid"] == "sluicegate"
    assert DASHBOARD["editable"] is False
    assert DASHBOARD["schemaVersion"] <= 42


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: panel["title"])
def test_every_panel_says_what_it_shows_in_which_unit_from_the_chosen_source(panel):
    assert re.fullmatch(r"[A-Z].+", panel["title"])
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["targets"]
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        assert target["expr"].strip()
        assert target["legendFormat"]
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize(("title", "expr"), QUERIES)
def test_every_query_is_about_the_chosen_proxies(title, expr):
    for selector in re.findall(r"\b(?:sluicegate|process)_[a-z_]+(\{[^}]*\})?", expr):
        assert 'job=~"$job"' in selector, title
        assert 'instance=~"$instance"' in selector, title


@pytest.mark.parametrize(("title", "expr"), QUERIES)
def test_rates_are_over_an_interval_that_fits_the_scrapes(title, expr):
    for function, window in re.findall(r"\b(rate|increase)\([^\[]+\[([^\]]+)\]", expr):
        assert window in ("$__rate_interval", "$__range", "6h"), (title, function)
    for name in re.findall(r"\bsluicegate_[a-z_]+_total\b", expr):
        assert re.search(rf"(rate|increase)\({name}", expr), title


def test_variables_are_used_and_renewed():
    said = json.dumps(SHOWN)
    for variable in DASHBOARD["templating"]["list"]:
        assert f"${variable['name']}" in said or f"${{{variable['name']}}}" in said, variable["name"]
        assert variable["type"] == "datasource" or variable["refresh"] == 2
        assert variable["label"]


def test_panels_have_places_of_their_own():
    taken = Counter(
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    )
    assert set(taken.values()) == {1}
    assert max(x for x, _ in taken) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_metric_that_is_asked_for_is_in_the_catalogue():
    for title, expr in [*QUERIES, *((rule["alert"], rule["expr"]) for rule in RULES)]:
        assert metrics(expr) <= KNOWN, title


def test_every_metric_of_the_catalogue_is_charted_or_listed_as_not():
    charted = {name for _, expr in QUERIES for name in metrics(expr)}
    assert KNOWN - charted == {f"sluicegate_{name}" for name in NOT_CHARTED}


def test_no_two_panels_of_a_row_have_one_title():
    assert len({(row, panel.title) for row, panel in PANELS}) == len(PANELS)


def test_provisioning_leads_to_the_file():
    assert (GRAFANA / "provisioning/dashboards/sluicegate.yml").exists()
    assert (GRAFANA / "provisioning/datasources/prometheus.yml").exists()
