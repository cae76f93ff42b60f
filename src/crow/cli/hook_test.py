"""Try the hooks of settings files on a made-up event: input, output, exit status, conclusion."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow.cli.interrupt import run_async
from crow.cli.options import directory
from crow.cli.output import Output
from crow.cli.parser import UsageError, no_such
from crow.core.agent import Agent
from crow.core.hooks.context import Context
from crow.core.session import Session
from crow.entry_points import inside

if TYPE_CHECKING:
    from crow.extensions.shell_hooks import ShellHooks
    from crow.extensions.shell_hooks.event import Event
    from crow.extensions.shell_hooks.handler import Handler
    from crow.extensions.shell_hooks.handlers import Handlers
    from crow.extensions.shell_hooks.joint_outcome import JointOutcome
    from crow.extensions.shell_hooks.output import RawOutput

NAME = "shell_hooks"
MADE_UP: Mapping[str, Mapping[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "other"},
    "UserPromptSubmit": {"prompt": "A prompt"},
    "UserPromptExpansion": {"expansion_type": "slash_command", "command_name": "command"},
    "PostToolUse": {"tool_response": {}, "duration_ms": 1},
    "PostToolUseFailure": {"error": "Exit code 1", "is_interrupt": False, "duration_ms": 1},
    "PermissionDenied": {"reason": "a rule denies it"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "An answer"}
    | {"background_tasks": [], "session_crons": []},
    "SubagentStop": {"stop_hook_active": False, "agent_type": "general-purpose"}
    | {"last_assistant_message": "An answer", "background_tasks": [], "session_crons": []},
    "SubagentStart": {"agent_id": "1", "agent_type": "general-purpose"},
    "Setup": {"trigger": "init"},
    "FileChanged": {"file_path": "/path/to/file", "event": "change"},
    "CwdChanged": {"old_cwd": "/path/before", "new_cwd": "/path/now"},
    "DirectoryAdded": {"directory": "/path/to/directory", "source": "slash_command"},
    "Notification": {"message": "A message", "notification_type": "permission_prompt"},
    "PreCompact": {"trigger": "manual", "custom_instructions": None},
    "PostCompact": {"trigger": "manual", "compact_summary": "A summary"},
}
TELLS = frozenset(
    {"SessionStart", "UserPromptSubmit", "UserPromptExpansion", "PreToolUse", "PostToolUse"}
    | {"PostToolUseFailure", "PermissionDenied", "PostToolBatch", "SubagentStart", "SubagentStop"}
    | {"Stop", "PostModelSwitch", "BeforeModel", "AfterModel"}
)
"""Where ``additionalContext`` reaches the model; elsewhere nobody reads it."""
ENDS = frozenset(
    {"UserPromptSubmit", "UserPromptExpansion", "PreToolUse", "PermissionRequest", "PostToolUse"}
    | {"PostToolUseFailure", "PermissionDenied", "PostToolBatch", "SubagentStop", "Stop"}
    | {"TaskCompleted", "PreModelSwitch", "BeforeModel", "AfterModel"}
)
"""Where ``continue: false`` ends the run."""


def test_hooks(agent: Agent, options: argparse.Namespace, out: Output) -> int:
    """Run the hooks that match. Raises `UsageError` for an event or an input that is none."""
    known = inside(NAME, "event").KNOWN
    event = options.event
    if event is None:
        raise UsageError("which event? crow hooks test PreToolUse --tool Bash --input '{...}'")
    if event not in known:
        raise UsageError(no_such("event", event, known))
    hooks = cast("ShellHooks | None", agent.extensions.get(NAME))
    if hooks is None or not hooks.files:
        out.error("no settings file has hooks that may run here (crow hooks list)")
        return 1
    if known[event].absent:
        out.error(f"{event} never fires: {known[event].absent}")
        return 1
    return run_async(_try(agent, hooks.handlers, options, out))


def fields_of(options: argparse.Namespace, has_tool: bool) -> dict[str, Any]:
    """The fields of the made-up event."""
    try:
        given: object = json.loads(options.input or "{}")
    except ValueError as error:
        raise UsageError(f"--input is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise UsageError("--input must be a JSON object")
    table = cast("dict[str, Any]", given)
    fields = dict(MADE_UP.get(options.event, {}))
    if not has_tool:
        return fields | table
    call = {"tool_name": options.tool or "Bash", "tool_input": table, "tool_use_id": "call_test"}
    return call | fields


async def _try(agent: Agent, hooks: Handlers, options: argparse.Namespace, out: Output) -> int:
    from crow.app import live_of

    event: Event = inside(NAME, "event").KNOWN[options.event]
    fields = fields_of(options, event.has_tool)
    about = event.about(fields)
    session = Session(cwd=str(directory(options)))
    session.mode = live_of(agent).settings.permissions.mode or session.mode
    if event.has_tool:
        fields["tool_input"] = prepared(agent, session, fields["tool_name"], fields["tool_input"])
    seen: dict[int, tuple[bytes, RawOutput]] = {}

    def watch(entry: Handler, body: bytes, printed: RawOutput) -> None:
        seen[id(entry)] = body, printed

    with tempfile.TemporaryDirectory() as folder:
        hooks.directory = Path(folder)
        ctx = Context(agent, session)
        file = str(Path(folder, "env.sh"))
        joined = await hooks.fire(event.name, ctx, about, fields, env_file=file, watch=watch)
        if session.tasks:
            await asyncio.gather(*session.tasks)
    for number, (entry, outcome) in enumerate(joined.outcomes, 1):
        show(out, options, number, entry, seen.get(id(entry)), outcome.kind, outcome.notice)
    lines = conclusions(options.event, joined, fields.get("tool_input") or {})
    show_conclusion(out, options, list(lines))
    return 0


def prepared(agent: Agent, session: Session, name: str, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments as a call has them when hooks see it: with paths from the root."""
    from crow.core.hooks.contexts import ToolContext
    from crow.core.hooks.run_context import RunContext
    from crow.core.tool_call import prepare
    from crow.core.tools import Call

    tool = agent.tools_of(session).get(name)
    if tool is None:
        return args
    ctx = ToolContext(RunContext(agent, session, ""), Call("call_test", name, args), tool)
    prepare(ctx)
    return dict(ctx.args)


def show(
    out: Output,
    options: argparse.Namespace,
    number: int,
    entry: Handler,
    ran: tuple[bytes, RawOutput] | None,
    kind: str,
    notice: str,
) -> None:
    """One handler: what it was given and what it gave."""
    about: dict[str, Any] = {"handler": str(entry), "file": entry.source, "outcome": kind}
    if ran is not None:
        body, printed = ran
        about |= {"input": json.loads(body), "exit_status": printed.code}
        about |= {"stdout": printed.stdout, "stderr": printed.stderr}
        about["seconds"] = round(printed.seconds, 4)
    about |= {"notice": notice} if notice else {}
    if options.json:
        out.verbatim(json.dumps(about, ensure_ascii=False))
        return
    out.raw(out.styled(f"{number}  {about.pop('handler')}", "bold"))
    for name, value in about.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        out.raw(f"   {name.replace('_', ' ')}: {text.rstrip()}")


def show_conclusion(out: Output, options: argparse.Namespace, lines: list[str]) -> None:
    """What all of it comes to."""
    if options.json:
        out.verbatim(json.dumps({"conclusion": lines}, ensure_ascii=False))
        return
    for line in lines:
        out.raw(f"Crow: {line}")


def conclusions(event: str, joined: JointOutcome, args: Mapping[str, Any]) -> Iterator[str]:
    """What Crow makes of the outcomes at an event, a line each."""
    if not joined:
        yield "no hook that is waited for matches"
        return
    verdicts = list(_verdicts(event, joined))
    yield from verdicts or ["goes on"]
    rewritten = joined.rewritten(args)
    if rewritten is not None:
        yield f"the arguments become {json.dumps(rewritten, ensure_ascii=False)}"
    for text in joined.contexts:
        said = f"the model is told: {text}"
        yield said if event in TELLS else f"{event} passes over additionalContext"
    for text in filter(None, (outcome.message for _, outcome in joined.outcomes)):
        yield f"the user is told: {text}"


def _verdicts(event: str, joined: JointOutcome) -> Iterator[str]:
    if joined.stop is not None and event in ENDS:
        yield f"the run ends: {joined.stop or 'no reason given'}"
    elif joined.stop is not None:
        yield f"goes on: {event} passes over continue"
    if joined.blocked is not None:
        yield f"blocked: {joined.blocked}"
    elif joined.permission is not None:
        yield f"{joined.permission}: {joined.reason or 'no reason given'}"
    decisions = [decision["behavior"] for decision in joined.answers("decision")]
    if decisions:
        said = "deny" if "deny" in decisions else "allow, unless a rule says otherwise"
        yield f"answered in the user's place: {said}"
