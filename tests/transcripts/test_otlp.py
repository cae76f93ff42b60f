"""Traces in OTLP's JSON, as OpenTelemetry's own library writes it, read as conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.extensions.tools import shout

from crow import Agent, Deny
from crow.extensions import TelemetryHook
from crow.testing import ScriptedModel, call, text
from crow.transcripts import Transcript, UnknownTranscriptError, read
from crow.view.document import document

USAGE: Any = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100, "cached_tokens": 40}


async def traced(*, content: bool) -> str:
    """The spans of two prompts, with a call that a hook denies."""
    exporter = InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider(shutdown_on_exit=False)
    hook = TelemetryHook(tracer_provider=tracers, meter_provider=meters, content=content)
    script = [
        [text("On it.", usage=USAGE), call("shout", word="hi")],
        [call("shout", word="secret")],
        text("Done.", usage=USAGE),
        text("Again.", usage=USAGE),
    ]

    def judge(args: Any) -> Deny | None:
        return Deny("nobody's business") if args["word"] == "secret" else None

    agent = Agent(ScriptedModel(*script), hooks=[hook], tools=[shout])
    agent.hooks.register("before_tool", judge)
    async with agent:
        session = (await agent.run("Shout, please")).session
        await agent.run("And now?", session=session)
    return MessageToJson(encode_spans(exporter.get_finished_spans()))


def made_of(told: str) -> Any:
    made = read(told)
    assert isinstance(made, Transcript)
    return document(made.lines())


async def test_a_trace_with_what_was_said_is_the_conversation_with_its_hooks() -> None:
    doc = made_of(await traced(content=True))
    said = [(e["kind"], e.get("text") or e.get("name")) for e in doc["entries"]]
    kinds = [each for each in said if each[0] in ("prompt", "answer", "call")]
    assert kinds == [
        ("prompt", "Shout, please"),
        ("answer", "On it."),
        ("call", "shout"),
        ("call", "shout"),
        ("answer", "Done."),
        ("prompt", "And now?"),
        ("answer", "Again."),
    ]
    hi, secret = [entry for entry in doc["entries"] if entry["kind"] == "call"]
    assert (hi["args"], hi["output"], hi["outcome"]) == ({"word": "hi"}, "HI", "ok")
    assert secret["outcome"] == "denied"
    assert ("deny", "judge.judge") in [(d["verdict"], d["who"]) for d in secret["decisions"]]
    used = [
        entry["last"]["cached_tokens"] for entry in doc["entries"] if entry["kind"] == "request"
    ]
    assert used == [40, 40, 40]


async def test_a_trace_without_it_has_the_calls_the_hooks_and_the_tokens() -> None:
    doc = made_of(await traced(content=False))
    calls = [entry for entry in doc["entries"] if entry["kind"] == "call"]
    assert [(each["name"], each["outcome"]) for each in calls] == [
        ("shout", "ok"),
        ("shout", "denied"),
    ]
    assert "nobody's business" not in json.dumps(doc)
    assert doc["session"]["usage"]["input_tokens"] == 270


async def test_a_file_with_a_request_a_line_is_read_as_well(tmp_path: Path) -> None:
    whole = json.loads(await traced(content=True))
    lines = [json.dumps({"resourceSpans": [each]}) for each in whole["resourceSpans"]]
    assert made_of("\n".join(lines)) == made_of(json.dumps(whole))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_a_damaged_span_is_passed_over(value: Any) -> None:
    span = {"name": "chat", "startTimeUnixNano": value, "endTimeUnixNano": "2", "attributes": value}
    told = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span, value]}]}, value]})
    with pytest.raises(UnknownTranscriptError):
        read(told)
