"""Spans and metrics as a collector gets them, from the whole agent at work."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.extensions.collector import Collector

from crow import Agent, Deny, ToolResult, __version__, tool
from crow.errors import ModelError
from crow.extensions import CostHook, McpHook, SubagentsHook, TelemetryHook
from crow.llm.chat import ChatCompletions
from crow.testing import FakeEditor, ScriptedModel, StrictChat, call, text
from crow.testing.pilot import Pilot

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
SERVER = Path(__file__).parent / "mcp/servers/raw.py"
ROTEL = importlib.util.find_spec("rotel")


class Memory:
    """The SDK's exporters in memory, and an extension that uses them."""

    def __init__(self, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.hook = TelemetryHook(tracer_provider=tracers, meter_provider=meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return [*self.exporter.get_finished_spans()]

    def named(self, start: str) -> list[ReadableSpan]:
        return sorted(
            (each for each in self.spans if each.name.startswith(start)),
            key=lambda each: each.start_time or 0,
        )

    def one(self, start: str) -> ReadableSpan:
        (span,) = self.named(start)
        return span

    @property
    def metrics(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: [*metric.data.data_points]
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def told(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or MappingProxyType({})


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def header_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}-{span.context.span_id:016x}"


@pytest.fixture
def memory() -> Memory:
    return Memory()


async def test_the_scope_of_spans_and_metrics_has_the_version_of_crow(
    memory: Memory, tmp_path: Path
) -> None:
    async with Agent(llm=ScriptedModel("Done."), hooks=[memory.hook]) as agent:
        await agent.run("Go", cwd=tmp_path)
    scopes = {each.instrumentation_scope for each in memory.spans}
    data = memory.reader.get_metrics_data()
    assert data is not None
    scopes |= {each.scope for resource in data.resource_metrics for each in resource.scope_metrics}
    assert {(each.name, each.version) for each in scopes if each} == {("crow", __version__)}


async def test_a_run_its_requests_and_its_calls(memory: Memory, tmp_path: Path) -> None:
    usage: Any = {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "cached_tokens": 60,
        "cache_write_tokens": 30,
        "reasoning_tokens": 5,
    }
    model = ScriptedModel(
        call("Bash", command="echo $TRACEPARENT"), text("Done.", usage=usage), model="gpt-5"
    )
    price: Any = {"gpt-5": {"input": 1.0, "output": 2.0}}
    async with Agent(model, hooks=[CostHook(price), memory.hook]) as agent:
        reply = await agent.run("Go", cwd=tmp_path)
    run, bash, (_, chat) = (
        memory.one("invoke_agent"),
        memory.one("execute_tool"),
        memory.named("chat"),
    )
    assert (run.name, run.kind, run.parent) == ("invoke_agent crow", SpanKind.INTERNAL, None)
    assert told(run)["gen_ai.operation.name"] == "invoke_agent"
    assert told(run)["gen_ai.conversation.id"] == reply.session.id
    assert told(run)["crow.stop_reason"] == "end_turn"
    assert (chat.name, chat.kind, parent_of(chat)) == ("chat gpt-5", SpanKind.CLIENT, id_of(run))
    about = told(chat)
    assert about["gen_ai.provider.name"] == "openai"
    assert about["gen_ai.response.finish_reasons"] == ("stop",)
    assert about["gen_ai.response.time_to_first_chunk"] > 0
    assert about["crow.turn.number"] == 2
    assert about["crow.cost.usd"] == pytest.approx(reply.usage.get("cost"))
    tokens = {k.removeprefix("gen_ai.usage."): v for k, v in about.items() if ".usage." in k}
    assert tokens == {
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read.input_tokens": 60,
        "cache_write.input_tokens": 30,
        "reasoning.output_tokens": 5,
    }
    assert parent_of(bash) == id_of(run)
    assert told(bash)["gen_ai.tool.call.id"] == "call_1"
    assert told(bash)["crow.outcome"] == "ok"
    assert header_of(bash) in str(reply.session.messages[2]["content"])
    assert not [name for each in memory.spans for name in told(each) if "messages" in name]
    metrics = memory.metrics
    assert metrics["gen_ai.client.inference.usage.cache_read.input_tokens"][0].value == 60
    assert metrics["crow.cost"][0].value == pytest.approx(reply.usage.get("cost"))
    assert sum(each.count for each in metrics["gen_ai.client.inference.duration"]) == 2
    assert metrics["gen_ai.invoke_agent.tool_calls"][0].sum == 1
    assert metrics["gen_ai.execute_tool.duration"][0].count == 1


def test_decisions_say_who_decided_and_how_long_the_user_took(crow: Pilot, memory: Memory) -> None:
    def before_tool(call: Any) -> Any:
        return Deny("no") if call.input.get("command") == "touch c" else None

    crow.use(memory.hook, before_tool)
    crow.user.answers("allow_once", "reject_once")
    crow.run("Go", *(call("Bash", command=f"touch {name}") for name in "abc"), "Done.")
    calls = memory.named("execute_tool")
    assert [told(each)["crow.outcome"] for each in calls] == ["ok", "denied", "denied"]
    assert {each.status.status_code for each in calls} == {StatusCode.UNSET}
    allowed, rejected, denied = memory.named("crow.permission")
    assert [parent_of(each) for each in (allowed, rejected, denied)] == [id_of(c) for c in calls]
    assert told(allowed)["crow.permission.decision"] == "allow"
    assert told(allowed)["crow.permission.by"] == "user"
    assert told(allowed)["crow.blocked_on_user.ms"] > 0
    assert told(rejected)["crow.permission.decision"] == "deny"
    assert told(denied)["crow.permission.by"] == "before_tool"
    assert sum(each.count for each in memory.metrics["crow.blocked_on_user.duration"]) == 2


async def test_hooks_that_do_something_have_spans(memory: Memory) -> None:
    def before_llm_request(ctx: Any) -> None:
        ctx.params = {"temperature": 0.5}

    def after_turn() -> None:
        raise ValueError("broken")

    async def on_stop() -> None:
        await asyncio.sleep(0.01)

    def before_run() -> None:
        pass

    hooks = [memory.hook, before_llm_request, after_turn, on_stop, before_run]
    async with Agent(ScriptedModel("Hello."), hooks=hooks, tools=[]) as agent:
        await agent.run("Go")
    spans = {each.name.removeprefix("execute_hook "): each for each in memory.named("execute_hook")}
    idle = spans.pop("before_run", None)  # one that does nothing has one where that took a while
    assert idle is None or (idle.end_time or 0) - (idle.start_time or 0) >= 1_000_000
    assert spans.keys() == {"before_llm_request", "after_turn", "on_stop"}
    assert told(spans["before_llm_request"])["crow.hook.changed"] == ("params",)
    assert told(memory.one("chat"))["gen_ai.request.temperature"] == 0.5
    assert told(spans["after_turn"])["error.type"] == "ValueError"
    assert spans["after_turn"].status.status_code is StatusCode.ERROR
    assert {parent_of(each) for each in spans.values()} == {id_of(memory.one("invoke_agent"))}


async def test_what_fails_says_why(memory: Memory) -> None:
    @tool
    def fail() -> ToolResult:
        """Fail."""
        return ToolResult.failure("no")

    model = ScriptedModel(call("fail"), ModelError("busy", kind="overloaded"))
    async with Agent(model, hooks=[memory.hook], tools=[fail]) as agent:
        with pytest.raises(ModelError):
            await agent.run("Go")
    run, used = memory.one("invoke_agent"), memory.one("execute_tool")
    chat = memory.named("chat")[-1]
    assert [told(each)["error.type"] for each in (run, used, chat)] == [
        "overloaded",
        "tool_error",
        "overloaded",
    ]
    assert {each.status.status_code for each in (run, used, chat)} == {StatusCode.ERROR}


async def test_a_run_that_is_cancelled_ends_all_its_spans(memory: Memory) -> None:
    begun = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    async with Agent(ScriptedModel(call("wait")), hooks=[memory.hook], tools=[wait]) as agent:
        session = await agent.new_session()
        prompt = asyncio.create_task(agent.prompt(session, "Go"))
        await begun.wait()
        agent.cancel(session)
        await prompt
    assert told(memory.one("invoke_agent"))["crow.stop_reason"] == "cancelled"
    assert told(memory.one("execute_tool"))["crow.outcome"] == "cancelled"


async def test_a_sub_agent_is_a_part_of_the_call_that_began_it(
    memory: Memory, tmp_path: Path
) -> None:
    task = call("Agent", description="look", prompt="Look", subagent_type="general-purpose")
    model = ScriptedModel(task, "Seen.", "Done.")
    async with Agent(model, hooks=[SubagentsHook([]), memory.hook]) as agent:
        reply = await agent.run("Go", cwd=tmp_path)
    outer, inner = memory.named("invoke_agent")
    assert (outer.name, inner.name) == ("invoke_agent crow", "invoke_agent general-purpose")
    assert parent_of(inner) == id_of(memory.one("execute_tool Agent"))
    assert told(outer)["gen_ai.conversation.id"] == reply.session.id
    assert told(inner)["gen_ai.conversation.id"] != reply.session.id
    assert parent_of(memory.named("chat")[1]) == id_of(inner)


async def test_a_history_that_is_replaced_and_a_prompt_that_follows(memory: Memory) -> None:
    async def after_turn(ctx: Any) -> None:
        await ctx.compact([], "in short", "manual")

    async with Agent(ScriptedModel("One.", "Two."), hooks=[memory.hook, after_turn]) as agent:
        session = await agent.new_session()
        await agent.prompt(session, "Go")
        await agent.prompt(session, "On")
    compacted, first, second = memory.named("crow.compact")[0], *memory.named("invoke_agent")
    assert told(compacted)["crow.compact.trigger"] == "manual"
    assert parent_of(compacted) == id_of(first)
    assert [link.context.span_id for link in second.links] == [id_of(first)]


async def test_content_is_on_spans_where_it_is_wanted(tmp_path: Path) -> None:
    memory = Memory(content=True)
    model = ScriptedModel(call("Bash", command="echo hi"), "Done.")
    async with Agent(model, hooks=[memory.hook]) as agent:
        await agent.run("Go", cwd=tmp_path)
    chat, bash = memory.named("chat")[1], memory.one("execute_tool")
    asked = json.loads(told(chat)["gen_ai.input.messages"])
    assert [each["role"] for each in asked] == ["user", "assistant", "tool"]
    assert asked[1]["parts"][1]["name"] == "Bash"
    said = json.loads(told(chat)["gen_ai.output.messages"])
    assert said[0]["parts"] == [{"type": "text", "content": "Done."}]
    assert json.loads(told(bash)["gen_ai.tool.call.arguments"])["command"] == "echo hi"
    assert "hi" in told(bash)["gen_ai.tool.call.result"]


async def test_the_trace_of_an_editor_goes_on_in_servers(memory: Memory, tmp_path: Path) -> None:
    log = tmp_path / "log"
    args = ["-SE", str(SERVER), json.dumps({"tools": ["echo"]})]
    server = {"command": sys.executable, "args": args, "env": {"TRACE": str(log)}}
    model = ScriptedModel(call("mcp__raw__echo"), "Done.", "Again.")
    editor = FakeEditor()
    hooks = [McpHook({"raw": server}, wait=30), memory.hook]
    async with editor.connected(Agent(llm=model, hooks=hooks)):
        session = await editor.new_session(tmp_path)
        said = [{"type": "text", "text": "Go"}]
        params = {"sessionId": session, "prompt": said}
        await editor.wire.request("session/prompt", {**params, "_meta": {"traceparent": PARENT}})
        await editor.wire.request("session/prompt", params)
    first, second = memory.named("invoke_agent")
    assert first.context is not None
    assert f"{first.context.trace_id:032x}" == TRACE
    assert first.parent is not None
    assert f"{first.parent.span_id:016x}" in PARENT
    assert second.parent is None
    used = memory.one("execute_tool")
    assert told(used)["gen_ai.tool.type"] == "extension"
    (line,) = [each for each in log.read_text().splitlines() if each.startswith("traceparent")]
    assert header_of(used) in line


async def test_an_endpoint_gets_the_span_that_asks_it(memory: Memory) -> None:
    async with StrictChat() as endpoint:
        endpoint.say("Hello.")
        model = ChatCompletions("gpt-5", endpoint.url, "key")
        async with Agent(model, hooks=[memory.hook], tools=[]) as agent:
            await agent.run("Hello?")
        (request,) = endpoint.requests
    chat = memory.one("chat")
    assert header_of(chat) in request.headers["traceparent"]
    assert "baggage" not in request.headers
    assert told(chat)["server.address"] == "127.0.0.1"


async def test_spans_of_the_program_and_of_its_tools_are_in_the_same_trace(memory: Memory) -> None:
    tracer = memory.hook.given[0].get_tracer("program")

    @tool
    def look() -> str:
        """Look."""
        with tracer.start_as_current_span("looking"):
            return "seen"

    async with Agent(
        ScriptedModel(call("look"), "Done."), hooks=[memory.hook], tools=[look]
    ) as agent:
        with tracer.start_as_current_span("program"):
            await agent.run("Go")
    assert parent_of(memory.one("invoke_agent")) == id_of(memory.one("program"))
    assert parent_of(memory.one("looking")) == id_of(memory.one("execute_tool"))


def test_removed_it_makes_no_spans(crow: Pilot, memory: Memory) -> None:
    crow.use(memory.hook)
    crow.run("Go", "Done.")
    count = len(memory.spans)
    crow.agent.remove("telemetry")
    crow.run("On", "Done.")
    assert len(memory.spans) == count > 0


def in_a_pipe(home: Path, endpoint: str, **more: str) -> subprocess.CompletedProcess[str]:
    """``crow run`` with the rehearsal model."""
    (home / ".crow").mkdir(parents=True)
    seen = {"type": "command", "command": "echo $TRACEPARENT > $HOME/seen"}
    settings = {"extensions": {"telemetry": {}}, "hooks": {"PreToolUse": [{"hooks": [seen]}]}}
    (home / ".crow/settings.json").write_text(json.dumps(settings))
    left = {key: text for key, text in os.environ.items() if not key.startswith(("OTEL_", "CROW_"))}
    env = {**left, "HOME": str(home), "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **more}
    argv = [sys.executable, "-m", "crow", "run", "Read the file README.md"]
    return subprocess.run(argv, cwd=home, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_command_sends_to_a_collector_over_http(tmp_path: Path) -> None:
    with Collector() as collector:
        ran = in_a_pipe(tmp_path / "home", collector.url, TRACEPARENT=PARENT)
    assert ran.returncode == 0, ran.stderr
    spans = {span.name: span for span in collector.spans}
    assert {"invoke_agent crow", "chat rehearsal", "execute_tool Read"} <= spans.keys()
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert spans["invoke_agent crow"].parent_span_id.hex() in PARENT
    seen = (tmp_path / "home/seen").read_text()
    assert f"{TRACE}-{spans['execute_tool Read'].span_id.hex()}" in seen
    assert "gen_ai.client.inference.duration" in collector.metrics
    assert collector.service == "crow"


@pytest.mark.slow
def test_a_collector_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    ran = in_a_pipe(tmp_path / "home", "http://127.0.0.1:9")
    assert ran.returncode == 0
    assert ran.stderr.count("telemetry is not received") == 1


@pytest.mark.slow
def test_without_what_sends_a_line_says_what_to_install(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    block = "import sys; sys.modules['opentelemetry.exporter'] = None"
    (hidden / "sitecustomize.py").write_text(block)
    ran = in_a_pipe(tmp_path / "home", "http://127.0.0.1:9", PYTHONPATH=str(hidden))
    assert ran.returncode == 0
    (line,) = [line for line in ran.stderr.splitlines() if "telemetry" in line]
    assert "pip install 'crow-acp[otel]'" in line


async def test_a_provider_that_fails_denies_nothing() -> None:
    class Broken(TracerProvider):
        def get_tracer(self, *args: Any, **more: Any) -> Any:
            raise RuntimeError("broken")

    hook = TelemetryHook(tracer_provider=Broken(shutdown_on_exit=False))
    async with Agent(ScriptedModel("Hello."), hooks=[hook], tools=[]) as agent:
        assert (await agent.run("Hello?")).text == "Hello."


@pytest.mark.slow
@pytest.mark.skipif(ROTEL is None, reason="rotel is not installed: uv pip install rotel")
def test_a_collector_that_others_wrote_hands_it_on(tmp_path: Path) -> None:
    assert ROTEL is not None
    assert ROTEL.origin is not None
    program = Path(ROTEL.origin).parent / "rotel-agent"
    with socket.socket() as free, socket.socket() as other:
        free.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, unused = free.getsockname()[1], other.getsockname()[1]
    with Collector() as collector:
        argv = [str(program), "start", "--otlp-http-endpoint", f"127.0.0.1:{port}"]
        argv += ["--otlp-grpc-endpoint", f"127.0.0.1:{unused}", "--exporter", "otlp"]
        argv += ["--otlp-exporter-protocol", "http", "--otlp-exporter-endpoint", collector.url]
        rotel = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until(lambda: is_listening(port))
            ran = in_a_pipe(tmp_path / "home", f"http://127.0.0.1:{port}")
            assert (ran.returncode, ran.stderr.count("telemetry")) == (0, 0)
            until(lambda: "invoke_agent crow" in {span.name for span in collector.spans})
        finally:
            rotel.terminate()
            rotel.wait(10)


def is_listening(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def until(is_so: Any) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
