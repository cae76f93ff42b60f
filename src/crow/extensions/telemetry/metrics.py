"""The metrics: those of the conventions by their names, and Crow's own for cost and waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.extensions.telemetry.names import SECONDS, TOKENS

COUNTED = "gen_ai.client.inference.usage"


class Metrics:
    """The instruments of one meter."""

    def __init__(self, meter: Any) -> None:
        def histogram(name: str, unit: str, what: str, bounds: tuple[float, ...] = SECONDS) -> Any:
            return meter.create_histogram(
                name, unit, what, explicit_bucket_boundaries_advisory=bounds
            )

        inference = "gen_ai.client.inference"
        self.inference = histogram(f"{inference}.duration", "s", "How long requests take")
        self.first_chunk = histogram(
            f"{inference}.time_to_first_chunk", "s", "How long the first piece of an answer takes"
        )
        self.runs = histogram("gen_ai.invoke_agent.duration", "s", "How long runs take")
        self.tools = histogram("gen_ai.execute_tool.duration", "s", "How long calls take")
        self.blocked = histogram(
            "crow.blocked_on_user.duration", "s", "How long calls wait for the user's answer"
        )
        few = tuple(2.0**n for n in range(10))
        self.requests = histogram(
            "gen_ai.invoke_agent.inference_calls", "{call}", "Requests of a run", few
        )
        self.called = histogram("gen_ai.invoke_agent.tool_calls", "{call}", "Calls of a run", few)
        self.cost = meter.create_counter("crow.cost", "USD", "What requests cost")
        self._meter = meter
        self._counters: dict[str, Any] = {}
        self._tokens = {
            kind: histogram(
                f"{inference}.operation.{kind}", "{token}", "Tokens of a request", TOKENS
            )
            for kind in ("input_tokens", "output_tokens")
        }

    def used(
        self, usage: Mapping[str, int], cost: float | None, attributes: Mapping[str, Any]
    ) -> None:
        """Count what a request has used."""
        for kind, count in usage.items():
            self._counter(kind).add(count, attributes)
            if kind in self._tokens:
                self._tokens[kind].record(count, attributes)
        if cost is not None:
            self.cost.add(cost, attributes)

    def _counter(self, kind: str) -> Any:
        if kind not in self._counters:
            name = f"{COUNTED}.{kind}"
            self._counters[kind] = self._meter.create_counter(name, "{token}", "Tokens of requests")
        return self._counters[kind]
