"""Spans and metrics of runs, requests, calls, decisions, hooks and compactions."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

from opentelemetry import context as contexts
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    Link,
    Span,
    SpanKind,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from crow import LLM, Deny, Stop, __version__
from crow.errors import ModelError
from crow.extensions.telemetry.content import as_json
from crow.extensions.telemetry.metrics import Metrics
from crow.extensions.telemetry.names import (
    CONVERSATION,
    OPERATION,
    error_of,
)
from crow.ports import model_named

if TYPE_CHECKING:
    from crow import RunContext, ToolContext
    from crow.hooks import Record

W3C = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
"""Whatever the program uses else: MCP and ACP know these."""
SLOW = 0.001
PATIENCE = 3.0
"""Seconds for which the end waits for a collector."""
USER = "user"


class Run:
    """The span of a run, and those of its calls; ``context`` is what is done in it."""

    def __init__(self, span: Span, parent: Context, attributes: dict[str, Any]) -> None:
        self.span = span
        self.context = set_span_in_context(span, parent)
        self.parent = get_current_span(parent).get_span_context()
        self.attributes = attributes
        self.began = self.clock()
        self.end: int | None = None
        self.calls: dict[str, Call] = {}
        self.rules: dict[str, str] = {}
        self.turn = 1
        self.requests = self.called = 0

    @staticmethod
    def clock() -> int:
        """Now, as spans count it."""
        return time.time_ns()

    @property
    def traceparent(self) -> str:
        """Which span it is, for a link to it; empty where nothing is traced."""
        carrier: dict[str, str] = {}
        W3C.inject(carrier, self.context)
        return carrier.get("traceparent", "")

    @contextmanager
    def current(self) -> Generator[None]:
        """Let what is done here be a part of it."""
        with attached(self.context):
            yield

    @contextmanager
    def running(self, call_id: str) -> Generator[None]:
        """Let what is done here be a part of a call."""
        call = self.calls.get(call_id)
        if call is None:
            yield
            return
        call.is_running = True
        try:
            with attached(call.context):
                yield
        finally:
            call.is_running = False

    def context_of(self, call_id: str | None) -> Context:
        """Where something belongs: to a call, as long as there is its span, else to the run."""
        call = self.calls.get(call_id or "")
        return call.context if call else self.context

    def close(self) -> None:
        """End it, and calls that nobody has ended."""
        for call in self.calls.values():
            call.span.end()
        self.span.end(self.end)


class Call:
    """The span of a call."""

    def __init__(self, span: Span, parent: Context) -> None:
        self.span = span
        self.context = set_span_in_context(span, parent)
        self.is_running = False


class Telemetry:
    """Makes spans and metrics with the providers of these."""

    def __init__(self, tracers: Any, meters: Any, is_own: bool, with_content: bool) -> None:
        self._providers = (tracers, meters) if is_own else ()
        self._tracer = tracers.get_tracer("crow", __version__)
        self.metrics = Metrics(meters.get_meter("crow", __version__))
        self.content = with_content

    def close(self) -> None:
        """Send what is left, where the providers are ours; nobody waits for long for that."""
        threads = [Thread(target=each.shutdown, daemon=True) for each in self._providers]
        for thread in threads:
            thread.start()
        until = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def span(
        self,
        name: str,
        parent: Context,
        attributes: Mapping[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
        **more: Any,
    ) -> Span:
        """A span that has begun."""
        return self._tracer.start_span(name, parent, kind, attributes, **more)

    def carrier(self, run: Run, call_id: str) -> dict[str, str]:
        """The trace context of what is done just now, or of what a call is about to do."""
        now, call = get_current_span().get_span_context(), run.calls.get(call_id)
        is_inside = now.is_valid and now.span_id != run.parent.span_id
        if call is not None and not call.is_running:
            context = call.context
        else:
            context = contexts.get_current() if is_inside else run.context
        told: dict[str, str] = {}
        W3C.inject(told, context)
        return told

    # runs

    def begin(
        self,
        ctx: RunContext,
        told: Mapping[str, str] | None,
        surrounding: Mapping[str, str],
        last: str | None,
    ) -> Run:
        """The run of a prompt: part of the trace that is told, the current or the surrounding."""
        parent = contexts.get_current()
        if told or not get_current_span(parent).get_span_context().is_valid:
            parent = W3C.extract(told or surrounding, parent)
        session = ctx.session
        known: dict[str, Any] = {CONVERSATION: session.id}
        agent = session.agent_type or "crow"
        links = [Link(before)] if (before := _span_of(last)).is_valid else []
        every = {OPERATION: "invoke_agent", "gen_ai.agent.name": agent, **known}
        if model := session.model or ((llm := llm_of(ctx)) and llm.model):
            every["gen_ai.request.model"] = model
        span = self.span(f"invoke_agent {agent}", parent, every, links=links)
        return Run(span, parent, {**known, "gen_ai.agent.name": agent})

    def ended(self, run: Run, ctx: RunContext) -> None:
        """Say how a run ended, and count."""
        run.end = run.clock()
        reply = ctx.reply
        agent = {"gen_ai.agent.name": run.attributes["gen_ai.agent.name"]}
        attributes: dict[str, Any] = {OPERATION: "invoke_agent", **agent}
        run.span.set_attribute("crow.stop_reason", reply.stop_reason)
        if (cost := reply.usage.get("cost")) is not None:
            run.span.set_attribute("crow.cost.usd", cost)
        if reply.error is not None:
            attributes["error.type"] = failed(run.span, reply.error)
        self.metrics.runs.record((run.end - run.began) / 1e9, attributes)
        self.metrics.requests.record(run.requests, agent)
        self.metrics.called.record(run.called, agent)

    # calls

    def call(self, run: Run, ctx: ToolContext) -> Call:
        """A call that is judged now; it is one and the same where it is judged again."""
        known = run.calls.get(ctx.call.id)
        if known is not None:
            return known
        attributes = {
            OPERATION: "execute_tool",
            "gen_ai.tool.name": ctx.name,
            "gen_ai.tool.call.id": ctx.call.id,
            "gen_ai.tool.type": "extension" if ctx.name.startswith("mcp__") else "function",
            "crow.turn.number": run.turn,
            **run.attributes,
        }
        span = self.span(f"execute_tool {ctx.name}", run.context, attributes)
        run.calls[ctx.call.id] = call = Call(span, run.context)
        run.called += 1
        return call

    def called(self, run: Run, ctx: ToolContext) -> None:
        """End a call; that somebody has denied it is no error."""
        span = self.call(run, ctx).span
        attributes: dict[str, Any] = {
            OPERATION: "execute_tool",
            "gen_ai.tool.name": ctx.name,
            "gen_ai.agent.name": run.attributes["gen_ai.agent.name"],
            "crow.outcome": ctx.outcome,
        }
        span.set_attribute("crow.outcome", ctx.outcome)
        if ctx.outcome == "error":
            attributes["error.type"] = "tool_error"
            span.set_attribute("error.type", "tool_error")
            span.set_status(StatusCode.ERROR)
        if self.content:
            span.set_attribute("gen_ai.tool.call.arguments", as_json(ctx.args))
            span.set_attribute("gen_ai.tool.call.result", ctx.output)
        self.metrics.tools.record(ctx.duration, attributes)
        span.end()
        del run.calls[ctx.call.id]

    # hooks

    def hooked(self, run: Run, record: Record) -> None:
        """Tell of a hook: what the user or a hook has decided, and what took time or changed."""
        parent, now = run.context_of(record.call_id), run.clock()
        began = now - round(record.seconds * 1e9)
        if record.owner == USER or isinstance(record.answer, Deny | Stop):
            self._decided(run, record, parent, began, now)
        if record.owner != USER and _is_noteworthy(record):
            self._hook(run, record, parent, began, now)

    def _decided(self, run: Run, record: Record, parent: Context, began: int, now: int) -> None:
        verdict = record.answer
        by_user, rule = record.owner == USER, run.rules.pop(record.call_id or "", "")
        chosen = verdict if isinstance(verdict, str) else type(verdict).__name__.lower()
        attributes: dict[str, Any] = {"crow.permission.by": record.owner, **run.attributes}
        if by_user:
            attributes |= {"crow.permission.option": record.hook}
            attributes |= {"crow.blocked_on_user.ms": round(record.seconds * 1000, 3)}
            self.metrics.blocked.record(record.seconds, {"crow.permission.decision": chosen})
        if rule := rule or str(getattr(verdict, "rule", None) or ""):
            attributes["crow.permission.rule"] = rule
        attributes["crow.permission.decision"] = chosen
        self.span("crow.permission", parent, attributes, start_time=began).end(now)

    def _hook(self, run: Run, record: Record, parent: Context, began: int, now: int) -> None:
        attributes: dict[str, Any] = {
            OPERATION: "execute_hook",
            "crow.hook.point": record.event,
            "crow.hook.owner": record.owner,
            "crow.hook.name": record.hook,
            **run.attributes,
        }
        if record.answer is not None:
            attributes["crow.hook.verdict"] = type(record.answer).__name__.lower()
        if record.changed:
            attributes["crow.hook.changed"] = tuple(record.changed)
        span = self.span(f"execute_hook {record.event}", parent, attributes, start_time=began)
        if record.error is not None:
            span.set_attribute("error.type", record.error.partition(":")[0])
            span.set_status(StatusCode.ERROR, record.error if self.content else None)
        span.end(now)

    def compacted(self, run: Run, trigger: str, began: int, before: int, after: int) -> None:
        """Tell of a history that was replaced."""
        attributes = {
            "gen_ai.conversation.compacted": True,
            "crow.compact.trigger": trigger,
            "crow.compact.tokens_before": before,
            "crow.compact.tokens_after": after,
            **run.attributes,
        }
        self.span("crow.compact", run.context, attributes, start_time=began).end()


@contextmanager
def attached(context: Context) -> Generator[None]:
    """Let a context be the current one here."""
    token = contexts.attach(context)
    try:
        yield
    finally:
        contexts.detach(token)


def failed(span: Span, error: BaseException) -> str:
    """Mark a span as failed; what sort of error it was."""
    kind = error_of(error)
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
    return kind


def _is_noteworthy(record: Record) -> bool:
    """True for a hook that has changed, decided, failed, or taken a while.

    A wrap takes as long as what it goes around, so that its time says nothing.
    """
    did = record.answer is not None or record.changed or record.error is not None
    is_slow = record.seconds >= SLOW and not record.event.startswith("around_")
    return bool(did) or is_slow


def llm_of(ctx: Any) -> LLM | None:
    """The LLM that is asked, by whatever name; None where there is none."""
    try:
        model = getattr(ctx, "model", None) or ctx.session.model
        return model_named(ctx.agent.llm, model or None)
    except ModelError:
        return None


def _span_of(traceparent: str | None) -> Any:
    """The span that a text of ours names."""
    carrier = {"traceparent": traceparent} if traceparent else {}
    found = get_current_span(W3C.extract(carrier, Context())).get_span_context()
    return found if carrier else INVALID_SPAN_CONTEXT
