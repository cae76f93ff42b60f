"""Hooks that ask a model, and hooks that call a tool of an MCP server."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from crow import Call, Request, RunContext, ToolContext, ToolResult
from crow.extensions.shell_hooks.handler import Handler
from crow.extensions.shell_hooks.outcome import Outcome, failed
from crow.extensions.shell_hooks.output import RawOutput
from crow.ports import ServerTool, implements

if TYPE_CHECKING:
    from crow import Context, Message, Tool

SYSTEM = (
    "You judge one event of a coding agent by the condition that the user gives. Answer with one "
    'JSON object and nothing else: {"ok": true} where the condition holds, {"ok": false, "reason": '
    '"..."} where it does not. Where it can never hold, add "impossible": true.'
)
ARGUMENTS = re.compile(r"\\\$|\$ARGUMENTS\b")
PATH = re.compile(r"\$\{([\w.]+)\}")
ENDS_TURN = frozenset({"PreToolUse", "PostToolUse"})
NO_EFFECT = frozenset({"PermissionRequest", "PermissionDenied"})
STOPS = frozenset({"Stop", "SubagentStop"})
CLAUDES = frozenset({"haiku", "sonnet", "opus", "inherit"})
"""Models that are meant by kind and not by name: the session's own stands in."""
WORDS = {
    "True": True,
    "approve": True,
    "allow": True,
    "False": False,
    "block": False,
    "deny": False,
}
"""What a model may say: prompts of others ask for the shape of a program's answer."""


async def ask_model(handler: Handler, ctx: Context, text: str) -> Outcome:
    """Let a model judge. Raises `ModelError`."""
    messages: list[Message] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": filled(handler.spec["prompt"], text)},
    ]
    request = Request(messages, model=model_for(handler, ctx))
    completion = await ctx.complete(request)
    verdict = verdict_of(completion.text)
    if verdict is None:
        return failed(
            handler, f"the model answered no verdict: {completion.text[:200]}", unread=True
        )
    return judged(handler, verdict)


def model_for(handler: Handler, ctx: Context) -> str | None:
    """The model that a handler wants asked, else the one that judges."""
    wanted = handler.spec.get("model")
    return ctx.model_for("judge") if not wanted or wanted in CLAUDES else wanted


def filled(prompt: str, text: str) -> str:
    """The prompt with the input in it, or behind it."""
    found = False

    def put(match: re.Match[str]) -> str:
        nonlocal found
        if match[0] == "\\$":
            return "$"
        found = True
        return text

    whole = ARGUMENTS.sub(put, prompt)
    return whole if found else f"{whole}\n\n{text}"


def verdict_of(text: str) -> Mapping[str, Any] | None:
    """The verdict in a model's answer; None where there is none."""
    start, end = text.find("{"), text.rfind("}")
    try:
        said: object = json.loads(text[start : end + 1])
    except ValueError:
        return None
    verdict = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    own: object = verdict.get("hookSpecificOutput")
    inner = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
    given = (verdict.get("ok"), verdict.get("decision"), inner.get("permissionDecision"))
    answers = [WORDS.get(str(each)) for each in given if each is not None]
    if not answers or None in answers:
        return None
    reason = verdict.get("reason") or inner.get("permissionDecisionReason")
    return {**verdict, "ok": all(answers), "reason": reason}


def judged(handler: Handler, verdict: Mapping[str, Any]) -> Outcome:
    """What a model's verdict means at an event."""
    name = handler.event.name
    reason = str(verdict.get("reason") or "a hook's condition does not hold")
    if verdict["ok"] or name in NO_EFFECT or (name in STOPS and verdict.get("impossible")):
        return Outcome()
    goes_on = handler.kind == "agent" or handler.spec.get("continueOnBlock") is True
    stop = reason if name in ENDS_TURN and not goes_on else None
    permission = "deny" if name == "PreToolUse" else None
    return Outcome("blocking", block=reason, permission=permission, reason=reason, stop=stop)


async def call_tool(
    handler: Handler, ctx: Context, whole: Mapping[str, Any]
) -> RawOutput | str | None:
    """Call a tool of a server; what it says, or what is wrong as a text.

    None where a session begins and its servers are not there yet. Where ``onFailure`` is given, an
    answer that is no object is a failure.
    """
    server, name = handler.spec["server"], handler.spec["tool"]
    tool = _tool_of(ctx, server, name)
    if tool is None and handler.event.name == "SessionStart":
        return None
    if tool is None:
        return f"there is no tool {name!r} of a server {server!r}: it is not connected"
    args: object = handler.spec.get("input")
    given = cast("dict[str, Any]", _put(args, whole)) if isinstance(args, dict) else {}
    run = ctx.run or RunContext(ctx.agent, ctx.session, "")
    call = ToolContext(run, Call(f"hook_{uuid.uuid4().hex[:8]}", tool.name, given), tool)
    call.owner = ctx.owner
    try:
        result = ToolResult.of(await tool.run(given, call))
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        return f"{type(error).__name__}: {error}"
    if result.error:
        return result.text or "the tool failed"
    if "onFailure" in handler.spec and not result.text.lstrip().startswith("{"):
        return "the tool answered no JSON object"
    return RawOutput(0, result.text)


def _tool_of(ctx: Context, server: str, name: str) -> Tool | None:
    """A tool by what its server is called; long names are cut in the tool's own."""
    for tool in ctx.agent.tools_of(ctx.session).values():
        if _is_called(tool, server, name):
            return tool
    plain = (re.sub(r"[^\w-]", "_", part) for part in (server, name))
    return ctx.agent.tool("__".join(("mcp", *plain)), ctx.session)


def _is_called(tool: object, server: str, name: str) -> bool:
    if not implements(tool, ServerTool):
        return False
    return tool.mcp_server.get("name") == server and tool.raw_name == name


def _put(value: Any, whole: Mapping[str, Any]) -> Any:
    """A value with ``${path.in.the.input}`` replaced in its texts."""
    if isinstance(value, str):
        return PATH.sub(lambda found: _at(whole, found[1]), value)
    if isinstance(value, dict):
        return {key: _put(one, whole) for key, one in cast("dict[str, Any]", value).items()}
    return (
        [_put(one, whole) for one in cast("list[Any]", value)] if isinstance(value, list) else value
    )


def _at(whole: Any, path: str) -> str:
    for name in path.split("."):
        whole = cast("dict[str, Any]", whole).get(name) if isinstance(whole, dict) else None
    return whole if isinstance(whole, str) else "" if whole is None else json.dumps(whole)
