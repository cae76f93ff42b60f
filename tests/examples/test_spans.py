"""A hook's span is in the trace of its run, in the SDK's memory."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.examples.test_examples import load

from crow.extensions import TelemetryHook
from crow.testing import Pilot, call


def test_a_hooks_span_is_in_the_span_of_its_call(crow: Pilot, monkeypatch: pytest.MonkeyPatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = load("spans")
    monkeypatch.setattr(spans, "tracer", provider.get_tracer("test"))
    crow.configure(allow=["Bash"])
    crow.use(TelemetryHook(tracer_provider=provider), spans)
    crow.run("Go", call("Bash", command="echo hello"), "Done.")
    crow.close()
    ended = {span.name: span for span in exporter.get_finished_spans()}
    measured, tool = ended["measure output"], ended["execute_tool Bash"]
    assert measured.attributes == {"example.output.characters": 5}
    assert measured.parent is not None
    assert tool.context is not None
    assert measured.parent.span_id == tool.context.span_id
    assert "hello" not in str([dict(span.attributes or {}) for span in ended.values()])
