"""Structured output: a run ends with JSON that fits a schema, or says that it does not."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated, Any

from crow import Arg, Continue, RunContext, ToolContext, ToolResult
from crow.dataclasses import entity
from crow.errors import ExtensionError
from crow.events import TextDelta
from crow.keys import STRUCTURED_OUTPUT, Key

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

    from crow import Agent, ToolEnvironment
    from crow.tools import ToolKind

NAME = "StructuredOutput"
DESCRIPTION = (
    "Give your final answer in the form that is wanted, once, when all else is done. "
    "Nothing else that you say is read."
)
WISH = (
    f"Your answer is read by a program: give it by calling {NAME}, once, with all that is wanted."
)
TAKEN = "The answer is taken."
FAILED = "no answer fitted the schema"
TRIES: Key[int] = Key("structured_output.tries")


@entity
class StructuredOutputHook:
    """Adds the tool ``StructuredOutput``, whose arguments are ``schema``, and has it called.

    Arguments that do not fit go back to the model with what is wrong, and so does an end without a
    call, ``tries`` times in a run. The first call that fits ends the run; the reply's text is its
    JSON, and `crow.keys.STRUCTURED_OUTPUT` has the value. Without one the stop reason is
    ``max_turn_requests``, and the reply's ``detail`` says that no answer fitted.
    """

    name = "structured_output"
    order = 195

    schema: dict[str, Any]
    """A JSON Schema of an object."""
    _: KW_ONLY
    tries: Annotated[int, Arg(minimum=1)] = 5
    """How often an answer may be wrong or missing in a run."""

    def init_agent(self, agent: Agent) -> None:
        """Add the tool. Raises `ExtensionError` for what is no schema."""
        agent.add_tool(StructuredOutput(self.schema))

    def before_run(self, ctx: RunContext) -> None:
        """Forget what an earlier run has given."""
        STRUCTURED_OUTPUT.set(ctx, None)
        TRIES.set(ctx, 0)

    async def after_tool(self, ctx: ToolContext) -> None:
        """End the run with an answer that fits, or where too many did not."""
        if ctx.name != NAME:
            return
        if ctx.outcome == "ok":
            STRUCTURED_OUTPUT.set(ctx, ctx.args)
            await self._say(ctx, json.dumps(ctx.args, ensure_ascii=False))
            ctx.stop(stop_reason="end_turn")
        elif self._spent(ctx):
            ctx.stop(f"{FAILED}: {ctx.output}", stop_reason="max_turn_requests")

    def on_stop(self, ctx: RunContext) -> Continue | None:
        """Ask for the answer where there is none."""
        if ctx.stop_reason != "end_turn" or STRUCTURED_OUTPUT.get(ctx) is not None:
            return None
        if self._spent(ctx):
            ctx.stop(f"{FAILED}: {NAME} was not called", stop_reason="max_turn_requests")
            return None
        return Continue(WISH)

    async def _say(self, ctx: ToolContext, text: str) -> None:
        """Let the reply, and whoever reads along, have the answer as text."""
        ctx.run.reply.text = text
        await ctx.emit(TextDelta(text, ctx.session.next_message_id))

    def _spent(self, ctx: RunContext | ToolContext) -> bool:
        tries = (TRIES.get(ctx) or 0) + 1
        TRIES.set(ctx, tries)
        return tries >= self.tries


class StructuredOutput:
    """The tool; its name is Claude Code's."""

    name = NAME
    description = DESCRIPTION
    kind: ToolKind = "think"

    def __init__(self, schema: dict[str, Any]) -> None:
        self.parameters = schema
        self._validator = validator_of(schema)

    def title(self, args: dict[str, Any]) -> str:
        """What it does."""
        return "Answer"

    def check(self, args: dict[str, Any]) -> None:
        """Nothing: what does not fit is the result of a call, and no call that could not run."""

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Take the answer, or say all that is wrong with it, each with its place."""
        errors = [f"{place_of(each)}: {each.message}" for each in self._validator.iter_errors(args)]
        return ToolResult.failure("; ".join(errors)) if errors else ToolResult(TAKEN, data=args)


def place_of(error: ValidationError) -> str:
    """Where in an answer something is wrong."""
    return ".".join(map(str, error.instance_path)) or "the answer"


def validator_of(schema: dict[str, Any]) -> Validator:
    """What judges answers. Raises `ExtensionError` for a schema that is none, or of no object."""
    import jsonschema_rs

    if schema.get("type") != "object":
        raise ExtensionError("the schema of an answer needs the type object")
    try:
        return jsonschema_rs.validator_for(schema, offline=True, validate_formats=True)
    except (ValueError, TypeError) as error:
        text = str(error).partition("\n")[0]
        raise ExtensionError(f"the schema of an answer is none: {text}") from None
