"""What is counted and timed: one table of metrics, one set of series per running proxy.

Counting is an addition in a dict, because every request counts a dozen things; the library makes the text of a scrape.

Label values come from closed sets (teams of the policy, routes of the table, models with a name we know); never a key,
a prompt, a path or an id. Should a set grow all the same, what is beyond `SERIES_MAX` is counted as `_other`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Literal

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from proxy import __version__

SERIES_MAX: Final = 2000
"""Label sets of one metric. A scrape costs about 20 us a line on the event loop, so this bounds its pause."""

OTHER: Final = "_other"
EXAMPLE_MAX: Final = 100
"""Longest id of an exemplar: OpenMetrics allows 128 characters with the label's name, and callers choose ids."""

NOBODY: Final = "_none"
"""The team label of a request whose caller is not known."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table.

    name:    without the prefix `sluicegate_`.
    buckets: upper bounds of a histogram, in its unit.
    bound:   how many series there can be: T teams, R routes, M models, S suites.
    """

    name: str
    type: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    bound: str
    help: str
    buckets: tuple[float, ...] = ()


# Media generation runs to two minutes and read time-outs to ten, so the classic ten seconds would tell nothing.
_CALL_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_OWN_S: Final = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)

# fmt: off
METRICS: Final[tuple[Metric, ...]] = (
    Metric("requests_total",                   "counter",   ("team", "route", "code"),             "T*R*6", "Requests answered, by the status the caller saw."),
    Metric("refusals_total",                   "counter",   ("team", "reason"),                    "T*40",  "Requests the proxy refused itself, by the reason in its answer."),
    Metric("request_duration_seconds",         "histogram", ("route", "cache"),                    "R*16",  "Time from a request's head to the last byte of its answer.", _CALL_S),
    Metric("overhead_seconds",                 "histogram", ("route",),                            "R*11",  "The proxy's own time in a request, waiting for gateway and caller left out.", _OWN_S),
    Metric("upstream_duration_seconds",        "histogram", ("model",),                            "M*16",  "Time from sending a call to the gateway to the last byte of its answer.", _CALL_S),
    Metric("time_to_first_token_seconds",      "histogram", ("model",),                            "M*16",  "Time from a streamed request's head to the first byte of its answer's body.", _CALL_S),
    Metric("requests_in_flight",               "gauge",     ("route",),                            "R",     "Requests being handled now."),
    Metric("streams_in_flight",                "gauge",     ("route",),                            "R",     "Streams being relayed now."),
    Metric("upstream_errors_total",            "counter",   ("route", "reason"),                   "R*12",  "Calls the gateway refused, broke off or never took."),
    Metric("upstream_retries_total",           "counter",   ("reason",),                           "1",     "Calls that went back to the queue and were sent again (429: somebody else uses the member)."),
    Metric("stream_aborts_total",              "counter",   ("route", "side"),                     "R*3",   "Streams that ended before their end, by who ended them (client, upstream, proxy)."),
    Metric("tokens_total",                     "counter",   ("team", "model", "type"),             "T*M*5", "Tokens as the gateway reported them (input, output, reasoning, cache_read, cache_creation)."),
    Metric("spent_credits_total",              "counter",   ("team", "model"),                     "T*M",   "Credits charged; the ledger has the exact amounts."),
    Metric("saved_credits_total",              "counter",   ("team", "model"),                     "T*M",   "Credits that answers from the cache and joined calls would have cost."),
    Metric("cache_requests_total",             "counter",   ("route", "result"),                   "R*7",   "Calls by what the cache did for them (hit, stale, collapsed, miss, uncacheable, bypass)."),
    Metric("cache_entries",                    "gauge",     (),                                    "1",     "Answers stored."),
    Metric("cache_size_bytes",                 "gauge",     (),                                    "1",     "What the stored answers take of the file."),
    Metric("cache_limit_bytes",                "gauge",     (),                                    "1",     "What they may take."),
    Metric("cache_evictions_total",            "counter",   ("reason",),                           "2",     "Stored answers that went (size, expired)."),
    Metric("cache_faults_total",               "counter",   (),                                    "1",     "Reads and writes of the cache that failed; callers saw misses."),
    Metric("cache_operation_duration_seconds", "histogram", ("op",),                               "2*11",  "Time to look an answer up where memory does not have it (get), and to hand one over for keeping (put).", _OWN_S),
    Metric("budget_limit_credits",             "gauge",     ("team", "budget"),                    "T*B",   "What a budget allows in its window; _all where it is one for all teams. Budgets with an account for each key, model, suite or tool are in `budget list` only."),
    Metric("budget_spent_credits_total",       "counter",   ("team", "budget"),                    "T*B",   "Credits charged to a budget since the start of the process; it does not fall when a window ends. For rates: how fast it burns."),
    Metric("budget_remaining_credits",         "gauge",     ("team", "budget"),                    "T*B",   "What is left of it."),
    Metric("budget_reserved_credits",          "gauge",     ("team", "budget"),                    "T*B",   "What calls that run hold of it."),
    Metric("budget_window_seconds",            "gauge",     ("team", "budget"),                    "T*B",   "Length of its window; none for a total."),
    Metric("budget_reset_timestamp_seconds",   "gauge",     ("team", "budget"),                    "T*B",   "When its window ends, or a sliding one has more room; none where nothing is to come back."),
    Metric("budget_warnings_total",            "counter",   ("budget", "share"),                   "B*3",   "Accounts of a budget that came to a share of `warn_at`, or with `excess: warn` to 1, once in a window each."),
    Metric("reservations_total",               "counter",   ("outcome",),                          "4",     "Holds by how they ended (settled, released, expired, overrun)."),
    Metric("settlement_delta_credits_total",   "counter",   ("direction",),                        "2",     "By how much charges were over and under what was held."),
    Metric("unpriced_requests_total",          "counter",   ("route",),                            "R",     "Calls of which no price was known, so that only the gateway says what they cost."),
    Metric("upstream_balance_credits",         "gauge",     (),                                    "1",     "The gateway's balance when it was last asked for."),
    Metric("ledger_drift_credits",             "gauge",     (),                                    "1",     "By how much the balance fell more than the ledger settled, since they were first compared; what others spend on the same member is in it."),
    Metric("mcp_tool_calls_total",             "counter",   ("team", "suite", "tool", "outcome"),  "capped","Tool calls (executed, tool_error, cached, refused, refused_here, uncertain)."),
    Metric("queued_requests",                  "gauge",     ("team",),                             "T",     "Requests that wait for a turn or for credits."),
    Metric("queue_wait_seconds",               "histogram", (),                                    "16",    "How long requests waited that did not start at once.", _CALL_S),
    Metric("limit_decisions_total",            "counter",   ("team", "limit", "decision"),         "T*L*3", "What rates said to calls (pass, delay, refuse); those that only count say what they would have done."),
    Metric("upstream_limit_used_ratio",        "gauge",     ("limit",),                            "L",     "How much of a rate is taken, of the fullest account of each."),
    Metric("member_group_quota_credits",       "gauge",     ("team",),                             "T",     "Quota of the member group that a team names, as its service tells."),
    Metric("member_group_used_credits",        "gauge",     ("team",),                             "T",     "Credits that the members of that group used this month, as its service counts."),
    Metric("breakers_open",                    "gauge",     ("what",),                             "5",     "What of the gateway is left alone for a while (upstream, member, tools, suite, route)."),
    Metric("mcp_requests_total",               "counter",   ("suite", "method", "outcome"),        "S*9*5", "MCP calls that were sent to a suite (result, tool_error, rpc_error, refused, failed)."),
    Metric("mcp_operation_duration_seconds",   "histogram", ("suite", "method"),                   "S*9*16","Time from sending an MCP call to the last byte of its answer.", _CALL_S),
    Metric("operations_open",                  "gauge",     ("kind",),                             "3",     "Operations still running at the gateway (image, video, response)."),
    Metric("operations_total",                 "counter",   ("kind", "outcome"),                   "3*4",   "Operations that ended (completed, failed, cancelled, expired)."),
    Metric("alerts_total",                     "counter",   ("kind", "outcome"),                   "6*3",   "Messages to the webhook (delivered, failed, given_up); a failed one is tried again."),
    Metric("event_loop_lag_seconds",           "histogram", (),                                    "11",    "How late the event loop woke up: the pause every caller felt.", _OWN_S),
    Metric("policy_last_reload_successful",    "gauge",     (),                                    "1",     "1 when the last reading of the policies succeeded, else 0."),
    Metric("policy_last_reload_success_timestamp_seconds", "gauge", (),                            "1",     "When the policies in force were read, seconds since the epoch."),
    Metric("policy_info",                      "gauge",     ("digest",),                           "1",     "Always 1; the label is the beginning of the digest of the policy files in force."),
    Metric("store_up",                         "gauge",     ("store",),                            "1",     "1 while the ledger takes entries, else 0."),
    Metric("build_info",                       "gauge",     ("version",),                          "1",     "Always 1; the version is the label."),
    Metric("series_capped_total",              "counter",   ("metric",),                           "20",    "Label sets counted as _other because their metric had too many."),
)
# fmt: on

Labels = tuple[str, ...]


@dataclass(slots=True)
class _Times:
    """One series of a histogram.

    counts:   of each bucket alone, the last one for what is above all bounds.
    examples: the latest example of each bucket that has one, by the bucket's place.
    """

    counts: list[int]
    sum: float = 0.0
    examples: dict[int, tuple[str, float]] = field(default_factory=dict)


@dataclass(slots=True)
class _Series:
    """All series of one row."""

    row: Metric
    values: dict[Labels, float] = field(default_factory=dict)
    times: dict[Labels, _Times] = field(default_factory=dict)


class Metrics:
    """The metrics of one running proxy. Labels are given in the order of the table; a wrong name is a KeyError."""

    def __init__(self, *, series_max: int = SERIES_MAX, process: bool = True) -> None:
        """process: also report CPU time, memory and open files of this process, where the platform tells them."""
        self._series_max = series_max
        self._series: Final = {row.name: _Series(row) for row in METRICS}
        self._registry: Final = CollectorRegistry()
        self._registry.register(_Shown(tuple(self._series.values())))
        if process:
            ProcessCollector(registry=self._registry)
        for row in METRICS:
            # What has no labels is there from the start, so that a first event is an increase.
            if not row.labels:
                self._new(self._series[row.name], ())
        self.set("build_info", __version__, to=1)

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Move a counter up, or a gauge up or down."""
        self.add(name, labels, by)

    change = count

    def add(self, name: str, labels: Labels, by: float) -> None:
        """As `count`, in half the time: for what every request counts."""
        values = self._series[name].values
        try:
            values[labels] += by
        except KeyError:
            values[self._new(self._series[name], labels)] += by

    def set(self, name: str, *labels: str, to: float) -> None:
        values = self._series[name].values
        values[labels if labels in values else self._new(self._series[name], labels)] = to

    def replace(self, name: str, values: Mapping[Labels, float]) -> None:
        """Set a gauge whole: what is not among the values is not there any more."""
        self._series[name].values.clear()
        for labels, value in values.items():
            self.set(name, *labels, to=value)

    def observe(self, name: str, *labels: str, value: float, example: str = "") -> None:
        """example: names the request or the trace it belongs to, shown beside the bucket as an exemplar."""
        self.time(name, labels, value, example)

    def time(self, name: str, labels: Labels, value: float, example: str) -> None:
        """As `observe`, in less time: for what every request takes."""
        series = self._series[name]
        times = series.times.get(labels) or series.times[self._new(series, labels)]
        at = bisect_left(series.row.buckets, value)
        times.counts[at] += 1
        times.sum += value
        if example and len(example) <= EXAMPLE_MAX:
            times.examples[at] = example, value

    def rows(self, name: str) -> list[tuple[Labels, float]]:
        """The series of a counter or gauge, most first."""
        return sorted(self._series[name].values.items(), key=lambda row: (-row[1], row[0]))

    def total(self, name: str, **wanted: str) -> float:
        """The sum of a counter or gauge over the series with these labels."""
        at = [(self._series[name].row.labels.index(label), word) for label, word in wanted.items()]
        return sum(
            value for labels, value in self._series[name].values.items() if all(labels[i] == word for i, word in at)
        )

    def render(self, accept: str) -> tuple[bytes, str]:
        """The body of a scrape and its content type, in the form that `accept` asks for; may run in a thread."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def _new(self, series: _Series, labels: Labels) -> Labels:
        """Make a series; the labels it is counted under, `_other` where there are too many. Raises ValueError."""
        row = series.row
        if len(labels) != len(row.labels):
            raise ValueError(f"{row.name} has the labels {', '.join(row.labels)}")
        # One place is kept for `_other`, so that the bound is the bound.
        if len(series.times) + len(series.values) >= self._series_max - 1 and labels:
            others = (OTHER,) * len(labels)
            if labels != others:
                self.count("series_capped_total", row.name)
            labels = others
        if row.type == "histogram":
            series.times.setdefault(labels, _Times([0] * (len(row.buckets) + 1)))
        else:
            series.values.setdefault(labels, 0)
        return labels


class _Shown(Collector):
    """The series as the library wants to see them. Copies are made in one go each, as the loop goes on counting."""

    def __init__(self, series: tuple[_Series, ...]) -> None:
        self._series: Final = series

    def collect(self) -> Iterator[Family]:
        for series in self._series:
            yield _times(series) if series.row.type == "histogram" else _values(series)


def _values(series: _Series) -> Family:
    row = series.row
    kind = CounterMetricFamily if row.type == "counter" else GaugeMetricFamily
    family = kind(f"sluicegate_{row.name}", row.help, labels=row.labels)
    for labels, value in list(series.values.items()):
        family.add_metric(labels, value)
    return family


def _times(series: _Series) -> Family:
    row = series.row
    family = HistogramMetricFamily(f"sluicegate_{row.name}", row.help, labels=row.labels)
    bounds = [*map(floatToGoString, row.buckets), "+Inf"]
    for labels, times in list(series.times.items()):
        examples = times.examples.copy()
        buckets = [
            (bound, float(count), _exemplar(*examples[at])) if at in examples else (bound, float(count))
            for at, (bound, count) in enumerate(zip(bounds, accumulate(list(times.counts)), strict=True))
        ]
        family.add_metric(labels, buckets, sum_value=times.sum)
    return family


def _exemplar(name: str, value: float) -> Exemplar:
    """Scrapes in the form of OpenMetrics carry it; a trace's id is 32 hex digits, all else names a request."""
    return Exemplar({"trace_id" if _TRACE.fullmatch(name) else "request_id": name}, value)


_TRACE: Final = re.compile("[0-9a-f]{32}")


def described(rows: Iterable[Metric] = METRICS) -> Iterator[tuple[str, str, str, str]]:
    """Rows for documentation: full name, type, labels, help."""
    for row in rows:
        yield f"sluicegate_{row.name}", row.type, ", ".join(row.labels), row.help
