"""Series that are there before anything is counted: a rate over a counter misses the event that makes its series."""

from typing import Final

from proxy.core.policy import Policy
from proxy.observe.metrics import NOBODY, Metrics

# fmt: off
OF_A_TEAM: Final = (
    ("requests_total",      ("chat", "200")),
    ("refusals_total",      ("budget_exhausted",)),
    ("spent_credits_total", (NOBODY,)),
    ("saved_credits_total", (NOBODY,)),
    ("queued_requests",     ()),
)
"""For each team of the policy: the labels after the team."""

OF_ALL: Final = (
    ("reservations_total",             ("settled",)),
    ("reservations_total",             ("released",)),
    ("reservations_total",             ("overrun",)),
    ("reservations_total",             ("expired",)),
    ("settlement_delta_credits_total", ("over",)),
    ("settlement_delta_credits_total", ("under",)),
    ("unpriced_requests_total",        ("chat",)),
    ("upstream_errors_total",          ("chat", "upstream_unreachable")),
    ("upstream_retries_total",         ("429",)),
    ("cache_requests_total",           ("chat", "hit")),
    ("cache_requests_total",           ("chat", "miss")),
    ("alerts_total",                   ("budget_warning", "delivered")),
    ("series_capped_total",            ("requests_total",)),
    ("stream_aborts_total",            ("chat", "client")),
    ("stream_aborts_total",            ("chat", "upstream")),
    ("streams_in_flight",              ("chat",)),
    *(("operations_open",  (kind,))             for kind in ("image", "video", "response")),
    *(("operations_total", (kind, end)) for kind in ("image", "video", "response") for end in ("completed", "expired")),
)
# fmt: on


def seed(metrics: Metrics, policy: Policy) -> None:
    """Make the series of a policy's teams and rates, and those that every proxy has."""
    for name, labels in OF_ALL:
        metrics.count(name, *labels, by=0)
    for team in policy.teams:
        for name, labels in OF_A_TEAM:
            metrics.count(name, team, *labels, by=0)
        for rate in policy.rates:
            metrics.count("limit_decisions_total", team, rate.name, "pass", by=0)
