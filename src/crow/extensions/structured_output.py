"""Answers that are JSON of a given schema, by a tool that takes nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

from crow import (
    Agent,
    Allow,
    Context,
    Continue,
    ExtensionError,
    ModelError,
    PromptSection,
    RunContext,
    ToolContext,
    ToolEnvironment,
    ToolResult,
)
from crow.keys import STRUCTURED_OUTPUT
from crow.tools import ToolKind

NAME = "StructuredOutput"
TOLD = f"End your work by calling {NAME} once, with the answer in it."
REMINDER = f"Call {NAME} now, with your answer in it: nothing else is read."
REMINDERS = 3
VALUE = "value"


@dataclass(eq=False)
class StructuredOutputHook:
    """Has the model give its answer as arguments of a tool, which are checked against the schema.

    A model that does not call it is reminded three times. With ``--json-schema`` it is in use; a
    program finds the answer by `crow.keys.STRUCTURED_OUTPUT`.
    """

    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    """The JSON schema of the answer; where that is no object, the tool takes it as ``value``."""

    def __post_init__(self) -> None:
        import jsonschema_rs

        try:
            jsonschema_rs.validator_for(self.schema)
        except ValueError as error:
            why = str(error).partition("\n")[0]
            raise ExtensionError(f"structured_output: this is no JSON schema: {why}") from error
        self._is_wrapped = self.schema.get("type", "object") != "object"

    def init_agent(self, agent: Agent) -> None:
        """Add the tool, and say so."""
        agent.add_tool(StructuredOutput(self._parameters(), is_wrapped=self._is_wrapped))
        agent.add_section(PromptSection("structured_output", TOLD, order=90))

    def _parameters(self) -> dict[str, Any]:
        if not self._is_wrapped:
            return {"type": "object", **self.schema}
        inner = {name: part for name, part in self.schema.items() if name != "$defs"}
        defined = {"$defs": self.schema["$defs"]} if "$defs" in self.schema else {}
        return {"type": "object", "properties": {VALUE: inner}, "required": [VALUE], **defined}

    def before_run(self, ctx: RunContext) -> None:
        """Forget the answer to the prompt before."""
        STRUCTURED_OUTPUT.pop(ctx)

    def before_tool(self, ctx: ToolContext) -> Allow | None:
        """Nobody need be asked whether an answer may be given."""
        return Allow("it is the answer") if ctx.name == NAME else None

    def after_turn(self, ctx: Context) -> None:
        """End with the answer: what would be said of it afterwards is read by nobody."""
        if ctx.session.parent is None and STRUCTURED_OUTPUT.get(ctx) is not None:
            ctx.stop("the answer is there", stop_reason="end_turn")

    def after_loop(self, ctx: RunContext) -> None:
        """Let the answer be the text of the reply; without one the run has failed."""
        reply, answer = ctx.reply, STRUCTURED_OUTPUT.get(ctx)
        if answer is not None:
            reply.text, reply.detail = json.dumps(answer[0], ensure_ascii=False), ""
        elif reply.stop_reason == "end_turn":
            text = f"the model gave no answer of the schema, asked {REMINDERS} times for one"
            reply.stop_reason, reply.detail = "error", text
            reply.error = ModelError(text, kind="protocol")

    def on_stop(self, ctx: RunContext) -> Continue | None:
        """Ask for the answer."""
        is_there = STRUCTURED_OUTPUT.get(ctx) is not None
        return None if is_there or ctx.count >= REMINDERS else Continue(REMINDER)


class StructuredOutput:
    """Takes the answer."""

    name = NAME
    description = "Give your answer; call it once, at the end."
    kind: ToolKind = "other"

    def __init__(self, parameters: dict[str, Any], *, is_wrapped: bool) -> None:
        self.parameters = parameters
        self._is_wrapped = is_wrapped

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Keep it, for whoever asked."""
        answer: Any = args[VALUE] if self._is_wrapped else args
        STRUCTURED_OUTPUT.set(cast("ToolContext", ctx), (answer,))
        return ToolResult("The answer was taken.", data=answer)
