"""Questions of servers to the user.

A form is asked as a whole where the client has forms, else field by field; nothing is accepted that
nobody has accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

from crow import Context
from crow.events import Form
from crow.extensions.mcp.events import (
    ELICITATION,
    RESULT,
    Answer,
    ElicitationContext,
    ElicitationResultContext,
)
from crow.extensions.mcp.failure import plain
from crow.extensions.mcp.form_fields import Field, judge_of, kept, tidied

DECLINED: Answer = ("decline", None)
CANCELLED: Answer = ("cancel", None)
ACCEPT, ANSWER, DECLINE = "Accept", "Answer", "Decline"
MOST_FIELDS = 20
ATTEMPTS = 3
LONGEST = 1000


async def elicit(ctx: Context, server: str, asked: Mapping[str, Any], call_id: str = "") -> Answer:
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
        answer = await ask_user(question, call_id)
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


async def ask_user(ctx: ElicitationContext, call_id: str = "") -> Answer:
    """Ask whoever is at the other end; ``cancel`` where nobody answers."""
    kind = "elicitation_url_dialog" if ctx.mode == "url" else "elicitation_dialog"
    await ctx.agent.notify(ctx.session, kind, ctx.message)
    intro = f'The MCP server "{ctx.mcp_server_name}" asks: {ctx.message}'
    if ctx.mode == "url":
        return await _visit(ctx, intro, call_id)
    schema = tidied(ctx.requested_schema)
    if (answer := await _as_a_whole(ctx, Form(intro, schema, call_id=call_id))) is not None:
        return answer
    fields: dict[str, Any] = schema["properties"]
    if not fields:
        return await _consent(ctx, intro)
    if len(fields) > MOST_FIELDS:
        return CANCELLED
    chosen = await ctx.ui.select(intro, (ANSWER, DECLINE))
    if chosen != ANSWER:
        return DECLINED if chosen == DECLINE else CANCELLED
    return await _filled_in(ctx, schema)


async def _visit(ctx: ElicitationContext, intro: str, call_id: str) -> Answer:
    """Have the user visit a page: their client leads there, or they are told where it is."""
    url = plain(ctx.url or "")
    page_id = page_of(ctx, ctx.mcp_server_name, ctx.elicitation_id or uuid4().hex)
    said = await ctx.ui.fill_in(Form(intro, url=url, page_id=page_id, call_id=call_id))
    if said is None:
        return await _consent(ctx, f"{intro}\nVisit {url} and say when it is done.")
    return said.action, None


def page_of(ctx: Context, server: str, elicitation_id: str) -> str:
    """The id of a page that a server has the user visit: theirs are unique to each server alone."""
    return f"{ctx.session.id}.{server}.{elicitation_id}"


async def _as_a_whole(ctx: ElicitationContext, form: Form) -> Answer | None:
    """What was filled in; None where the client shows no such form."""
    try:
        judge = judge_of(ctx.requested_schema)
    except ValueError as error:
        await ctx.ui.notify(f"{ctx.mcp_server_name!r} asks with a schema that is none: {error}")
        return CANCELLED
    wrong: str | None = ""
    for _ in range(ATTEMPTS):
        text = f"{form.text}\n\nThat did not fit: {wrong}" if wrong else form.text
        said = await ctx.ui.fill_in(replace(form, text=text))
        if said is None:
            return None
        if said.action != "accept":
            return said.action, None
        content = kept({**form.schema}, said.content)
        wrong = judge(content)
        if wrong is None:
            return "accept", content
    await ctx.ui.notify(f"What was answered {ctx.mcp_server_name!r} did not fit: {wrong}")
    return CANCELLED


async def _consent(ctx: ElicitationContext, text: str) -> Answer:
    chosen = await ctx.ui.select(text, (ACCEPT, DECLINE))
    if chosen is None:
        return CANCELLED
    content: dict[str, Any] | None = None if ctx.mode == "url" else {}
    return ("accept", content) if chosen == ACCEPT else DECLINED


async def _filled_in(ctx: ElicitationContext, schema: Mapping[str, Any]) -> Answer:
    content: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        asking = Field(name, field, name in (schema.get("required") or ()))
        wrong: str | None = ""
        for _ in range(ATTEMPTS):
            answer = await asking.ask(ctx, wrong or "")
            wrong = asking.fault(answer)
            if wrong is None:
                break
        else:
            return CANCELLED
        if answer is not None:
            content[name] = answer
    return "accept", content
