import re

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_plain

from proxy import __version__
from proxy.core.policy import Policy, Team
from proxy.observe.metrics import METRICS, SERIES_MAX, Metrics, described
from proxy.observe.seeds import seed

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def samples(metrics, accept=""):
    parse = parse_openmetrics if accept else parse_plain
    text = metrics.render(accept)[0].decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def test_names_follow_the_conventions_of_the_format():
    """One prefix, base units, `_total` on counters and on nothing else."""
    for row in METRICS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", row.name), row.name
        assert (row.type == "counter") == row.name.endswith("_total"), row.name
        assert (row.type == "histogram") == bool(row.buckets), row.name
        assert not re.search(r"_(ms|millis|count|sum|bucket)$", row.name), row.name
        assert row.help.endswith("."), row.name
    assert len({row.name for row in METRICS}) == len(METRICS)


def test_labels_are_from_closed_sets():
    """No key, path, id or prompt ever is a label."""
    used = {label for row in METRICS for label in row.labels}
    assert used == {
        "team", "route", "code", "reason", "cache", "model", "side", "type", "outcome", "suite", "tool",
        "kind", "version", "metric", "result", "budget", "share", "limit", "decision",
        "op", "direction", "method", "digest", "store", "what",
    }  # fmt: skip


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_what_was_counted_is_shown_in_each_form(accept):
    metrics = Metrics(process=False)
    metrics.count("requests_total", "red", "chat", "200")
    metrics.count("requests_total", "red", "chat", "200", by=2)
    metrics.change("requests_in_flight", "chat", by=1)
    metrics.change("requests_in_flight", "chat", by=1)
    metrics.change("requests_in_flight", "chat", by=-1)
    metrics.set("policy_last_reload_successful", to=1)
    metrics.observe("overhead_seconds", "chat", value=0.002)
    shown = samples(metrics, accept)
    assert shown["sluicegate_requests_total", "200", "chat", "red"] == 3
    assert shown["sluicegate_requests_in_flight", "chat"] == 1
    assert shown["sluicegate_policy_last_reload_successful",] == 1
    assert shown["sluicegate_overhead_seconds_bucket", "0.0025", "chat"] == 1
    assert shown["sluicegate_overhead_seconds_bucket", "0.001", "chat"] == 0
    assert shown["sluicegate_build_info", __version__] == 1


@pytest.mark.parametrize(
    ("accept", "content_type"), [("", "text/plain"), (OPENMETRICS, "application/openmetrics-text")]
)
def test_a_scraper_gets_the_form_it_asks_for(accept, content_type):
    assert Metrics().render(accept)[1].startswith(content_type)


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_no_line_tells_when_a_series_was_created(accept):
    metrics = Metrics()
    metrics.count("requests_total", "red", "chat", "200")
    metrics.observe("overhead_seconds", "chat", value=1)
    assert b"_created" not in metrics.render(accept)[0]


def test_two_proxies_in_one_process_count_apart():
    one, two = Metrics(), Metrics()
    one.count("requests_total", "red", "chat", "200")
    assert ("sluicegate_requests_total", "200", "chat", "red") not in samples(two)


def test_series_beyond_the_bound_are_counted_as_other():
    metrics = Metrics(series_max=10, process=False)
    for number in range(1000):
        metrics.count("tokens_total", "red", f"model-{number}", "input")
    shown = samples(metrics)
    series = [key for key in shown if key[0] == "sluicegate_tokens_total"]
    assert len(series) == 10
    assert shown["sluicegate_tokens_total", "_other", "_other", "_other"] == 991
    assert shown["sluicegate_series_capped_total", "tokens_total"] == 991
    # A series that was there before stays its own.
    metrics.count("tokens_total", "red", "model-0", "input")
    assert samples(metrics)["sluicegate_tokens_total", "model-0", "red", "input"] == 2


def test_a_series_may_be_called_other_from_the_start():
    metrics = Metrics(series_max=3)
    for _ in range(3):
        metrics.count("spent_credits_total", "_other", "_other")
    assert samples(metrics)["sluicegate_spent_credits_total", "_other", "_other"] == 3


def test_a_wrong_name_or_number_of_labels_is_an_error_of_ours():
    with pytest.raises(KeyError):
        Metrics().count("request_total", "red")
    with pytest.raises(ValueError):
        Metrics().count("requests_total", "red")


def test_the_documentation_lists_every_metric_with_its_prefix():
    assert [name for name, *_ in described()] == [f"sluicegate_{row.name}" for row in METRICS]


def test_many_teams_and_models_stay_within_the_bound():
    """200 teams with 50 models: what is beyond the bound is one series, and every total is still right."""
    metrics = Metrics(process=False)
    seed(metrics, Policy({f"team-{number}": Team(f"team-{number}") for number in range(200)}))
    for team in range(200):
        for model in range(50):
            metrics.count("spent_credits_total", f"team-{team}", f"model-{model}", by=1)
            metrics.count("tokens_total", f"team-{team}", f"model-{model}", "input", by=1)
    shown = samples(metrics)
    for name in ("spent_credits_total", "tokens_total", "requests_total"):
        assert sum(key[0] == f"sluicegate_{name}" for key in shown) <= SERIES_MAX
    assert metrics.total("spent_credits_total") == 200 * 50
    # Every team was there before its first call, so none of them is lost in the crowd.
    assert ("sluicegate_spent_credits_total", "_none", "team-199") in shown


def test_a_bucket_shows_the_latest_request_that_fell_into_it():
    metrics = Metrics(process=False)
    for example, value in (
        ("first", 0.02),
        ("second", 0.02),
        ("a" * 101, 0.02),
        ("0af7651916cd43dd8448eb211c80319c", 7),
    ):
        metrics.observe("request_duration_seconds", "chat", "miss", value=value, example=example)
    text, _ = metrics.render("application/openmetrics-text; version=1.0.0")
    lines = [line for line in text.decode().splitlines() if " # " in line]
    assert [line.partition(" # ")[2].split()[0] for line in lines] == [
        '{request_id="second"}',
        '{trace_id="0af7651916cd43dd8448eb211c80319c"}',
    ]
    assert 'le="0.025"' in lines[0]
    assert b"request_id" not in metrics.render("text/plain")[0]


def test_what_has_no_labels_is_there_from_the_start():
    """A rate over a counter misses the event that makes its series."""
    metrics = Metrics(process=False)
    shown = samples(metrics)
    for row in METRICS:
        if not row.labels:
            assert shown[f"sluicegate_{row.name}{'_count' if row.buckets else ''}",] == 0, row.name
