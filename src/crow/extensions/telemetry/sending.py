"""The exporters of spans and metrics: the program's providers, else OTLP to a collector."""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from typing import Any

from opentelemetry import metrics, trace

from crow.errors import ExtensionError

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SDK, EXPORTER = "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"
MISSING = "what sends spans is not installed: pip install 'crow-acp[otel]'"
NEVER = ("none",)
LIBRARY = "opentelemetry"

logger = logging.getLogger("crow.telemetry")


class Once(logging.Handler):
    """Says once that nothing can be sent: the library says so with every try."""

    is_said = False

    def emit(self, record: logging.LogRecord) -> None:
        """Say the first warning."""
        if not self.is_said:
            self.is_said = True
            text = " ".join(record.getMessage().split())
            logger.warning("telemetry is not received: %.300s", text)


def providers(tracers: Any, meters: Any, endpoint: str) -> tuple[Any, Any, bool]:
    """The providers of tracers and meters, and whether they are ours, to be shut down."""
    if tracers is None and meters is None and is_ours(endpoint):
        return *_own(endpoint.rstrip("/")), True
    known = tracers or trace.get_tracer_provider(), meters or metrics.get_meter_provider()
    return *known, False


def is_ours(endpoint: str) -> bool:
    """True where a collector is named, and the program has set no provider."""
    is_set = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    return not is_set and _is_wanted(endpoint)


def check(endpoint: str) -> None:
    """Raise `ExtensionError` where what sends is wanted and missing; nothing of it is imported."""
    try:
        is_there = not is_ours(endpoint) or all(map(find_spec, (SDK, EXPORTER)))
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        raise ExtensionError(MISSING)


def _is_wanted(endpoint: str) -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    names = (ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
    return bool(endpoint) or any(map(os.environ.get, names))


def _own(endpoint: str) -> tuple[Any, Any]:
    """Providers of our own; what the environment says of them counts first."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    library = logging.getLogger(LIBRARY)
    if not library.handlers:  # else the program hears it, as it wants to
        library.addHandler(Once(logging.WARNING))
        library.propagate = False
    named = endpoint and not _is_wanted("")
    where = {kind: f"{endpoint}/v1/{kind}" if named else None for kind in ("traces", "metrics")}
    own = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "crow"}
    resource = Resource.create(own)
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    if os.environ.get("OTEL_TRACES_EXPORTER") not in NEVER:
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(where["traces"])))
    readers: list[Any] = []
    if os.environ.get("OTEL_METRICS_EXPORTER") not in NEVER:
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter(where["metrics"]))]
    return tracers, MeterProvider(readers, resource=resource, shutdown_on_exit=False)
