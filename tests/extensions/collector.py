"""A collector of OTLP over HTTP: what was sent to it, decoded."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


class Collector:
    """``with Collector() as collector``; its ``url`` is an endpoint for OTLP."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                got.append(KINDS[self.path].FromString(body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def spans(self) -> list[Any]:
        """Every span that came."""
        return [
            span
            for each in self.got
            if isinstance(each, ExportTraceServiceRequest)
            for resource in each.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def metrics(self) -> dict[str, Any]:
        """Every metric that came, by its name."""
        return {
            metric.name: metric
            for each in self.got
            if isinstance(each, ExportMetricsServiceRequest)
            for resource in each.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    @property
    def service(self) -> str:
        """The name of the service that sent."""
        resource = next(each for each in self.got if hasattr(each, "resource_spans"))
        attributes = resource.resource_spans[0].resource.attributes
        return next(each.value.string_value for each in attributes if each.key == "service.name")
