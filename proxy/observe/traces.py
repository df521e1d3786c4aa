"""Spans of requests for an OpenTelemetry collector, over OTLP/HTTP; needs the extra `otel`.

A span is made when its request has ended, from instants that were noted on the way, so nothing of this stands on the
path of a request. Sampling, resource and headers for the collector follow the variables that OpenTelemetry itself
defines (`OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_HEADERS`).
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from proxy import __version__

LAST_SPANS_S: Final = 3.0
"""How long the end of the process waits for a collector to take what is left."""

_NS: Final = 1_000_000_000

Attributes = Mapping[str, str | int | float]


class ExtraMissing(RuntimeError):
    """Spans are asked for, and the packages that send them are not installed."""


@dataclass(frozen=True, slots=True)
class Span:
    """One span. begun_s, ended_s: seconds since the epoch. error: its type, "" where there was none."""

    name: str
    begun_s: float
    ended_s: float
    attributes: Attributes
    error: str = ""


class Traces:
    """Hands spans to a collector, in the background; what it does not take is dropped, and said once it happens."""

    def __init__(self, endpoint: str, lost: Callable[[str], None]) -> None:
        """endpoint: of the collector, without `/v1/traces`. lost: told why spans were lost. Raises ExtraMissing."""
        try:
            # Only here, as the packages are an extra and take a fifth of a second to import.
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError as error:
            raise ExtraMissing(
                f"otlp_endpoint is set, and {error.name} is not installed; install the extra: pip install '.[otel]'"
            ) from error
        self._api: Final[Any] = trace
        self._parent: Final = TraceContextTextMapPropagator()
        resource = Resource.create({"service.name": "sluicegate", "service.version": __version__})
        self._provider: Final = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer: Final[Any] = self._provider.get_tracer("sluicegate", __version__)
        self._handler: Final = _Told(lost)
        self._logger: Final = logging.getLogger("opentelemetry")
        self._logger.addHandler(self._handler)
        self._logger.propagate = False

    def request(self, served: Span, sent: Span | None, carrier: Mapping[str, str]) -> str:
        """A request, and the call to the gateway inside it; the id of the trace they belong to, in 32 hex digits.

        carrier: the caller's header lines by lower-case name; its `traceparent` is the parent.
        """
        kinds = self._api.SpanKind
        parent = self._parent.extract(dict(carrier))
        span = self._tracer.start_span(
            served.name, parent, kinds.SERVER, served.attributes, start_time=int(served.begun_s * _NS)
        )
        if sent is not None:
            within = self._api.set_span_in_context(span, parent)
            child = self._tracer.start_span(
                sent.name, within, kinds.CLIENT, sent.attributes, start_time=int(sent.begun_s * _NS)
            )
            self._end(child, sent)
        self._end(span, served)
        return f"{span.get_span_context().trace_id:032x}"

    def _end(self, span: Any, told: Span) -> None:
        if told.error:
            span.set_attribute("error.type", told.error)
            span.set_status(self._api.StatusCode.ERROR)
        span.end(int(told.ended_s * _NS))

    async def close(self) -> None:
        """Send what is left, as far as the collector takes it in time."""
        # A thread that the interpreter does not wait for: a collector that is silent must not hold up the end.
        done, loop = asyncio.Event(), asyncio.get_running_loop()

        def last() -> None:
            self._provider.shutdown()
            # The loop may be gone by now; then nobody waits either.
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=last, name="last-spans", daemon=True).start()
        try:
            await asyncio.wait_for(done.wait(), LAST_SPANS_S)
        except TimeoutError:
            pass
        finally:
            self._logger.removeHandler(self._handler)


class _Told(logging.Handler):
    """What the library would write to the terminal goes to our log."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell: Final = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())
