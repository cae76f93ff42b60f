"""Questions of servers to the user.

A form is asked field by field; nothing is accepted that nobody has accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from crow import Context
from crow.extensions.mcp.events import (
    ELICITATION,
    RESULT,
    Answer,
    ElicitationContext,
    ElicitationResultContext,
)
from crow.extensions.mcp.failure import plain
from crow.extensions.mcp.schema import compiled, mismatch

DECLINED: Answer = ("decline", None)
CANCELLED: Answer = ("cancel", None)
ACCEPT, ANSWER, DECLINE, LEAVE_OUT = "Accept", "Answer", "Decline", "Leave it out"
MOST_FIELDS = 20
ATTEMPTS = 3
LONGEST = 1000


async def elicit(ctx: Context, server: str, asked: Mapping[str, Any]) -> Answer:
    """Put a server's question to the hooks, and to the user where they leave it open."""
    hooks = ctx.agent.hooks
    asked = {**asked, "message": plain(str(asked["message"]))[:LONGEST]}
    question = ElicitationContext(ctx, server, asked)
    ruling = await hooks[ELICITATION.name].fire(question)
    if ruling.refused:
        answer = DECLINED
    elif ruling.answer is not None:
        answer = given(ruling.answer.value)
    else:
        answer = await ask_user(question)
    result = ElicitationResultContext(ctx, server, asked, answer)
    ruling = await hooks[RESULT.name].fire(result)
    if ruling.refused:
        return DECLINED
    return given({"action": result.action, "content": result.content})


def given(value: object) -> Answer:
    """An answer that a hook gave."""
    if isinstance(value, Mapping):
        told = cast("dict[str, Any]", value)
        match told.get("action"):
            case "accept":
                return "accept", told.get("content")
            case "cancel":
                return CANCELLED
            case _:
                return DECLINED
    return DECLINED


async def ask_user(ctx: ElicitationContext) -> Answer:
    """Ask whoever is at the other end; ``cancel`` where nobody answers."""
    kind = "elicitation_url_dialog" if ctx.mode == "url" else "elicitation_dialog"
    await ctx.agent.notify(ctx.session, kind, ctx.message)
    intro = f'The MCP server "{ctx.mcp_server_name}" asks: {ctx.message}'
    if ctx.mode == "url":
        return await _consent(
            ctx, f"{intro}\nVisit {plain(ctx.url or '')} and say when it is done."
        )
    fields = cast("dict[str, Any]", ctx.requested_schema.get("properties") or {})
    if not fields:
        return await _consent(ctx, intro)
    if len(fields) > MOST_FIELDS:
        return CANCELLED
    chosen = await ctx.ui.select(intro, (ANSWER, DECLINE))
    if chosen != ANSWER:
        return DECLINED if chosen == DECLINE else CANCELLED
    return await _filled_in(ctx, fields)


async def _consent(ctx: ElicitationContext, text: str) -> Answer:
    chosen = await ctx.ui.select(text, (ACCEPT, DECLINE))
    if chosen is None:
        return CANCELLED
    content: dict[str, Any] | None = None if ctx.mode == "url" else {}
    return ("accept", content) if chosen == ACCEPT else DECLINED


async def _filled_in(ctx: ElicitationContext, fields: Mapping[str, Any]) -> Answer:
    required = cast("Sequence[str]", ctx.requested_schema.get("required") or ())
    content: dict[str, Any] = {}
    for name, field in fields.items():
        schema = cast("dict[str, Any]", field) if isinstance(field, dict) else {}
        asking = Field(name, schema, name in required)
        for _ in range(ATTEMPTS):
            answer = await asking.ask(ctx)
            if asking.accepts(answer):
                break
        else:
            return CANCELLED
        if answer is not None:
            content[name] = answer
    return "accept", content


class Field:
    """One field of a form."""

    def __init__(self, name: str, schema: dict[str, Any], required: bool) -> None:
        self.name = name
        self.schema = schema
        self.required = required

    async def ask(self, ctx: Context) -> Any:
        """The user's answer, converted; None where there is none."""
        choices = self.choices()
        if not choices:
            return self._converted(await ctx.ui.ask(self.text()))
        may_leave_out = not self.required or "default" in self.schema
        labels = [*choices, LEAVE_OUT] if may_leave_out else list(choices)
        chosen = await ctx.ui.select(self.text(), labels)
        return choices.get(chosen or "", self.schema.get("default") if chosen else None)

    def choices(self) -> dict[str, Any]:
        """What can be chosen, by label; nothing where it is a text or a number."""
        if self.schema.get("type") == "boolean":
            return {"Yes": True, "No": False}
        values = cast("list[object]", self.schema.get("enum") or [])
        names = cast("list[object]", self.schema.get("enumNames") or values)
        if len(names) != len(values):
            names = values
        choices = {plain(str(name)): value for name, value in zip(names, values, strict=True)}
        for each in cast("list[Any]", self.schema.get("oneOf") or []):
            if isinstance(each, dict) and "const" in each:
                told = cast("dict[str, Any]", each)
                choices[plain(str(told.get("title", told["const"])))] = told["const"]
        return choices

    def text(self) -> str:
        """The question."""
        title = plain(str(self.schema.get("title") or self.name))
        about = plain(str(self.schema.get("description") or ""))[:LONGEST]
        default = f" (default: {self.schema['default']})" if "default" in self.schema else ""
        kind = self.schema.get("type")
        many = " (several, separated by commas)" if kind == "array" else ""
        return f"{title}{': ' if about else ''}{about}{many}{default}"

    def accepts(self, answer: Any) -> bool:
        """True where the answer is what the server's schema wants."""
        if answer is None:
            return not self.required
        whole = {"type": "object", "properties": {self.name: self.schema}}
        try:
            return mismatch(compiled(whole), {self.name: answer}) is None
        except ValueError:
            return False

    def _converted(self, text: str) -> Any:
        kind = self.schema.get("type")
        if not text.strip():
            return self.schema.get("default")
        if kind == "array":
            return [part.strip() for part in text.split(",")]
        if kind not in ("integer", "number"):
            return text
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return text
