"""The span of a request: what was sent to the model, and what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from opentelemetry import context as contexts
from opentelemetry.trace import SpanKind, set_span_in_context

from crow import Completion
from crow.events import Retrying
from crow.extensions.telemetry.content import answer, as_json, conversation, instructions
from crow.extensions.telemetry.names import OPERATION, PARAMS, provider_of, server_of, usage_of
from crow.extensions.telemetry.spans import Run, Telemetry, failed, llm_of

if TYPE_CHECKING:
    from crow import TurnContext
    from crow.events import Delta


class Chat:
    """The span of a request, which hears its answer."""

    def __init__(self, telemetry: Telemetry, run: Run, ctx: TurnContext) -> None:
        llm = llm_of(ctx)
        model = ctx.model or (llm.model if llm else "")
        self._telemetry = telemetry
        self._run = run
        self._first: int | None = None
        self._attributes = {
            OPERATION: "chat",
            "gen_ai.provider.name": provider_of(model, llm),
            "gen_ai.request.model": model,
            **dict(server_of(llm)),
        }
        asked = {name: ctx.params[ours] for ours, name in PARAMS.items() if ours in ctx.params}
        own = {"gen_ai.request.stream": True, "crow.turn.number": run.turn}
        every = {**self._attributes, **run.attributes, **own, **asked}
        self._trace, self._known = ctx.session.trace, ctx.session.trace.count
        self.span = telemetry.span(f"chat {model}".strip(), run.context, every, SpanKind.CLIENT)
        if telemetry.content and self.span.is_recording():
            told = conversation(ctx.messages)
            self.span.set_attribute("gen_ai.input.messages", as_json(told))
            if system := instructions(ctx.messages):
                self.span.set_attribute("gen_ai.system_instructions", as_json(system))

    def __enter__(self) -> Self:
        self._began = Run.clock()
        self._run.requests += 1
        self._token = contexts.attach(set_span_in_context(self.span, self._run.context))
        return self

    def hear(self, piece: Delta | Completion) -> None:
        """Hear a piece of the answer, or all of it."""
        if isinstance(piece, Retrying):
            self.span.add_event("crow.retry", {"crow.retry.delay": piece.delay})
        elif isinstance(piece, Completion):
            self._replied(piece)
        elif self._first is None:
            self._first = Run.clock()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        contexts.detach(self._token)
        metrics, attributes = self._telemetry.metrics, self._attributes
        if isinstance(error, Exception):
            attributes = {**attributes, "error.type": failed(self.span, error)}
        if self._first is not None:
            seconds = (self._first - self._began) / 1e9
            self.span.set_attribute("gen_ai.response.time_to_first_chunk", seconds)
            metrics.first_chunk.record(seconds, attributes)
        metrics.inference.record((Run.clock() - self._began) / 1e9, attributes)
        self.span.end()

    def _replied(self, reply: Completion) -> None:
        usage, cost = usage_of(reply.usage), (reply.usage or {}).get("cost")
        if reply.model:
            self._attributes["gen_ai.response.model"] = reply.model
            self.span.set_attribute("gen_ai.response.model", reply.model)
        self.span.set_attribute("gen_ai.response.finish_reasons", (reply.finish,))
        self.span.set_attributes({f"gen_ai.usage.{name}": count for name, count in usage.items()})
        if cost is not None:
            self.span.set_attribute("crow.cost.usd", cost)
        self._telemetry.metrics.used(usage, cost, self._attributes)
        if self._telemetry.content:
            told = answer(reply)
            self.span.set_attribute("gen_ai.output.messages", as_json(told))
        for record in self._trace.since(self._known):
            told = cast(Any, record.answer)
            if isinstance(told, dict) and told.get("type") == "prefix":  # pyright: ignore[reportUnknownMemberType]
                self._broken(cast("Mapping[str, Any]", told))

    def _broken(self, told: Mapping[str, Any]) -> None:
        """Say why the request did not begin as the one before."""
        known = {f"crow.cache.break.{name}": told.get(name) for name in ("by", "what", "why")}
        self.span.set_attributes({name: str(each) for name, each in known.items() if each})
