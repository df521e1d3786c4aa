"""What is counted and timed: one table of metrics, one registry per running proxy.

Label values come from closed sets (teams of the policy, routes of the table, models with a name we know); never a key,
a prompt, a path or an id. Should a set grow all the same, what is beyond `SERIES_MAX` is counted as `_other`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from proxy import __version__

SERIES_MAX: Final = 2000
"""Label sets of one metric. A scrape costs about 20 us a line on the event loop, so this bounds its pause."""

OTHER: Final = "_other"
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
    Metric("stream_aborts_total",              "counter",   ("route", "side"),                     "R*3",   "Streams that ended before their end, by who ended them (client, upstream, proxy)."),
    Metric("tokens_total",                     "counter",   ("team", "model", "type"),             "T*M*5", "Tokens as the gateway reported them (input, output, reasoning, cache_read, cache_creation)."),
    Metric("spent_credits_total",              "counter",   ("team", "model"),                     "T*M",   "Credits charged; the ledger has the exact amounts."),
    Metric("reservations_total",               "counter",   ("outcome",),                          "4",     "Holds by how they ended (settled, released, expired, overrun)."),
    Metric("mcp_tool_calls_total",             "counter",   ("team", "suite", "tool", "outcome"),  "capped","Tool calls (executed, refused, tool_error)."),
    Metric("operations_open",                  "gauge",     ("kind",),                             "3",     "Operations still running at the gateway (image, video, response)."),
    Metric("event_loop_lag_seconds",           "histogram", (),                                    "11",    "How late the event loop woke up: the pause every caller felt.", _OWN_S),
    Metric("policy_last_reload_successful",    "gauge",     (),                                    "1",     "1 when the last reading of the policies succeeded, else 0."),
    Metric("policy_last_reload_success_timestamp_seconds", "gauge", (),                            "1",     "When the policies in force were read, seconds since the epoch."),
    Metric("build_info",                       "gauge",     ("version",),                          "1",     "Always 1; the version is the label."),
    Metric("series_capped_total",              "counter",   ("metric",),                           "20",    "Label sets counted as _other because their metric had too many."),
)
# fmt: on

_TYPES: Final[Mapping[str, Callable[..., Any]]] = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}


class Metrics:
    """The metrics of one running proxy. Labels are given in the order of the table; a wrong name is a KeyError."""

    def __init__(self, *, series_max: int = SERIES_MAX, process: bool = True) -> None:
        """process: also report CPU time, memory and open files of this process, where the platform tells them."""
        self._series_max = series_max
        self._registry = CollectorRegistry()
        self._families: dict[str, Any] = {}
        self._children: dict[str, dict[tuple[str, ...], Any]] = {}
        for row in METRICS:
            options: dict[str, Any] = {"namespace": "sluicegate", "registry": self._registry}
            if row.buckets:
                options["buckets"] = row.buckets
            self._families[row.name] = _TYPES[row.type](row.name, row.help, row.labels, **options)
            self._children[row.name] = {}
        if process:
            ProcessCollector(registry=self._registry)
        self.set("build_info", __version__, to=1)

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        self._child(name, labels).inc(by)

    def change(self, name: str, *labels: str, by: float) -> None:
        """Move a gauge up or down."""
        self._child(name, labels).inc(by)

    def set(self, name: str, *labels: str, to: float) -> None:
        self._child(name, labels).set(to)

    def observe(self, name: str, *labels: str, value: float) -> None:
        self._child(name, labels).observe(value)

    def render(self, accept: str) -> tuple[bytes, str]:
        """The body of a scrape and its content type, in the form that `accept` asks for."""
        encode, content_type = choose_encoder(accept)
        return encode(_WithoutCreated(self._registry)), content_type

    def _child(self, name: str, labels: tuple[str, ...]) -> Any:
        children = self._children[name]
        if (child := children.get(labels)) is not None:
            return child
        family = self._families[name]
        if not labels:
            children[labels] = family
            return family
        # One place is kept for `_other`, so that the bound is the bound.
        if len(children) >= self._series_max - 1 and labels != (others := (OTHER,) * len(labels)):
            self.count("series_capped_total", name)
            return self._child(name, others)
        child = children[labels] = family.labels(*labels)
        return child


class _WithoutCreated(Collector):
    """A registry without the `_created` samples: they double the lines of counters and nothing reads them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Family]:
        for family in self._registry.collect():
            kept = Family(family.name, family.documentation, family.type, family.unit)
            kept.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield kept


def described(rows: Iterable[Metric] = METRICS) -> Iterator[tuple[str, str, str, str]]:
    """Rows for documentation: full name, type, labels, help."""
    for row in rows:
        yield f"sluicegate_{row.name}", row.type, ", ".join(row.labels), row.help
