"""What is counted and timed: one table of metrics, one set of series per running proxy.

Counting is an addition, because every request counts a dozen things; the library makes the text of a scrape.

Label values come from closed sets (teams of the policy, routes of the table, models with a name we know); never a key,
a prompt, a path or an id. Should a set grow all the same, what is beyond `SERIES_MAX` is counted as `_other`.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final, Literal, TypeVar

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


class Value:
    """One series of a counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Times:
    """One series of a histogram.

    counts:   of each bucket alone, the last one for what is above all bounds.
    examples: the latest example of each bucket that has one, by the bucket's place.
    """

    __slots__ = ("_bounds", "counts", "examples", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds: Final = bounds
        self.counts: Final = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.examples: Final[dict[int, tuple[str, float]]] = {}

    def took(self, value: float, example: str) -> None:
        """One more. example: as in `Metrics.observe`."""
        at = bisect_left(self._bounds, value)
        self.counts[at] += 1
        self.sum += value
        if example and len(example) <= EXAMPLE_MAX:
            self.examples[at] = example, value


One = TypeVar("One", Value, Times)


class Series(dict[Labels, One]):
    """All series of one row by their labels. One that is not there is made when it is asked for.

    Where there are too many, what is asked for is that which counts the others. Raises ValueError for labels of another
    row.
    """

    def __init__(self, row: Metric, series_max: int, make: Callable[[], One], capped: Callable[[str], None]) -> None:
        """capped: told the row's name when one is not made."""
        super().__init__()
        self.row: Final = row
        self._series_max: Final = series_max
        self._make: Final[Callable[[], One]] = make
        self._capped: Final = capped

    def __missing__(self, labels: Labels) -> One:
        row = self.row
        if len(labels) != len(row.labels):
            raise ValueError(f"{row.name} has the labels {', '.join(row.labels)}")
        # One place is kept for `_other`, so that the bound is the bound.
        if len(self) >= self._series_max - 1 and labels:
            others = (OTHER,) * len(labels)
            if labels != others:
                self._capped(row.name)
                return self[others]
        one = self[labels] = self._make()
        return one


class Metrics:
    """The metrics of one running proxy. Labels are given in the order of the table; a wrong name is a KeyError.

    values, times: the series of each row. What every request counts is counted there, without a call.
    """

    def __init__(self, *, series_max: int = SERIES_MAX, process: bool = True) -> None:
        """process: also report CPU time, memory and open files of this process, where the platform tells them."""
        self.values: Final[dict[str, Series[Value]]] = {}
        self.times: Final[dict[str, Series[Times]]] = {}
        for row in METRICS:
            series: Series[Value] | Series[Times]
            if row.type == "histogram":
                series = self.times[row.name] = Series(row, series_max, partial(Times, row.buckets), self._capped)
            else:
                series = self.values[row.name] = Series(row, series_max, Value, self._capped)
            if not row.labels:
                # It is there from the start, so that a first event is an increase.
                series[()]
        self._registry: Final = CollectorRegistry()
        self._registry.register(_Shown(self.values, self.times))
        if process:
            ProcessCollector(registry=self._registry)
        self.set("build_info", __version__, to=1)

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Move a counter up, or a gauge up or down."""
        self.values[name][labels].value += by

    change = count

    def add(self, name: str, labels: Labels, by: float) -> None:
        """As `count`, in less time."""
        self.values[name][labels].value += by

    def set(self, name: str, *labels: str, to: float) -> None:
        self.values[name][labels].value = to

    def replace(self, name: str, values: Mapping[Labels, float]) -> None:
        """Set a gauge whole: what is not among the values is not there any more."""
        self.values[name].clear()
        for labels, value in values.items():
            self.set(name, *labels, to=value)

    def observe(self, name: str, *labels: str, value: float, example: str = "") -> None:
        """example: names the request or the trace it belongs to, shown beside the bucket as an exemplar."""
        self.times[name][labels].took(value, example)

    def time(self, name: str, labels: Labels, value: float, example: str) -> None:
        """As `observe`, in less time."""
        self.times[name][labels].took(value, example)

    def rows(self, name: str) -> list[tuple[Labels, float]]:
        """The series of a counter or gauge, most first."""
        rows = [(labels, one.value) for labels, one in self.values[name].items()]
        return sorted(rows, key=lambda row: (-row[1], row[0]))

    def total(self, name: str, **wanted: str) -> float:
        """The sum of a counter or gauge over the series with these labels."""
        series = self.values[name]
        at = [(series.row.labels.index(label), word) for label, word in wanted.items()]
        return sum(one.value for labels, one in series.items() if all(labels[i] == word for i, word in at))

    def render(self, accept: str) -> tuple[bytes, str]:
        """The body of a scrape and its content type, in the form that `accept` asks for; may run in a thread."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def _capped(self, name: str) -> None:
        self.count("series_capped_total", name)


class _Shown(Collector):
    """The series as the library wants to see them. Copies are made in one go each, as the loop goes on counting."""

    def __init__(self, values: Mapping[str, Series[Value]], times: Mapping[str, Series[Times]]) -> None:
        self._values: Final = values
        self._times: Final = times

    def collect(self) -> Iterator[Family]:
        for row in METRICS:
            yield _times(self._times[row.name]) if row.type == "histogram" else _values(self._values[row.name])


def _values(series: Series[Value]) -> Family:
    row = series.row
    kind = CounterMetricFamily if row.type == "counter" else GaugeMetricFamily
    family = kind(f"sluicegate_{row.name}", row.help, labels=row.labels)
    for labels, one in list(series.items()):
        family.add_metric(labels, one.value)
    return family


def _times(series: Series[Times]) -> Family:
    row = series.row
    family = HistogramMetricFamily(f"sluicegate_{row.name}", row.help, labels=row.labels)
    bounds = [*map(floatToGoString, row.buckets), "+Inf"]
    for labels, times in list(series.items()):
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
