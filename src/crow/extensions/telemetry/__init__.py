"""Spans and metrics of OpenTelemetry, by its conventions for generative AI.

What they say is in `spans`, where they go in `sending`. OpenTelemetry is imported when
the extension is used, and what sends when the first prompt comes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crow import Context, hook
from crow.errors import ExtensionError
from crow.hooks import FIRST, LAST, Record
from crow.keys import CARRIER, TRACE_CONTEXT, Key

if TYPE_CHECKING:
    from crow import (
        Agent,
        CompactContext,
        Completion,
        RunContext,
        SessionContext,
        ToolContext,
        ToolResult,
        TurnContext,
    )
    from crow.events import Delta
    from crow.extensions.telemetry.spans import Run, Telemetry
    from crow.hooks import Next, NextCall, NextRequest

logger = logging.getLogger("crow.telemetry")

NAME = "telemetry"
MISSING = "OpenTelemetry is not installed: pip install 'crow-acp[otel]'"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CARRIED = ("traceparent", "tracestate", "baggage")
NOT_CAPTURED = ("", "false", "0", "no_content")
RUN: Key[Run] = Key(NAME)
SEEN: Key[Mapping[str, str]] = Key("telemetry.seen")
"""The client's trace context that a run was a part of already."""
COMPACTED: Key[tuple[int, int]] = Key("telemetry.compacted")


@dataclass(frozen=True)
class TelemetryOptions:
    """The settings of spans and metrics."""

    content: bool = False
    """Put messages, arguments and results on spans."""
    endpoint: str = ""
    """The collector's URL for OTLP over HTTP, where `OTEL_EXPORTER_OTLP_ENDPOINT` names none."""


class TelemetryHook:
    """Makes spans and metrics of OpenTelemetry, by its conventions for generative AI.

    They go to the providers that are given, else to those that the program has set, else to the
    collector that ``endpoint`` or ``OTEL_EXPORTER_OTLP_ENDPOINT`` names, over OTLP. The trace goes
    on in what is asked: models, MCP servers, commands and hooks. ``content`` puts messages,
    arguments and results on the spans.
    """

    name = NAME
    order = 80
    options = TelemetryOptions

    def __init__(
        self,
        *,
        content: bool = False,
        endpoint: str = "",
        tracer_provider: Any = None,
        meter_provider: Any = None,
    ) -> None:
        self.content = content or os.environ.get(CONTENT, "").lower() not in NOT_CAPTURED
        self.endpoint = endpoint
        self.given = tracer_provider, meter_provider
        self._telemetry: Telemetry | None = None

    @property
    def telemetry(self) -> Telemetry:
        """What makes spans, from the first prompt on."""
        if self._telemetry is None:
            from crow.extensions.telemetry.sending import providers
            from crow.extensions.telemetry.spans import Telemetry

            self._telemetry = Telemetry(*providers(*self.given, self.endpoint), self.content)
        return self._telemetry

    def init_agent(self, agent: Agent) -> None:
        """Look on at all hooks. Raises `ExtensionError` where the library is missing."""
        try:
            from crow.extensions.telemetry.sending import check
        except ImportError:
            raise ExtensionError(MISSING) from None
        if self.given == (None, None):
            check(self.endpoint)

        def hooked(record: Record, ctx: Context) -> None:
            run = RUN.get(ctx)
            in_use = agent.extensions.get(NAME) is self
            if run is not None and in_use and ctx.agent is agent and record.owner != NAME:
                self.telemetry.hooked(run, record)

        agent.hooks.watchers.append(hooked)

    async def lifespan(self, agent: Agent) -> AsyncIterator[None]:
        """Send what is left when the agent ends; a sub-agent's goes with its caller's."""
        yield
        if self._telemetry is not None and agent.parent is None:
            await asyncio.to_thread(self._telemetry.close)
            self._telemetry = None

    def carrier(self, ctx: Any) -> Mapping[str, str]:
        """The trace context of what a context is about."""
        run = RUN.get(ctx)
        if run is None:
            return TRACE_CONTEXT.get(ctx.session.root) or {}
        call = getattr(ctx, "call", None)
        with harmless():
            return self.telemetry.carrier(run, call.id if call is not None else "")
        return {}

    # a run

    @hook("before_run", order=FIRST - 1)
    def before_run(self, ctx: RunContext) -> None:
        """Begin the span of a run, in the trace of the client, the program or its environment."""
        with harmless():
            self._begin(ctx)

    def _begin(self, ctx: RunContext) -> None:
        told = TRACE_CONTEXT.get(ctx)
        is_new = told is not None and told is not SEEN.get(ctx)
        last = ctx.state.get("last")
        RUN.set(
            ctx, run := self.telemetry.begin(ctx, told if is_new else None, surrounding(), last)
        )
        if told is not None:
            SEEN.set(ctx, told)
        CARRIER.set(ctx, self.carrier)
        ctx.state["last"] = run.traceparent

    @hook("around_run", order=FIRST - 1)
    async def around_run(self, ctx: RunContext, call_next: Next) -> Any:
        """Let what is done in the run be a part of its span."""
        run = RUN.get(ctx)
        if run is None:
            return await call_next()
        with run.current():
            return await call_next()

    @hook("after_loop", order=FIRST - 1)
    def after_loop(self, ctx: RunContext) -> None:
        """Note how a run ended."""
        if (run := RUN.get(ctx)) is not None:
            self.telemetry.ended(run, ctx)

    @hook("after_run", order=FIRST - 1)
    def after_run(self, ctx: RunContext) -> None:
        """End the span; what hooks have done until now is in it."""
        CARRIER.pop(ctx)
        if (run := RUN.pop(ctx)) is not None:
            run.close()

    # a request

    @hook("around_llm_request", order=LAST - 1)
    async def around_llm_request(
        self, ctx: TurnContext, call_next: NextRequest
    ) -> AsyncGenerator[Delta | Completion, None]:
        """Make a span of every attempt."""
        run = RUN.get(ctx)
        if run is None:
            async for piece in call_next():
                yield piece
            return
        from crow.extensions.telemetry.chat import Chat

        with Chat(self.telemetry, run, ctx) as chat:
            async for piece in call_next():
                chat.hear(piece)
                yield piece

    @hook("after_turn", order=LAST + 1)
    def after_turn(self, ctx: TurnContext) -> None:
        """Count the turns."""
        if (run := RUN.get(ctx)) is not None:
            run.turn += 1

    # a call

    @hook("before_tool", order=FIRST - 1)
    def before_tool(self, ctx: ToolContext) -> None:
        """Begin the span of a call; what is decided about it is a part of that."""
        if (run := RUN.get(ctx)) is not None:
            with harmless():
                self.telemetry.call(run, ctx)

    @hook("on_permission", order=LAST + 1)
    def on_permission(self, ctx: ToolContext) -> None:
        """Note the rule that wants the user's answer."""
        if (run := RUN.get(ctx)) is not None and ctx.question is not None:
            run.rules[ctx.call.id] = ctx.question.rule or ""

    @hook("around_tool", order=FIRST - 1)
    async def around_tool(self, ctx: ToolContext, call_next: NextCall) -> ToolResult:
        """Let what the tool does be a part of its span."""
        run = RUN.get(ctx)
        if run is None:
            return await call_next()
        with run.running(ctx.call.id):
            return await call_next()

    @hook("after_tool", order=FIRST - 1)
    def after_tool(self, ctx: ToolContext) -> None:
        """End the span of a call."""
        if (run := RUN.get(ctx)) is not None:
            self.telemetry.called(run, ctx)

    # the history

    @hook("before_compact", order=FIRST - 1)
    async def before_compact(self, ctx: CompactContext) -> None:
        """Note when a history begins to be replaced, and how long it is."""
        tokens = (await ctx.get_token_count())["total_tokens"]
        if (run := RUN.get(ctx)) is not None:
            COMPACTED.set(ctx, (run.clock(), tokens))

    @hook("after_compact", order=FIRST - 1)
    async def after_compact(self, ctx: CompactContext) -> None:
        """Make a span of it."""
        run, began = RUN.get(ctx), COMPACTED.pop(ctx)
        if run is not None and began is not None:
            tokens = (await ctx.get_token_count())["total_tokens"]
            self.telemetry.compacted(run, ctx.trigger, *began, tokens)

    def on_session_start(self, ctx: SessionContext) -> None:
        """Let a session that goes on be told from its beginning."""
        if ctx.source == "fork":
            ctx.state.pop("last", None)


@contextmanager
def harmless() -> Generator[None]:
    """Let what fails here be logged and stop nothing: a gate that fails would deny."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - providers are anybody's
        logger.warning("telemetry failed: %s: %s", type(error).__name__, error)


def surrounding() -> dict[str, str]:
    """The trace context that this process was started in, as its environment says."""
    found = {name: os.environ.get(name.upper(), "") for name in CARRIED}
    return {name: text for name, text in found.items() if text} if found["traceparent"] else {}
