"""The dashboard as a table of panels; `python -m grafana.build` writes it as the JSON that Grafana reads.

`{S}` in a query stands for the job and instance chosen on the dashboard, `{T}` for those and the team.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("sluicegate.json")
UID: Final = "sluicegate"

S: Final = 'job=~"$job",instance=~"$instance"'
T: Final = f'{S},team=~"$team"'


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. queries: expressions and how their series are called. kind: of Grafana's panels. width: of 24."""

    title: str
    says: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    width: int = 8


def _quantile(share: float, metric: str, by: str = "") -> str:
    words = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({words}) (rate(sluicegate_{metric}_bucket{{{S}}}[$__rate_interval])))"


def _rate(metric: str, by: str, labels: str = S, per: str = "") -> str:
    return f"sum by ({by}) (rate(sluicegate_{metric}{{{labels}}}[$__rate_interval])){per}"


_BUDGET: Final = "{{team}} / {{budget}}"
_HOURLY: Final = " * 3600"

# fmt: off
ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    ("Budgets", (
        Panel("Used", "How much of each budget is spent or held by running calls. At 100 % calls are refused.", "percentunit",
              ((f"1 - sluicegate_budget_remaining_credits{{{T}}} / (sluicegate_budget_limit_credits{{{T}}} > 0)", _BUDGET),), "bargauge", 8),
        Panel("Left, and until when", "Each budget: its limit, what is left and held, seconds until it reopens, and seconds that what is left lasts at the pace of the last six hours.", "short",
              ((f"sluicegate_budget_limit_credits{{{T}}}", "limit"),
               (f"sluicegate_budget_remaining_credits{{{T}}}", "left"),
               (f"sluicegate_budget_reserved_credits{{{T}}}", "held"),
               (f"sluicegate_budget_reset_timestamp_seconds{{{T}}} - time()", "reopens in"),
               (f"sluicegate_budget_remaining_credits{{{T}}} / (rate(sluicegate_budget_spent_credits_total{{{T}}}[6h]) > 0)", "lasts")), "table", 16),
        Panel("Burn", "How many times faster than evenly a budget is spent: 1 lasts exactly to the end of its window.", "none",
              ((f"rate(sluicegate_budget_spent_credits_total{{{T}}}[$__rate_interval]) / (sluicegate_budget_limit_credits{{{T}}} / sluicegate_budget_window_seconds{{{T}}} > 0)", _BUDGET),), width=12),
        Panel("Left", "What is left of each budget.", "none",
              ((f"sluicegate_budget_remaining_credits{{{T}}}", _BUDGET),), width=8),
        Panel("Warnings", "Shares of budgets that were reached in the time shown.", "none",
              ((f"sum by (budget, share) (increase(sluicegate_budget_warnings_total{{{S}}}[$__range]))", "{{budget}} at {{share}}"),), "stat", 4),
    )),
    ("Money", (
        Panel("Credits per hour by model", "What is charged, by model.", "none",
              ((_rate("spent_credits_total", "model", f'{T},model=~"$model"', _HOURLY), "{{model}}"),)),
        Panel("Credits per hour by team", "What is charged, by team.", "none",
              ((_rate("spent_credits_total", "team", T, _HOURLY), "{{team}}"),)),
        Panel("Saved per hour", "What answers from the cache and joined calls would have cost.", "none",
              ((_rate("saved_credits_total", "team", T, _HOURLY), "{{team}}"),)),
        Panel("Tokens per second", "As the gateway reported them.", "none",
              ((_rate("tokens_total", "type", f'{T},model=~"$model"'), "{{type}}"),)),
        Panel("Holds by how they ended", "overrun: the charge was more than the most it was reckoned to be; released: nothing was charged.", "none",
              ((_rate("reservations_total", "outcome"), "{{outcome}}"),)),
        Panel("Charged beside held", "Credits per hour by which charges were over and under what was held. Much under: ceilings keep budgets waiting for nothing.", "none",
              ((_rate("settlement_delta_credits_total", "direction", S, _HOURLY), "{{direction}}"),), width=4),
        Panel("Calls without a price", "Only the gateway knows what these cost; add prices.", "none",
              ((f"sum by (route) (increase(sluicegate_unpriced_requests_total{{{S}}}[$__range]))", "{{route}}"),), "stat", 4),
    )),
    ("Traffic", (
        Panel("Requests per second by team", "Answered requests.", "reqps", ((_rate("requests_total", "team", T), "{{team}}"),)),
        Panel("Requests per second by status", "The status that callers saw; 499: they left before.", "reqps", ((_rate("requests_total", "code", T), "{{code}}"),)),
        Panel("Refused by reason", "What the proxy refused itself, by the reason in its answer.", "reqps", ((_rate("refusals_total", "reason", T), "{{reason}}"),)),
        Panel("In flight", "Requests and streams being handled now.", "none",
              ((f"sum(sluicegate_requests_in_flight{{{S}}})", "requests"), (f"sum(sluicegate_streams_in_flight{{{S}}})", "streams"))),
        Panel("Waiting", "Requests that wait for a turn or for credits.", "none", ((f"sum by (team) (sluicegate_queued_requests{{{T}}})", "{{team}}"),)),
        Panel("Wait", "How long those waited that did not start at once.", "s",
              ((_quantile(0.5, "queue_wait_seconds"), "half"), (_quantile(0.95, "queue_wait_seconds"), "95 %"))),
        Panel("What rates said", "Calls that passed, were delayed or refused, by limit.", "reqps",
              ((_rate("limit_decisions_total", "limit, decision", T), "{{limit}}: {{decision}}"),), width=12),
        Panel("Streams cut short", "By who ended them.", "reqps", ((_rate("stream_aborts_total", "side"), "{{side}}"),), width=12),
    )),
    ("Cache", (
        Panel("Hit share", "Of the calls whose answers may be kept, how many were answered without the gateway.", "percentunit",
              ((f'sum(rate(sluicegate_cache_requests_total{{{S},result=~"hit|stale|collapsed"}}[$__rate_interval])) / sum(rate(sluicegate_cache_requests_total{{{S},result=~"hit|stale|collapsed|miss"}}[$__rate_interval]))', "share"),)),
        Panel("Calls by what the cache did", "bypass: not to be kept; collapsed: joined an identical call.", "reqps", ((_rate("cache_requests_total", "result"), "{{result}}"),)),
        Panel("Room", "What stored answers take, and what they may take.", "bytes",
              ((f"sluicegate_cache_size_bytes{{{S}}}", "taken"), (f"sluicegate_cache_limit_bytes{{{S}}}", "room"))),
        Panel("Answers stored", "Entries in the file.", "none", ((f"sluicegate_cache_entries{{{S}}}", "{{instance}}"),), width=6),
        Panel("Answers that went", "size: for room; expired: too old.", "none", ((_rate("cache_evictions_total", "reason"), "{{reason}}"),), width=6),
        Panel("Faults", "Reads and writes of the cache that failed; callers saw misses.", "none", ((f"sum(increase(sluicegate_cache_faults_total{{{S}}}[$__range]))", "faults"),), "stat", 6),
        Panel("Time to look up and to keep", "99 of 100 are quicker; get: what memory did not have.", "s", ((_quantile(0.99, "cache_operation_duration_seconds", "op"), "{{op}}"),), width=6),
    )),
    ("Latency", (
        Panel("Own time", "What the proxy adds to a call, waiting for gateway and caller left out.", "s",
              ((_quantile(0.5, "overhead_seconds"), "half"), (_quantile(0.99, "overhead_seconds"), "99 %")), width=6),
        Panel("Time to first token", "From a streamed request's head to the first byte of its answer; 95 of 100 are quicker.", "s", ((_quantile(0.95, "time_to_first_token_seconds", "model"), "{{model}}"),), width=6),
        Panel("The gateway's time", "From sending a call to the last byte of its answer; 95 of 100 are quicker.", "s", ((_quantile(0.95, "upstream_duration_seconds", "model"), "{{model}}"),), width=6),
        Panel("Whole requests", "From a request's head to the last byte; 95 of 100 are quicker.", "s", ((_quantile(0.95, "request_duration_seconds", "route"), "{{route}}"),), width=6),
    )),
    ("Upstream", (
        Panel("Failures by reason", "Calls the gateway refused, broke off or never took.", "reqps", ((_rate("upstream_errors_total", "reason"), "{{reason}}"),)),
        Panel("Limits taken", "How much of each rate is used, the gateway's own among them. At 100 % calls wait.", "percentunit",
              ((f"max by (limit) (sluicegate_upstream_limit_used_ratio{{{S}}})", "{{limit}}"),)),
        Panel("Left alone", "Pauses and breakers that are open.", "none", ((f"sum by (what) (sluicegate_breakers_open{{{S}}})", "{{what}}"),)),
        Panel("Sent again", "Calls that went back to the queue because the gateway said 429: somebody else uses the member.", "reqps", ((_rate("upstream_retries_total", "reason"), "{{reason}}"),), width=6),
        Panel("Balance", "The gateway's balance when it was last asked for.", "none", ((f"sluicegate_upstream_balance_credits{{{S}}}", "{{instance}}"),), width=6),
        Panel("Drift", "By how much the balance fell more than the ledger settled.", "none", ((f"sluicegate_ledger_drift_credits{{{S}}}", "{{instance}}"),), width=6),
        Panel("Operations", "Images, videos and background responses that run, and those that ended, per hour.", "none",
              ((f"sum by (kind) (sluicegate_operations_open{{{S}}})", "{{kind}} open"), (_rate("operations_total", "kind, outcome", S, _HOURLY), "{{kind}} {{outcome}}")), width=6),
    )),
    ("MCP", (
        Panel("Calls by suite", "MCP calls that were sent to suites.", "reqps", ((_rate("mcp_requests_total", "suite, method, outcome"), "{{suite}} {{method}}: {{outcome}}"),)),
        Panel("Tools", "Tool calls by tool.", "reqps", ((_rate("mcp_tool_calls_total", "suite, tool, outcome", T), "{{suite}}.{{tool}}: {{outcome}}"),)),
        Panel("Time", "95 of 100 calls are quicker.", "s", ((_quantile(0.95, "mcp_operation_duration_seconds", "suite, method"), "{{suite}} {{method}}"),)),
    )),
    ("Process", (
        Panel("Pauses of the event loop", "What every caller felt; 99 of 100 are shorter.", "s", ((_quantile(0.99, "event_loop_lag_seconds"), "99 %"),), width=6),
        Panel("CPU", "Share of one core.", "percentunit", ((f"rate(process_cpu_seconds_total{{{S}}}[$__rate_interval])", "{{instance}}"),), width=6),
        Panel("Memory", "Resident.", "bytes", ((f"process_resident_memory_bytes{{{S}}}", "{{instance}}"),), width=6),
        Panel("Open files", "Connections among them.", "none", ((f"process_open_fds{{{S}}}", "{{instance}}"),), width=6),
        Panel("Policies read", "1: the files were read without a mistake; 0: those from before are in force.", "none", ((f"sluicegate_policy_last_reload_successful{{{S}}}", "{{instance}}"),), "stat", 6),
        Panel("Age of the policies", "Since the policies in force were read, by their digest.", "s",
              ((f"time() - sluicegate_policy_last_reload_success_timestamp_seconds{{{S}}} + on (job, instance) group_left (digest) 0 * sluicegate_policy_info{{{S}}}", "{{digest}}"),), "stat", 6),
        Panel("Ledger takes entries", "1, or nothing that spends is admitted.", "none", ((f"sluicegate_store_up{{{S}}}", "{{instance}} {{store}}"),), "stat", 4),
        Panel("Label sets too many", "Counted as _other; see which metric.", "none", ((f"sum by (metric) (increase(sluicegate_series_capped_total{{{S}}}[$__range]))", "{{metric}}"),), "stat", 4),
        Panel("Messages to the webhook", "What became of them in the time shown.", "none", ((f"sum by (kind, outcome) (increase(sluicegate_alerts_total{{{S}}}[$__range]))", "{{kind}} {{outcome}}"),), "stat", 6),
        Panel("Version", "What runs.", "none", ((f"sluicegate_build_info{{{S}}}", "{{instance}} {{version}}"),), "stat", 4),
    )),
)

WITH_EXEMPLARS: Final = (
    "request_duration_seconds",
    "overhead_seconds",
    "upstream_duration_seconds",
    "time_to_first_token_seconds",
)
"""Histograms whose buckets name a request, shown as points on their panels."""

NOT_CHARTED: Final = frozenset({"member_group_quota_credits", "member_group_used_credits"})
"""Metrics of the catalogue that no panel shows: these are there only where a tenant's service is set."""
# fmt: on


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana's classic JSON, which every version from 10 on reads."""
    return {
        "id": None,
        "uid": UID,
        "title": "Sluicegate",
        "description": "Who spends what, how long budgets last, and how the proxy and the gateway are.",
        "tags": ["sluicegate"],
        "schemaVersion": 42,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": list(_variables())},
        "annotations": {"list": []},
        "links": [],
        "panels": list(_panels()),
    }


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}
    for name, label, query in (
        ("job", "Job", "label_values(sluicegate_build_info, job)"),
        ("instance", "Instance", 'label_values(sluicegate_build_info{job=~"$job"}, instance)'),
        ("team", "Team", f'label_values({{__name__=~"sluicegate_(requests_total|budget_limit_credits)",{S}}}, team)'),
        ("model", "Model", f"label_values(sluicegate_spent_credits_total{{{S}}}, model)"),
    ):
        yield {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }


_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def _panels() -> Iterator[dict[str, Any]]:
    number, y = 0, 0
    for title, panels in ROWS:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": {"h": 1, "w": 24, "x": 0, "y": y},
            "panels": [],
        }
        y, x = y + 1, 0
        for panel in panels:
            if x + panel.width > 24:
                y, x = y + 8, 0
            number += 1
            yield _panel(number, panel, {"h": 8, "w": panel.width, "x": x, "y": y})
            x += panel.width
        y += 8


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    instant = panel.kind in ("table", "stat", "bargauge")
    found: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, **_DEFAULTS.get(panel.kind, {})}, "overrides": []},
        "options": _OPTIONS.get(panel.kind, {}),
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": _SOURCE,
                "expr": expr,
                "exemplar": any(f"sluicegate_{name}_bucket" in expr for name in WITH_EXEMPLARS),
                "legendFormat": legend,
                "instant": instant,
                "range": not instant,
                "format": "table" if panel.kind == "table" else "time_series",
            }
            for at, (expr, legend) in enumerate(panel.queries)
        ],
    }
    if panel.kind == "table":
        found |= _as_table(panel)
    return found


_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "timeseries": {"min": 0, "custom": {"fillOpacity": 10, "showPoints": "never"}},
    "bargauge": {
        "min": 0,
        "max": 1,
        "thresholds": {
            "mode": "absolute",
            "steps": [
                {"color": "green", "value": None},
                {"color": "orange", "value": 0.8},
                {"color": "red", "value": 1},
            ],
        },
    },
}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "bargauge": {"orientation": "horizontal", "displayMode": "basic", "reduceOptions": {"calcs": ["lastNotNull"]}},
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": "value_and_name"},
    "table": {"showHeader": True, "cellHeight": "sm"},
}


def _as_table(panel: Panel) -> dict[str, Any]:
    """One line for each team and budget, one column for each query."""
    names = {f"Value #{chr(ord('A') + at)}": legend for at, (_, legend) in enumerate(panel.queries)}
    hidden = dict.fromkeys(("Time", "__name__", "job", "instance"), True)
    spans = [legend for _, legend in panel.queries if legend in ("reopens in", "lasts")]
    return {
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}},
        ],
        "fieldConfig": {
            "defaults": {"unit": panel.unit},
            "overrides": [
                {"matcher": {"id": "byName", "options": name}, "properties": [{"id": "unit", "value": "s"}]}
                for name in spans
            ],
        },
    }


def text() -> str:
    """The file's content."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
