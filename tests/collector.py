"""An OpenTelemetry collector that keeps what it is sent: OTLP over HTTP, on a port of the system's choosing."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    """raw: every message as it came. headers: of each."""

    url: str = ""
    status: int = 200
    raw: list[bytes] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.headers.append(request.headers)
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.status == 200:
            self.raw.append(body)
        self.asked.set()
        return web.Response(status=self.status)

    @property
    def spans(self) -> list[Any]:
        """Every span, in the order they came."""
        return [
            span
            for body in self.raw
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    def of(self, kind: int) -> list[Any]:
        return [span for span in self.spans if span.kind == kind]


def attributes(span: Any) -> dict[str, Any]:
    """A span's attributes as plain values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()
