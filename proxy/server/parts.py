"""Everything a request needs besides itself, put together in `app.py` and handed on as one value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proxy.config.secret import Secret
from proxy.config.settings import Settings
from proxy.core.learned import Densities
from proxy.core.owners import Owners
from proxy.core.policy import Policy
from proxy.core.quotas import Quota
from proxy.core.refusals import Refusals
from proxy.mcp.cancelling import Cancelling
from proxy.mcp.toolbox import Toolbox
from proxy.mcp.views import Views
from proxy.observe.log import RequestLog
from proxy.observe.metrics import Metrics
from proxy.observe.news import Newsroom
from proxy.observe.recent import Recent
from proxy.observe.traces import Traces
from proxy.server.active import Active
from proxy.server.books import Books
from proxy.server.cache import Cache
from proxy.server.exchange import Exchanges
from proxy.server.heads import Heads
from proxy.server.in_flight import InFlight
from proxy.server.judge import Judge
from proxy.server.keys import Keys
from proxy.server.known import Known
from proxy.server.operations import Operations
from proxy.server.promises import Promises
from proxy.server.repeats import Repeats
from proxy.server.turns import Queue
from proxy.server.upstream import Upstream
from proxy.stores.spanfile import SpanFile

if TYPE_CHECKING:
    from proxy.server.call import Call


@dataclass(slots=True)
class State:
    """The few things that change while the process runs; everything else is replaced whole or never.

    policy:           swapped whole by a reload.
    problems:         what was wrong with its files when they were last read.
    gateway_key:      read again when the gateway refuses it.
    key_refused:      the gateway refused our key and has not accepted one since.
    draining:         no new work is taken.
    quotas:           of the member groups that teams name, by team.
    no_stream_usage:  models that refused to be asked for a stream's usage.
    """

    policy: Policy
    gateway_key: Secret | None
    key_refused: bool = False
    draining: bool = False
    problems: tuple[str, ...] = ()
    no_stream_usage: set[str] = field(default_factory=set)
    quotas: Mapping[str, Quota] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parts:
    """The proxy's parts.

    instance: names this process in `Via`, for loop detection.
    wall:     seconds since the epoch.
    new_id:   makes a request id.
    reread_key: reads the gateway key file again.
    traces:   where spans go; None where none are asked for.
    ended:    requests that are to be recorded in the next turn of the loop.
    """

    settings: Settings
    state: State
    books: Books
    upstream: Upstream
    exchanges: Exchanges
    operations: Operations
    owners: Owners
    densities: Densities
    keys: Keys
    spans: SpanFile
    in_flight: InFlight
    heads: Heads
    repeats: Repeats
    cache: Cache
    promises: Promises
    queue: Queue
    refusals: Refusals
    judge: Judge
    metrics: Metrics
    log: RequestLog
    recent: Recent
    traces: Traces | None
    news: Newsroom
    instance: str
    wall: Callable[[], float]
    new_id: Callable[[], str]
    reread_key: Callable[[], Secret | None]
    allowed_hosts: frozenset[str]
    cors_origins: frozenset[str]
    any_ip_host: bool
    models: Known
    suites: Known
    tools: Known
    toolbox: Toolbox
    views: Views
    cancelling: Cancelling
    ended: "list[Call]" = field(default_factory=list)
    active: Active = field(default_factory=Active)

    @property
    def ready(self) -> bool:
        """Whether new work would be taken."""
        return not self.state.draining and not self.state.key_refused and self.books.available
